import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { driftEntries } from '../documents/drift.ts';
import type { Drift } from '../documents/parse-document.ts';
import { storeDocuments } from '../documents/store-documents.ts';
import { type HeartRateChanges, overlaps } from '../heart-rate/heart-rate-changes.ts';
import { rejectedHeartRate, storeHeartRate } from '../heart-rate/store-heart-rate.ts';
import { type HeartRateSpan, withdrawHeartRate } from '../heart-rate/withdraw-heart-rate.ts';
import type { Comparison } from '../heart-rate-answer.ts';
import type { Column, Mapping } from '../mapping.ts';
import type { RequestClock } from '../request-clock.ts';
import type { LedgerEntry } from '../sql.ts';
import { readRows } from '../store/database.ts';
import type { RowTexts } from '../store/row-texts.ts';
import type { Store } from '../store/store.ts';
import { nothingWritten, type WriteResult } from '../write-result.ts';
import type { KeptReadings } from './kept-readings.ts';
import { ledgerStatements } from './ledger-statements.ts';
import type { ConfirmedDocument, ConfirmedRange, LowWatermark } from './low-watermark.ts';
import type { DocumentPage, Transaction, WriteBatch } from './write-batch.ts';

/** What is the same for every transaction of the writer. */
export interface Storage {
  store: Pick<Store, 'transaction' | 'takeSks' | 'openAppender' | 'memory' | 'versions'>;
  connection: DuckDBConnection;
  columnsOf(table: string): readonly Column[];
  clock: RequestClock;
  lowWatermark: LowWatermark;
  kept: KeptReadings;
  heartRateChanges: HeartRateChanges;
}

/** A change, and what storing it did so far. */
interface Stored {
  readonly change: WriteBatch;
  counts: WriteResult;
}

/** What a transaction has done so far. */
interface Done {
  readonly changes: readonly Stored[];
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
  store.versions?.follow();
  const transaction: Transaction = {
    connection,
    versions: store.versions,
    takeSks: count => store.takeSks(count),
    openAppender: (table, columns, rows) => store.openAppender(connection, { table, columns, rows }),
    columnsOf,
    findConfirmed: (table, userId, id) => lowWatermark.find(table, userId, id),
    confirm: (table, userId, id, confirmed) => documents.push({ table, userId, id, ...confirmed }),
    oldestAnswer: () => clock.oldestAnswer(),
    readKept: (table, sql) => kept.read(table, sql, text => readRows(connection, text)),
  };
  const done: Done = { changes: changes.map(change => ({ change, counts: nothingWritten() })), ledger: [], observed: [] };
  await storePages(transaction, done);
  const ranges = await storeRanges(transaction, storage, done, dirty);
  const { ledger, observed } = done;
  for (const entry of await driftEntries(connection, observed, clock.wall())) ledger.push(entry);
  for (const { change, counts } of done.changes) {
    const own = typeof change.ledger === 'function' ? change.ledger(counts) : (change.ledger ?? []);
    for (const entry of own) ledger.push(entry);
  }
  noteTexts(store.memory.texts, done);
  for (const { table, row } of ledger) {
    dirty.things.add(table);
    if (typeof row?.route === 'string') dirty.things.add(windowsFrom(row.route));
  }
  for (const statement of ledgerStatements(ledger, columnsOf)) await connection.run(statement);
  return { counts: done.changes.map(({ counts }) => counts), ledger, documents, ranges };
}

/** What is about to be committed. */
function noteTexts(texts: RowTexts, { changes, ledger }: Done): void {
  for (const { change, counts } of changes) {
    const { page, heartRate: range, samples } = change;
    texts.noteSamples(samples);
    for (const { values, extra, hash } of page?.documents ?? []) texts.note([...values, page?.userId ?? '', extra, hash]);
    if (range && counts.stored) for (const source of range.rows.names) texts.note([range.userId, source]);
  }
  for (const { key, row } of ledger) if (row) texts.note(Object.values({ ...key, ...row }));
}

async function storePages(transaction: Transaction, { changes, ledger, observed }: Done): Promise<void> {
  const groups = new Map<Mapping, { pages: DocumentPage[]; of: Stored[] }>();
  for (const stored of changes) {
    const { page } = stored.change;
    if (!page) continue;
    const group = groups.get(page.mapping) ?? { pages: [], of: [] };
    groups.set(page.mapping, group);
    group.pages.push(page);
    group.of.push(stored);
  }
  const results = await storeDocuments(transaction, new Map([...groups].map(([mapping, { pages }]) => [mapping, pages])));
  for (const [mapping, { counts, ledger: entries, drift }] of results) {
    groups.get(mapping)?.of.forEach((stored, n) => {
      stored.counts = counts[n] ?? stored.counts;
    });
    for (const entry of entries) ledger.push(entry);
    observed.push({ collection: mapping.resource.name, drift });
  }
}

/** Ranges of one group may overlap: each is settled before the next is cut. */
async function storeRanges(transaction: Transaction, storage: Storage, done: Done, dirty: Dirty): Promise<ConfirmedRange[]> {
  const settled: ConfirmedRange[] = [];
  for (const stored of done.changes) {
    const { heartRate: range, withdrawal } = stored.change;
    if (withdrawal) {
      dirty.heartRate.push(...withdrawal.spans);
      dirty.things.add(windowsFrom(withdrawal.route)).add('sync.rejected');
      stored.counts.removed = await withdrawHeartRate(transaction.connection, withdrawal);
    }
    if (!range) continue;
    const segments = storage.lowWatermark.listUnconfirmed(range, settled);
    const compared = findComparison(storage, range, segments, dirty);
    stored.counts = await storeRange(transaction, range, { segments, compared }, done, dirty);
    const { userId, from, to, requestedAt } = range;
    if (!range.isSuspicious || compared?.same) settled.push({ userId, from, to, requestedAt });
  }
  return settled;
}

/** What the answer was found to be, where that still holds. */
function findComparison({ heartRateChanges }: Storage, range: HeartRate, segments: Segments, dirty: Dirty): Comparison | undefined {
  const { from, to, compared } = range;
  const [[start, end] = []] = segments;
  if (!compared || segments.length !== 1 || start !== from || end !== to) return undefined;
  return heartRateChanges.isUnchanged(compared.version, range) && !overlaps(dirty.heartRate, range) ? compared : undefined;
}

type HeartRate = NonNullable<WriteBatch['heartRate']>;
type Segments = readonly (readonly [from: number, to: number])[];

async function storeRange(
  transaction: Transaction,
  range: HeartRate,
  { segments, compared }: { segments: Segments; compared: Comparison | undefined },
  { ledger, observed }: Done,
  dirty: Dirty,
): Promise<WriteResult> {
  const { userId, from, to, requestedAt } = range;
  if (compared?.same) {
    const refused = await rejectedHeartRate(transaction, { userId, from, to, requestedAt, rejected: [] }, segments);
    for (const entry of refused.ledger) ledger.push(entry);
    return { ...nothingWritten(), unchanged: compared.same.rows };
  }
  dirty.heartRate.push({ userId, from, to });
  const { counts, drift } = await storeHeartRate(transaction, range, segments, compared?.found);
  observed.push({ collection: heartRate.name, drift });
  if (range.isSuspicious) return counts;
  const refused = await rejectedHeartRate(transaction, range, segments);
  for (const entry of refused.ledger) ledger.push(entry);
  return { ...counts, rejected: range.rejected.length, undated: refused.undated };
}
