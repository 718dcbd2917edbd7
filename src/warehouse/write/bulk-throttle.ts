/** So long after a live change others are expected. */
const LIVE_FOR_MS = 10_000;
/** A stream of live work is one whose last change is no longer ago. */
const STREAM_MS = 1_000;
/**
 * Beside a stream of live work bulk work has this part of the writer's time, its checkpoints included: a live change rarely meets it. A
 * backfill takes several times as long for as long as the stream lasts.
 */
const BULK_SHARE = 1 / 10;

/** When live work came last, and the time that it leaves to bulk work. */
export class BulkThrottle {
  #lastAt = Number.NEGATIVE_INFINITY;
  /** Before, bulk work waits beside a stream. */
  #bulkFrom = Number.NEGATIVE_INFINITY;

  /** A live change has come. */
  note(): void {
    this.#lastAt = performance.now();
  }

  /** Bulk work has taken so long, up to this moment. */
  noteBulk(ms: number): void {
    this.#bulkFrom = performance.now() + ms * (1 / BULK_SHARE - 1);
  }

  isExpected(): boolean {
    return performance.now() - this.#lastAt < LIVE_FOR_MS;
  }

  /** For how long bulk work must wait; 0: its time has come. */
  bulkWaitMs(): number {
    const now = performance.now();
    return now - this.#lastAt < STREAM_MS ? Math.max(0, this.#bulkFrom - now) : 0;
  }
}
