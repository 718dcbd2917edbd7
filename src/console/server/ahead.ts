/** Who looks once a day finds it answered. */
const SEEN_MS = 36 * 3_600_000;
/** Of the time, in the worst of cases: a snapshot may be published every few seconds. */
const MOST_OF_THE_TIME = 1 / 20;
const LOOK_MS = 1_000;

interface AheadParts {
  /** Changes with each publication; undefined where there is none. */
  stampOf(): string | undefined;
  ask(): Promise<unknown>;
  /** Milliseconds of a clock that nobody sets. */
  now(): number;
}

/** Has what is looked at first answered when a snapshot is published, before it is looked at, as long as somebody looks at all. */
export class Ahead {
  readonly #parts: AheadParts;
  #timer: NodeJS.Timeout | undefined;
  #seenAt = Number.NEGATIVE_INFINITY;
  #asked: string | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;
  #isAsking = false;

  constructor(parts: AheadParts) {
    this.#parts = parts;
  }

  /** Notes that somebody looks. */
  seen(): void {
    this.#seenAt = this.#parts.now();
    this.#timer ??= setInterval(() => void this.look(), LOOK_MS).unref();
  }

  /** Looks once whether there is something else to be asked. */
  async look(): Promise<void> {
    const { stampOf, ask, now } = this.#parts;
    const begun = now();
    if (this.#isAsking || begun - this.#seenAt > SEEN_MS || begun < this.#notBefore) return;
    this.#isAsking = true;
    try {
      const stamp = stampOf();
      if (stamp === undefined || stamp === this.#asked) return;
      this.#asked = stamp;
      await ask();
    } catch {
      // Whoever opens it is told what is wrong.
    } finally {
      this.#isAsking = false;
      this.#notBefore = now() + (now() - begun) / MOST_OF_THE_TIME;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
