/**
 * The order guard's clock. `fetched_at` is the moment a request was *sent*: an older answer must never overwrite a newer one, also
 * when it arrives later or the machine's clock was set back.
 */
export class RequestClock {
  #last: number;
  readonly #now: () => number;
  /** Moments of requests under way, and of answers not yet committed, with how many hold each. */
  readonly #held = new Map<number, number>();
  /** The first moments of reads under way, whose own answers are stored: what they turn out to lack was missing then. */
  readonly #reads = new Map<number, number>();

  /**
   * @param newestStored microseconds; the counter never goes below it
   * @param now milliseconds since the epoch
   */
  constructor(newestStored: number, now: () => number = Date.now) {
    this.#last = newestStored;
    this.#now = now;
  }

  /** A request is sent now: its moment in microseconds, one after every earlier one. Held until `release`. */
  lease(): number {
    const moment = this.next();
    this.leaseAgain(moment);
    return moment;
  }

  /** A moment for the ledger: after every earlier one too, so that what was written last counts as last. */
  next(): number {
    this.#last = Math.max(this.wall(), this.#last + 1);
    return this.#last;
  }

  /** The time of day in microseconds: for what is told and reckoned with, never for an order. */
  wall(): number {
    return Math.floor(this.#now() * 1000);
  }

  /** The newest moment given out so far, or stored. */
  latest(): number {
    return this.#last;
  }

  /** Keeps a moment under way until one more `release`; `RequestScope` counts them. */
  leaseAgain(moment: number): void {
    add(this.#held, moment, 1);
  }

  release(moment: number): void {
    add(this.#held, moment, -1);
  }

  /** Work with requests of its own: what it has begun is under way until it has ended, whichever way. */
  async withRequest<T>(work: (request: RequestScope) => Promise<T>): Promise<T> {
    const request = this.openRequest();
    try {
      return await work(request);
    } finally {
      request.end();
    }
  }

  /** The same where nobody waits: whoever opens it ends it. */
  openRequest(): RequestScope {
    return new RequestScope(this, this.#reads);
  }

  /** Nothing that was sent before this moment can still take effect. */
  oldestLeased(): number {
    return Math.min(this.oldestAnswer(), oldestOf(this.#reads));
  }

  /** No answer to a request sent before this moment can still arrive. */
  oldestAnswer(): number {
    return oldestOf(this.#held);
  }
}

/** The moments that a piece of work has under way. */
export class RequestScope {
  readonly #clock: RequestClock;
  readonly #reads: Map<number, number>;
  readonly #waiting = new Set<number>();
  #sentAt: number | undefined;
  #readAt: number | undefined;

  constructor(clock: RequestClock, reads: Map<number, number>) {
    this.#clock = clock;
    this.#reads = reads;
  }

  /** A request is sent now, instead of the one before. */
  send(): void {
    if (this.#sentAt !== undefined) this.#clock.release(this.#sentAt);
    this.#sentAt = this.#clock.lease();
  }

  /** The moment of the last request that was sent. */
  get sentAt(): number | undefined {
    return this.#sentAt;
  }

  /** The first answer of a read has come, which may wait for hours until the next one: its moment stands for all of it. */
  beginRead(moment: number): void {
    if (this.#readAt !== undefined) return;
    this.#readAt = moment;
    add(this.#reads, moment, 1);
  }

  /** An answer is kept, to be stored later than the next one is asked for. */
  keep(moment: number): void {
    if (this.#waiting.has(moment)) return;
    this.#waiting.add(moment);
    this.#clock.leaseAgain(moment);
  }

  /** An answer that was kept is stored, or on its way to be. */
  drop(moment: number): void {
    if (this.#waiting.delete(moment)) this.#clock.release(moment);
  }

  end(): void {
    for (const moment of this.#waiting) this.drop(moment);
    if (this.#readAt !== undefined) add(this.#reads, this.#readAt, -1);
    if (this.#sentAt !== undefined) this.#clock.release(this.#sentAt);
  }
}

function add(holders: Map<number, number>, moment: number, change: 1 | -1): void {
  const count = (holders.get(moment) ?? 0) + change;
  if (count > 0) holders.set(moment, count);
  else holders.delete(moment);
}

function oldestOf(moments: Map<number, number>): number {
  // Insertion order is the order of moments, but for a moment held again after its end.
  let oldest = Number.POSITIVE_INFINITY;
  for (const moment of moments.keys()) if (moment < oldest) oldest = moment;
  return oldest;
}
