import type { Log } from '../base/log.ts';

/** What the service is being asked that it answers once: an answer that nobody takes leaves an access alive that nobody knows of. */
export class InHand {
  readonly #works = new Set<Promise<unknown>>();

  /** Whether nothing more is to be begun. */
  isEnding = false;

  /** Has `settle` wait for it. */
  add<T>(work: Promise<T>): Promise<T> {
    this.#works.add(work);
    const forget = () => void this.#works.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** Waits for all of it, each for as long as the service is waited for. */
  async settle(log: Log): Promise<void> {
    this.isEnding = true;
    if (this.#works.size)
      log.warn(
        { waited_for: this.#works.size },
        'sign-ins are being made, renewed or taken back, which is waited for: killed meanwhile, ringneck may leave an access at the service that it does not know of',
      );
    await this.done();
  }

  /** Whether nothing is asked. */
  get isEmpty(): boolean {
    return this.#works.size === 0;
  }

  /** Waits as `settle` does, and lets more begin. */
  async done(): Promise<void> {
    while (this.#works.size) await Promise.allSettled(this.#works);
  }
}
