/** A semaphore whose holder lets others work while it waits for something else. */
export interface WorkSemaphore {
  /** Those that come back go first, then the urgent, then the rest. */
  acquire(urgent: boolean): Promise<void>;
  release(): void;
  /** Releases, waits and acquires again. Undefined, and nothing has begun, when too many do so already. */
  releaseWhile(wait: () => Promise<void>): Promise<void> | undefined;
}

/**
 * @param count how many work at a time
 * @param mostReleased how many may wait released at a time: each holds a job of the queue
 */
export function createWorkSemaphore(count: number, mostReleased: number): WorkSemaphore {
  const rows = { back: [] as (() => void)[], urgent: [] as (() => void)[], other: [] as (() => void)[] };
  let free = count;
  let released = 0;

  function acquire(row: (() => void)[]): Promise<void> {
    if (free) {
      free--;
      return Promise.resolve();
    }
    return new Promise(resolve => row.push(resolve));
  }

  function release(): void {
    const next = rows.back.shift() ?? rows.urgent.shift() ?? rows.other.shift();
    if (next) next();
    else free++;
  }

  async function waitReleased(wait: () => Promise<void>): Promise<void> {
    released++;
    release();
    try {
      await wait();
    } finally {
      await acquire(rows.back);
      released--;
    }
  }

  return {
    acquire: urgent => acquire(urgent ? rows.urgent : rows.other),
    release,
    releaseWhile: wait => (released < mostReleased ? waitReleased(wait) : undefined),
  };
}
