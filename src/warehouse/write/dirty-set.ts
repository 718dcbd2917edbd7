import type { WriteResult } from '../write-result.ts';
import type { WriteBatch } from './write-batch.ts';

/** Where commits may have changed something, since some moment. */
export class DirtySet {
  /** By table of documents the accounts. */
  readonly tables = new Map<string, Set<string>>();
  /** By account the range of heart rate, in microseconds. */
  readonly heartRate = new Map<string, readonly [from: number, to: number]>();

  /** @param counts undefined: it is not known whether the change was committed */
  add({ page, heartRate, withdrawal }: Pick<WriteBatch, 'page' | 'heartRate' | 'withdrawal'>, counts: WriteResult | undefined): void {
    if (counts && counts.stored + counts.removed === 0) return;
    if (page) this.#addUsers(page.mapping.table, [page.userId]);
    if (heartRate) this.#extend(heartRate.userId, [heartRate.from, heartRate.to]);
    for (const { userId, from, to } of withdrawal?.spans ?? []) this.#extend(userId, [from, to]);
  }

  get isEmpty(): boolean {
    return !this.tables.size && !this.heartRate.size;
  }

  absorb(other: DirtySet): void {
    for (const [table, users] of other.tables) this.#addUsers(table, users);
    for (const [user, range] of other.heartRate) this.#extend(user, range);
  }

  #addUsers(table: string, users: Iterable<string>): void {
    const known = this.tables.get(table) ?? new Set();
    for (const user of users) known.add(user);
    this.tables.set(table, known);
  }

  #extend(user: string, [from, to]: readonly [number, number]): void {
    const [first, last] = this.heartRate.get(user) ?? [from, to];
    this.heartRate.set(user, [Math.min(first, from), Math.max(last, to)]);
  }
}
