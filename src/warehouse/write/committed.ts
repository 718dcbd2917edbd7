import type { LedgerEntry, Value } from '../sql.ts';
import type { WriteResult } from '../write-result.ts';
import { DirtySet } from './dirty-set.ts';
import type { WriteBatch } from './write-batch.ts';

type Key = Readonly<Record<string, Value>>;

/** Where commits have changed something since some moment, the ledger included. */
export class Committed {
  readonly dirty = new DirtySet();
  /** By table of the ledger the keys of what was written or removed. */
  readonly ledger = new Map<string, Map<string, Key>>();
  /** Tables of the ledger of which any row may have changed. */
  readonly wholly = new Set<string>();

  get isEmpty(): boolean {
    return this.dirty.isEmpty && !this.ledger.size && !this.wholly.size;
  }

  add(changes: readonly WriteBatch[], counts: readonly WriteResult[], entries: readonly LedgerEntry[]): void {
    for (const [i, change] of changes.entries()) this.dirty.add(change, counts[i]);
    if (changes.some(({ withdrawal }) => withdrawal)) for (const table of ['sync.windows', 'sync.rejected']) this.wholly.add(table);
    for (const { table, key, row } of entries) {
      const keys = this.ledger.get(table) ?? new Map<string, Key>();
      // What is only added is known by all that it says.
      const known = key ?? row!;
      keys.set(JSON.stringify(known), known);
      this.ledger.set(table, keys);
    }
  }
}
