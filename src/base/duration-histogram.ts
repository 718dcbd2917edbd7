/** What was measured: plain JSON. */
export interface Durations {
  /** Upper bounds in seconds; each with how many took so long at most. */
  buckets: [seconds: number, count: number][];
  count: number;
  /** Seconds in all. */
  sum: number;
}

/** How long things took, counted by upper bounds since the process began. */
export class DurationHistogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;

  /** @param bounds in seconds, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  /** A clock that was set back makes no negative duration. */
  observe(seconds: number): void {
    const took = Math.max(0, seconds);
    this.#count++;
    this.#sum += took;
    const index = this.#bounds.findIndex(bound => took <= bound);
    if (index >= 0) this.#counts[index]! += 1;
  }

  read(): Durations {
    let below = 0;
    const buckets = this.#bounds.map((bound, index): [number, number] => {
      below += this.#counts[index]!;
      return [bound, below];
    });
    return { buckets, count: this.#count, sum: this.#sum };
  }
}
