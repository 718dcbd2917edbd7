import type { HeartRateRange } from '../heart-rate-answer.ts';
import type { RequestClock } from '../request-clock.ts';
import type { Confirmed } from './write-batch.ts';

/** A document that an answer has settled: stored, removed, or found unchanged. */
export interface ConfirmedDocument extends Confirmed {
  table: string;
  userId: string;
  id: string;
}

/** A range of heart rate that an answer has settled. */
export type ConfirmedRange = Pick<HeartRateRange, 'userId' | 'from' | 'to' | 'requestedAt'>;

/** What committed answers have settled, where the warehouse does not show it. Kept only while an older answer may still arrive. */
export class LowWatermark {
  readonly #clock: RequestClock;
  readonly #documents = new Map<string, readonly Confirmed[]>();
  /** By user. */
  readonly #ranges = new Map<string, readonly ConfirmedRange[]>();
  /** The oldest answer under way at the last pruning. */
  #prunedAt = Number.NaN;

  constructor(clock: RequestClock) {
    this.#clock = clock;
  }

  /** What answers have settled of this document: the newest that was about all days, and those about some. */
  find(table: string, userId: string, id: string): readonly Confirmed[] {
    return (this.#documents.size ? this.#documents.get(keyOf({ table, userId, id })) : undefined) ?? [];
  }

  /**
   * The parts of a range that no newer answer has settled.
   * @param uncommitted ranges that the transaction under way has settled
   */
  listUnconfirmed(range: ConfirmedRange, uncommitted: readonly ConfirmedRange[]): (readonly [from: number, to: number])[] {
    let parts: (readonly [number, number])[] = [[range.from, range.to]];
    for (const { userId, from, to, requestedAt } of [...(this.#ranges.get(range.userId) ?? []), ...uncommitted]) {
      if (userId !== range.userId || requestedAt <= range.requestedAt) continue;
      parts = parts.flatMap(([start, end]): (readonly [number, number])[] => {
        if (to <= start || from >= end) return [[start, end]];
        return [[start, from] as const, [to, end] as const].filter(([a, b]) => a < b);
      });
    }
    return parts;
  }

  /** What a transaction has settled that is committed. */
  remember(documents: readonly ConfirmedDocument[], ranges: readonly ConfirmedRange[]): void {
    const oldest = this.#clock.oldestLeased();
    for (const document of documents) {
      const { moment, absentFrom } = document;
      if (moment <= oldest) continue;
      const key = keyOf(document);
      // What is said of all days replaces all that is older.
      const others = (this.#documents.get(key) ?? []).filter(other => absentFrom || other.moment > moment);
      this.#documents.set(key, [...others, { moment, absentFrom }]);
    }
    for (const range of ranges)
      if (range.requestedAt > oldest) this.#ranges.set(range.userId, [...(this.#ranges.get(range.userId) ?? []), range]);
  }

  /** Drops what no answer under way is older than. */
  prune(): void {
    if (!this.#documents.size && !this.#ranges.size) return;
    const oldest = this.#clock.oldestLeased();
    // What came since then was newer.
    if (oldest === this.#prunedAt) return;
    this.#prunedAt = oldest;
    for (const [key, all] of this.#documents) {
      const kept = all.filter(({ moment }) => moment > oldest);
      if (!kept.length) this.#documents.delete(key);
      else if (kept.length < all.length) this.#documents.set(key, kept);
    }
    for (const [userId, ranges] of this.#ranges) {
      const kept = ranges.filter(({ requestedAt }) => requestedAt > oldest);
      if (!kept.length) this.#ranges.delete(userId);
      else if (kept.length < ranges.length) this.#ranges.set(userId, kept);
    }
  }
}

const keyOf = ({ table, userId, id }: Pick<ConfirmedDocument, 'table' | 'userId' | 'id'>) => `${table}\n${userId}\n${id}`;
