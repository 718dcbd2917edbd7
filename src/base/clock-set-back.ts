/** By so much a clock is set right in passing. */
const IN_PASSING_MS = 60_000;

/** Notices that the machine's clock was set back: what waits for a time of that clock would wait as much longer. */
export class ClockSetBack {
  /** Of the machine's clock to one that nobody sets. */
  #offset = Date.now() - performance.now();

  /** Whether it was set back since this was asked last. */
  happened(): boolean {
    const offset = Date.now() - performance.now();
    const happened = this.#offset - offset > IN_PASSING_MS;
    if (happened || offset > this.#offset) this.#offset = offset;
    return happened;
  }
}
