/** So many work at a time, and whoever has to wait for something else lets others work meanwhile. */
export interface WorkPlaces {
  /** Waits for a place: behind those that come back, and before those that are not urgent where it is. */
  take(urgent: boolean): Promise<void>;
  leave(): void;
  /** Waits without the place and takes it again; undefined, and nothing is begun, where too many do so already. */
  aside(wait: () => Promise<void>): Promise<void> | undefined;
}

/**
 * @param count how many work at a time
 * @param mostAside how many may wait aside at a time: each holds a job of the queue
 */
export function createWorkPlaces(count: number, mostAside: number): WorkPlaces {
  const rows = { back: [] as (() => void)[], urgent: [] as (() => void)[], other: [] as (() => void)[] };
  let free = count;
  let aside = 0;

  function take(row: (() => void)[]): Promise<void> {
    if (free) {
      free--;
      return Promise.resolve();
    }
    return new Promise(resolve => row.push(resolve));
  }

  function leave(): void {
    const next = rows.back.shift() ?? rows.urgent.shift() ?? rows.other.shift();
    if (next) next();
    else free++;
  }

  async function waitAside(wait: () => Promise<void>): Promise<void> {
    aside++;
    leave();
    try {
      await wait();
    } finally {
      await take(rows.back);
      aside--;
    }
  }

  return {
    take: urgent => take(urgent ? rows.urgent : rows.other),
    leave,
    aside: wait => (aside < mostAside ? waitAside(wait) : undefined),
  };
}
