/** Does one thing after the other, in the order in which they were asked for; one that fails keeps no other from its turn. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Resolves when all that was asked for until now is done. */
  async drain(): Promise<void> {
    await this.#last;
  }
}
