const WITHOUT_WINDOW_MS = 300_000;
const MOST = 100_000;

/**
 * Which signatures were accepted lately. Two generations, so that nothing has to be searched for what is old: each is kept for one to two
 * turns of the wheel, and a turn is as long as a timestamp can be valid (its window lies on both sides of our clock).
 */
export class ReplayCache {
  #recent = new Set<string>();
  #older = new Set<string>();
  #turnedAt: number;
  readonly #turnMs: number;
  readonly #now: () => number;
  readonly #most: number;

  constructor({ windowMs, now, most = MOST }: { windowMs: number; now: () => number; most?: number }) {
    this.#turnMs = windowMs > 0 ? 2 * windowMs : WITHOUT_WINDOW_MS;
    this.#now = now;
    this.#most = most;
    this.#turnedAt = now();
  }

  has(signature: string): boolean {
    this.#turn();
    return this.#recent.has(signature) || this.#older.has(signature);
  }

  add(signature: string): void {
    this.#turn();
    this.#recent.add(signature);
  }

  #turn(): void {
    const ageMs = Math.abs(this.#now() - this.#turnedAt);
    if (ageMs <= this.#turnMs && this.#recent.size < this.#most) return;
    this.#older = ageMs > 2 * this.#turnMs ? new Set() : this.#recent;
    this.#recent = new Set();
    this.#turnedAt = this.#now();
  }
}
