import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { driftEntries } from '../documents/drift.ts';
import type { Drift } from '../documents/parse-document.ts';
import { storeDocuments } from '../documents/store-documents.ts';
import { type HeartRateChanges, overlaps } from '../heart-rate/heart-rate-changes.ts';
import { rejectedHeartRate, storeHeartRate } from '../heart-rate/store-heart-rate.ts';
import { type HeartRateSpan, withdrawHeartRate } from '../heart-rate/withdraw-heart-rate.ts';
import type { Column, Mapping } from '../mapping.ts';
import type { RequestClock } from '../request-clock.ts';
import type { LedgerEntry } from '../sql.ts';
import { readRows } from '../store/database.ts';
import type { Store } from '../store/store.ts';
import { nothingWritten, type WriteResult } from '../write-result.ts';
import type { KeptReadings } from './kept-readings.ts';
import { ledgerStatements } from './ledger-statements.ts';
import type { ConfirmedDocument, ConfirmedRange, LowWatermark } from './low-watermark.ts';
import type { Transaction } from './transaction.ts';
import type { WriteBatch } from './write-batch.ts';

/** What is the same for every transaction of the writer. */
export interface Storage {
  store: Pick<Store, 'transaction' | 'takeSks'>;
  connection: DuckDBConnection;
  columnsOf(table: string): readonly Column[];
  clock: RequestClock;
  lowWatermark: LowWatermark;
  kept: KeptReadings;
  heartRateChanges: HeartRateChanges;
}

/** What a transaction has done so far. */
interface Done {
  /** Of each change. */
  counts: WriteResult[];
  /** To be written at its end. */
  ledger: LedgerEntry[];
  observed: { collection: string; drift: readonly Drift[] }[];
}

/** What is not as it was before the transaction, if that is committed. */
interface Dirty {
  things: Set<string>;
  heartRate: HeartRateSpan[];
}

/**
 * Commits changes in one transaction, and remembers what they settle.
 * @returns what storing each of them did, and all that was written to the ledger
 */
export async function storeChanges(
  storage: Storage,
  changes: readonly WriteBatch[],
): Promise<{ counts: WriteResult[]; ledger: LedgerEntry[] }> {
  const dirty: Dirty = { things: new Set(), heartRate: [] };
  try {
    const { store, connection } = storage;
    const { counts, ledger, documents, ranges } = await store.transaction(connection, () => storeAll(storage, changes, dirty));
    storage.lowWatermark.remember(documents, ranges);
    return { counts, ledger };
  } finally {
    storage.kept.touch(dirty.things);
    storage.heartRateChanges.note(dirty.heartRate);
  }
}

/** What is kept of the windows that were read from a path. */
export const windowsFrom = (route: string) => `windows from ${route}`;

async function storeAll(storage: Storage, changes: readonly WriteBatch[], dirty: Dirty) {
  const { store, connection, columnsOf, clock, lowWatermark, kept } = storage;
  const documents: ConfirmedDocument[] = [];
  const transaction: Transaction = {
    connection,
    takeSks: count => store.takeSks(count),
    columnsOf,
    confirmedAt: (table, userId, id) => lowWatermark.find(table, userId, id),
    confirm: (table, userId, id, moment) => documents.push({ table, userId, id, moment }),
    readKept: (table, sql) => kept.read(table, sql, text => readRows(connection, text)),
  };
  const done: Done = { counts: changes.map(() => nothingWritten()), ledger: [], observed: [] };
  await storePages(transaction, changes, done);
  const ranges = await storeRanges(transaction, storage, changes, done, dirty);
  const { counts, ledger, observed } = done;
  for (const entry of await driftEntries(connection, observed, clock.wall())) ledger.push(entry);
  changes.forEach(({ ledger: own = [] }, i) => {
    for (const entry of typeof own === 'function' ? own(counts[i]!) : own) ledger.push(entry);
  });
  for (const { table, row } of ledger) {
    dirty.things.add(table);
    if (typeof row?.route === 'string') dirty.things.add(windowsFrom(row.route));
  }
  for (const statement of ledgerStatements(ledger, columnsOf)) await connection.run(statement);
  return { counts, ledger, documents, ranges };
}

async function storePages(transaction: Transaction, changes: readonly WriteBatch[], { counts, ledger, observed }: Done): Promise<void> {
  const indexes = byMapping(changes);
  const pages = new Map([...indexes].map(([mapping, of]) => [mapping, of.map(i => changes[i]!.page!)]));
  for (const [mapping, stored] of await storeDocuments(transaction, pages)) {
    indexes.get(mapping)!.forEach((i, n) => {
      counts[i] = stored.counts[n]!;
    });
    for (const entry of stored.ledger) ledger.push(entry);
    observed.push({ collection: mapping.resource.name, drift: stored.drift });
  }
}

function byMapping(changes: readonly WriteBatch[]): Map<Mapping, number[]> {
  const indexes = new Map<Mapping, number[]>();
  changes.forEach(({ page }, i) => {
    if (!page) return;
    const list = indexes.get(page.mapping);
    if (list) list.push(i);
    else indexes.set(page.mapping, [i]);
  });
  return indexes;
}

/** Ranges of one group may overlap: each is settled before the next is cut. */
async function storeRanges(
  transaction: Transaction,
  { lowWatermark, heartRateChanges }: Storage,
  changes: readonly WriteBatch[],
  { counts, ledger, observed }: Done,
  dirty: Dirty,
): Promise<ConfirmedRange[]> {
  const settled: ConfirmedRange[] = [];
  for (let i = 0; i < changes.length; i++) {
    const { heartRate: range, withdrawal } = changes[i]!;
    if (withdrawal) {
      dirty.heartRate.push(...withdrawal.spans);
      dirty.things.add(windowsFrom(withdrawal.route)).add('sync.rejected');
      counts[i]!.removed = await withdrawHeartRate(transaction.connection, withdrawal);
    }
    if (!range) continue;
    const segments = lowWatermark.listUnconfirmed(range, settled);
    const { userId, from, to, requestedAt, compared } = range;
    const isWhole = segments.length === 1 && segments[0]![0] === from && segments[0]![1] === to;
    const holds = compared && isWhole && heartRateChanges.isUnchanged(compared.version, range) && !overlaps(dirty.heartRate, range);
    if (holds && compared.same) {
      const refused = await rejectedHeartRate(transaction, { userId, from, to, requestedAt, rejected: [] }, segments);
      counts[i] = { ...nothingWritten(), unchanged: compared.same.rows };
      for (const entry of refused.ledger) ledger.push(entry);
      settled.push({ userId, from, to, requestedAt });
      continue;
    }
    dirty.heartRate.push({ userId, from, to });
    const stored = await storeHeartRate(transaction, range, segments, holds ? compared.found : undefined);
    observed.push({ collection: heartRate.name, drift: stored.drift });
    if (range.isSuspicious) {
      counts[i] = stored.counts;
      continue;
    }
    const refused = await rejectedHeartRate(transaction, range, segments);
    counts[i] = { ...stored.counts, rejected: range.rejected.length, undated: refused.undated };
    for (const entry of refused.ledger) ledger.push(entry);
    settled.push({ userId, from, to, requestedAt });
  }
  return settled;
}
