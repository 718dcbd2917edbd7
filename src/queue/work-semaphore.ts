type Row = (() => void)[];

/** A semaphore whose holder lets others work while it waits for something else. Those that come back go first, then the urgent, then the rest. */
export class WorkSemaphore {
  readonly #mostReleased: number;
  readonly #back: Row = [];
  readonly #urgent: Row = [];
  readonly #other: Row = [];
  #free: number;
  #released = 0;

  /**
   * @param count how many work at a time
   * @param mostReleased how many may wait released at a time: each holds a job of the queue
   */
  constructor(count: number, mostReleased: number) {
    this.#free = count;
    this.#mostReleased = mostReleased;
  }

  /** Works as soon as there is a place. */
  async run<T>(urgent: boolean, work: () => Promise<T>): Promise<T> {
    await this.#acquire(urgent ? this.#urgent : this.#other);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  /** Of one that works: leaves its place to others, waits and takes one again. Undefined, and nothing has begun, when too many do so already. */
  releaseWhile(wait: () => Promise<void>): Promise<void> | undefined {
    return this.#released < this.#mostReleased ? this.#waitReleased(wait) : undefined;
  }

  async #waitReleased(wait: () => Promise<void>): Promise<void> {
    this.#released++;
    this.#release();
    try {
      await wait();
    } finally {
      await this.#acquire(this.#back);
      this.#released--;
    }
  }

  #acquire(row: Row): Promise<void> {
    if (this.#free) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise(resolve => row.push(resolve));
  }

  #release(): void {
    const next = this.#back.shift() ?? this.#urgent.shift() ?? this.#other.shift();
    if (next) next();
    else this.#free++;
  }
}
