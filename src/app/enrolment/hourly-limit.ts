const HOUR_MS = 3_600_000;

/** Counts what may happen a few times an hour for each key. Kept in memory: keys are few, those of links that can be used. */
export class HourlyLimit {
  readonly #most: number;
  readonly #now: () => number;
  readonly #times = new Map<string, number[]>();

  /** @param now milliseconds since the epoch */
  constructor(most: number, now: () => number) {
    this.#most = most;
    this.#now = now;
  }

  isReached(key: string): boolean {
    return this.#recent(key).length >= this.#most;
  }

  note(key: string): void {
    this.#times.set(key, [...this.#recent(key), this.#now()]);
  }

  /** A clock that was put back makes nobody wait for longer. */
  #recent(key: string): number[] {
    return (this.#times.get(key) ?? []).filter(at => Math.abs(this.#now() - at) < HOUR_MS);
  }
}
