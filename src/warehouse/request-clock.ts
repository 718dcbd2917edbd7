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

  /** A request is sent now: its moment in microseconds, one after every earlier one. Held until `end`. */
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

  /** Keeps a moment under way until one more `end`. */
  leaseAgain(moment: number): void {
    add(this.#held, moment, 1);
  }

  release(moment: number): void {
    add(this.#held, moment, -1);
  }

  /** Keeps the moment of a read, which may wait for hours between two answers, until one more `endRead`. */
  leaseRead(moment: number): void {
    add(this.#reads, moment, 1);
  }

  releaseRead(moment: number): void {
    add(this.#reads, moment, -1);
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
