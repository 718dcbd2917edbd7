import { type Column, type List, type Mapping, partsOf } from '../mapping.ts';
import type { LedgerEntry, Value } from '../sql.ts';
import { qualified, quoteName, textList } from '../sql.ts';
import { versionKey } from '../store/known-versions.ts';
import { appendTo, RowAppender, RunAppender } from '../write/append.ts';
import type { DocumentPage, Transaction } from '../write/write-batch.ts';
import type { WriteResult } from '../write-result.ts';
import { loadExisting } from './load-existing.ts';
import type { Addition } from './page-plan.ts';
import { PagePlan } from './page-plan.ts';
import type { Drift } from './parse-document.ts';

export interface StoredPages {
  counts: WriteResult[];
  ledger: LedgerEntry[];
  /** Of what was stored: an unchanged document was counted before. */
  drift: Drift[];
}

/**
 * Stores pages inside the caller's transaction, those of each resource in the order they are given: replaced versions and the rows of
 * their parts leave, new ones are appended. What is there is read by one statement and what is replaced leaves by one: a group of many
 * small answers waits for statements more than for anything else.
 */
export async function storeDocuments(
  transaction: Transaction,
  groups: ReadonlyMap<Mapping, readonly DocumentPage[]>,
): Promise<Map<Mapping, StoredPages>> {
  const existingOf = await loadExisting(transaction, groups);
  const plans = [...groups].map(([mapping, pages]) => {
    const plan = new PagePlan(transaction, mapping, existingOf(mapping.table));
    for (const page of pages) plan.add(page);
    return { mapping, plan };
  });
  const deletions = plans.flatMap(({ mapping, plan: { replaced } }) => (replaced.length ? deleteVersions(mapping, replaced) : []));
  if (deletions.length) await transaction.connection.run(deletions.join(';\n'));
  for (const { mapping, plan } of plans) {
    for (const { userId, id } of plan.replaced) transaction.versions?.change(versionKey(mapping.table, userId, id), undefined);
  }
  const results = new Map<Mapping, StoredPages>();
  for (const { mapping, plan } of plans) {
    const { counts, ledger, additions } = plan;
    if (additions.length) await appendVersions(transaction, mapping, additions);
    results.set(mapping, { counts, ledger, drift: additions.flatMap(({ document }) => document.drift) });
  }
  return results;
}

/** With user and day beside the numbers DuckDB skips whole row groups; by `sk` alone it would read them all. */
function deleteVersions(mapping: Mapping, versions: readonly { userId: string; day: string | null; sk: number }[]): string[] {
  const users = textList(new Set(versions.map(({ userId }) => userId)));
  const numbers = versions.map(({ sk }) => sk).join(', ');
  const days = textList(new Set(versions.flatMap(({ day }) => (day === null ? [] : [day]))));
  const deleteFrom = (table: string, day: string) =>
    `DELETE FROM ${qualified(table)} WHERE user_id IN (${users}) ${days ? `AND ${quoteName(day)} IN (${days})` : ''} AND sk IN (${numbers})`;
  return [deleteFrom(mapping.table, mapping.resource.dayField), ...partsOf(mapping).map(({ table }) => deleteFrom(table, 'day'))];
}

/** A version that is appended under a number. */
interface Version extends Addition {
  sk: number;
}

async function appendVersions(transaction: Transaction, mapping: Mapping, additions: readonly Addition[]): Promise<void> {
  const columns = transaction.columnsOf(mapping.table);
  const position = new Map(mapping.columns.map(({ name }, index) => [name, index]));
  const first = await transaction.takeSks(additions.length);
  const versions: Version[] = additions.map(({ page, document }, i) => ({ page, document, sk: first + i }));
  for (const { page, document, sk } of versions) {
    const { day, hash } = document;
    transaction.versions?.change(versionKey(mapping.table, page.userId, document.id), { sk, day, fetchedAt: page.requestedAt, hash });
  }
  const rows = versions.map(({ page, document, sk }) => {
    const bookkeeping: Record<string, Value> = {
      user_id: page.userId,
      extra: document.extra,
      sk,
      fetched_at: page.requestedAt,
      content_hash: document.hash,
    };
    return columns.map(({ name }) => {
      const index = position.get(name);
      return (index === undefined ? bookkeeping[name] : document.values[index]) ?? null;
    });
  });
  await appendRows(transaction, mapping.table, rows);
  await appendRuns(transaction, mapping, versions);
  for (const [l, list] of mapping.lists.entries()) {
    const items = versions.flatMap(version => rowsOfList(list, version, version.document.lists[l] ?? []));
    if (items.length) await appendRows(transaction, list.table, placed(transaction.columnsOf(list.table), items));
  }
}

async function appendRows(transaction: Transaction, table: string, rows: readonly (readonly Value[])[]): Promise<void> {
  await appendTo(transaction, { table, count: rows.length }, RowAppender, appender => appender.append(rows));
}

/** Rows in the order in which the columns lie in the file. */
const placed = (columns: readonly Column[], rows: readonly Readonly<Record<string, Value>>[]): Value[][] =>
  rows.map(row => columns.map(({ name }) => row[name] ?? null));

const rowsOfList = ({ columns }: List, { page, document, sk }: Version, items: readonly (readonly Value[])[]) =>
  items.map(
    (values, position): Record<string, Value> => ({
      ...Object.fromEntries(columns.map(({ name }, i) => [name, values[i] ?? null])),
      sk,
      user_id: page.userId,
      day: document.day,
      position,
    }),
  );

async function appendRuns(transaction: Transaction, mapping: Mapping, versions: readonly Version[]): Promise<void> {
  for (const [s, { table }] of mapping.series.entries()) {
    const count = versions.reduce((sum, { document }) => sum + (document.runs[s]?.items.length ?? 0), 0);
    if (!count) continue;
    await appendTo(transaction, { table, count }, RunAppender, async runs => {
      for (const { page, document, sk } of versions) {
        const run = document.runs[s];
        if (run?.items.length) await runs.append({ sk, userId: page.userId, day: document.day, run });
      }
    });
  }
}
