/** So long a job waits for a place without leaving its worker: that is how long one that stops answering can hold up others. */
const PATIENCE_MS = 250;
const SHORTEST_AWAY_MS = 25;
const LONGEST_AWAY_MS = 300_000;
/** Of a name that is not known yet: a slow one is soon found out, a quick one must not wait for itself. */
const FIRST_EXPECTED_MS = 10;
/** How much the latest job counts in what the next one is expected to take. */
const LATEST = 0.2;

interface Row {
  /** When each job that has a place began. */
  active: Map<string, number>;
  /** Those that wait without leaving, each with how to give it a place. */
  waiting: Map<string, () => void>;
  away: number;
  /** What a job is expected to take. */
  expectedMs: number;
}

/**
 * Keeps one slow or dead party from filling the workers that all share: only so many jobs at a time are worked on for each name. Who finds
 * no place stays away until those before it should be through: where ten thousand wait for one that is dead, each comes to look a few times
 * and not all of them all the time.
 */
export class KeyedSemaphore {
  readonly #count: number;
  readonly #now: () => number;
  readonly #longestAwayMs: number;
  readonly #rows = new Map<string, Row>();
  readonly #away = new Map<string, string>();

  /**
   * @param count places for each name
   * @param now milliseconds
   * @param longestAwayMs where work may become quick again at any moment, and whoever waits should soon find out
   */
  constructor(count: number, now: () => number, longestAwayMs = LONGEST_AWAY_MS) {
    this.#count = count;
    this.#now = now;
    this.#longestAwayMs = longestAwayMs;
  }

  /**
   * Takes a place, after a moment's wait where work on this name is quick; when there is none, how many milliseconds to stay away. Each
   * job that enters leaves, or stays away and enters again.
   */
  async acquire(name: string, jobId: string): Promise<number | undefined> {
    const row = this.#rows.get(name) ?? { active: new Map(), waiting: new Map(), away: 0, expectedMs: FIRST_EXPECTED_MS };
    this.#rows.set(name, row);
    const { active, waiting } = row;
    if (active.size < this.#count) {
      active.set(jobId, this.#now());
      return undefined;
    }
    const expectedMs = this.#expectedMsAt(row);
    if (Math.max(expectedMs, ((waiting.size + 1) * expectedMs) / this.#count) > PATIENCE_MS) return this.#delay(name, row, jobId);
    return new Promise(resolve => {
      const patience = setTimeout(() => {
        waiting.delete(jobId);
        resolve(this.#delay(name, row, jobId));
      }, PATIENCE_MS);
      waiting.set(jobId, () => {
        clearTimeout(patience);
        resolve(undefined);
      });
    });
  }

  release(name: string, jobId: string): void {
    const row = this.#rows.get(name);
    const began = row?.active.get(jobId);
    if (!row || began === undefined) return;
    row.active.delete(jobId);
    row.expectedMs += LATEST * (this.#now() - began - row.expectedMs);
    const [next] = row.waiting;
    if (next) {
      const [nextId, takePlace] = next;
      row.waiting.delete(nextId);
      row.active.set(nextId, this.#now());
      takePlace();
    } else this.#forgetIdle(name);
  }

  /** A job that stayed away has come back, whether it still wants to enter or not. */
  returned(jobId: string): void {
    const name = this.#away.get(jobId);
    const row = name === undefined ? undefined : this.#rows.get(name);
    if (name === undefined || !row) return;
    this.#away.delete(jobId);
    row.away--;
    this.#forgetIdle(name);
  }

  #forgetIdle(name: string): void {
    const row = this.#rows.get(name);
    if (row?.active.size === 0 && row.away === 0) this.#rows.delete(name);
  }

  /** The map keeps its order: the first has been under way for longest, and what takes its place may take as long. */
  #expectedMsAt({ active, expectedMs }: Row): number {
    const [longest = this.#now()] = active.values();
    return Math.max(expectedMs, this.#now() - longest);
  }

  #delay(name: string, row: Row, jobId: string): number {
    this.#away.set(jobId, name);
    row.away++;
    const turnMs = (row.away * this.#expectedMsAt(row)) / this.#count;
    return Math.min(Math.max(turnMs, SHORTEST_AWAY_MS), this.#longestAwayMs);
  }
}
