import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import type { Change } from './change.ts';
import type { Confirmations, ConfirmedDocument, SettledRange } from './confirmations.ts';
import { readRows, withTransaction } from './database.ts';
import { driftEntries } from './drift.ts';
import { type HeartRateChanges, overlaps } from './heart-rate-changes.ts';
import type { KeptReadings } from './kept-readings.ts';
import { type LedgerEntry, ledgerStatements } from './literals.ts';
import type { Column, Mapping } from './mapping.ts';
import type { Moments } from './moments.ts';
import type { Drift } from './parse-document.ts';
import { storeDocuments } from './store-documents.ts';
import { rejectedHeartRate, storeHeartRate } from './store-heart-rate.ts';
import { type Counts, noCounts, type Transaction } from './transaction.ts';
import { type HeartRateSpan, withdrawHeartRate } from './withdraw-heart-rate.ts';

/** What is the same for every transaction of the writer. */
export interface Storage {
  connection: DuckDBConnection;
  /** Ends the transaction of the connection. */
  commit(): Promise<void>;
  columnsOf(table: string): readonly Column[];
  nextSk(): number;
  moments: Moments;
  confirmations: Confirmations;
  kept: KeptReadings;
  heartRateChanges: HeartRateChanges;
}

/** What a transaction has done so far. */
interface Done {
  /** Of each change. */
  counts: Counts[];
  /** To be written at its end. */
  ledger: LedgerEntry[];
  observed: { collection: string; drift: readonly Drift[] }[];
}

/** What is not as it was before the transaction, if that is committed. */
interface Touched {
  things: Set<string>;
  heartRate: HeartRateSpan[];
}

/**
 * Commits changes in one transaction, and remembers what they settle.
 * @returns what storing each of them did, and all that was written to the ledger
 */
export async function storeChanges(storage: Storage, changes: readonly Change[]): Promise<{ counts: Counts[]; ledger: LedgerEntry[] }> {
  const touched: Touched = { things: new Set(), heartRate: [] };
  try {
    const { counts, ledger, documents, ranges } = await withTransaction(
      storage.connection,
      () => storeAll(storage, changes, touched),
      storage.commit,
    );
    storage.confirmations.remember(documents, ranges);
    return { counts, ledger };
  } finally {
    storage.kept.touch(touched.things);
    storage.heartRateChanges.note(touched.heartRate);
  }
}

/** What is kept of the windows that were read from a path. */
export const windowsFrom = (route: string) => `windows from ${route}`;

async function storeAll(storage: Storage, changes: readonly Change[], touched: Touched) {
  const { connection, columnsOf, nextSk, moments, confirmations, kept } = storage;
  const documents: ConfirmedDocument[] = [];
  const transaction: Transaction = {
    connection,
    nextSk,
    columnsOf,
    confirmedAt: (table, userId, id) => confirmations.find(table, userId, id),
    confirm: (table, userId, id, moment) => documents.push({ table, userId, id, moment }),
    readKept: (table, sql) => kept.read(table, sql, text => readRows(connection, text)),
  };
  const done: Done = { counts: changes.map(() => noCounts()), ledger: [], observed: [] };
  await storePages(transaction, changes, done);
  const ranges = await storeRanges(transaction, storage, changes, done, touched);
  const { counts, ledger, observed } = done;
  for (const entry of await driftEntries(connection, observed, moments.wall())) ledger.push(entry);
  changes.forEach(({ ledger: own = [] }, i) => {
    for (const entry of typeof own === 'function' ? own(counts[i]!) : own) ledger.push(entry);
  });
  for (const { table, row } of ledger) {
    touched.things.add(table);
    if (typeof row?.route === 'string') touched.things.add(windowsFrom(row.route));
  }
  for (const statement of ledgerStatements(ledger, columnsOf)) await connection.run(statement);
  return { counts, ledger, documents, ranges };
}

async function storePages(transaction: Transaction, changes: readonly Change[], { counts, ledger, observed }: Done): Promise<void> {
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

function byMapping(changes: readonly Change[]): Map<Mapping, number[]> {
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
  { confirmations, heartRateChanges }: Storage,
  changes: readonly Change[],
  { counts, ledger, observed }: Done,
  touched: Touched,
): Promise<SettledRange[]> {
  const settled: SettledRange[] = [];
  for (let i = 0; i < changes.length; i++) {
    const { heartRate: range, withdrawal } = changes[i]!;
    if (withdrawal) {
      touched.heartRate.push(...withdrawal.spans);
      touched.things.add(windowsFrom(withdrawal.route)).add('sync.rejected');
      counts[i]!.removed = await withdrawHeartRate(transaction.connection, withdrawal);
    }
    if (!range) continue;
    const segments = confirmations.listUnsettled(range, settled);
    const { userId, from, to, requestedAt, compared } = range;
    const isWhole = segments.length === 1 && segments[0]![0] === from && segments[0]![1] === to;
    const holds = compared && isWhole && heartRateChanges.isUnchanged(compared.version, range) && !overlaps(touched.heartRate, range);
    if (holds && compared.same) {
      const refused = await rejectedHeartRate(transaction, { userId, from, to, requestedAt, rejected: [] }, segments);
      counts[i] = { ...noCounts(), unchanged: compared.same.rows };
      for (const entry of refused.ledger) ledger.push(entry);
      settled.push({ userId, from, to, requestedAt });
      continue;
    }
    touched.heartRate.push({ userId, from, to });
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
