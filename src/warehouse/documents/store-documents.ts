import type { Mapping } from '../mapping.ts';
import type { LedgerEntry, Value } from '../sql.ts';
import { qualified, textList } from '../sql.ts';
import { appending, RowAppender, RunAppender } from '../write/append.ts';
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
 * Stores pages inside the caller's transaction, those of each resource in the order they are given: replaced versions and their
 * samples leave, new ones are appended. What is there is read by one statement and what is replaced leaves by one: a group of many
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
  const where = `WHERE user_id IN (${users}) ${mapping.resource.dated ? `AND day IN (${days})` : ''} AND sk IN (${numbers})`;
  return [mapping.table, ...mapping.series.map(series => series.table)].map(table => `DELETE FROM ${qualified(table)} ${where}`);
}

async function appendVersions(transaction: Transaction, mapping: Mapping, additions: readonly Addition[]): Promise<void> {
  const columns = transaction.columnsOf(mapping.table);
  const position = new Map(mapping.columns.map(({ name }, index) => [name, index]));
  const first = await transaction.takeSks(additions.length);
  const versions = additions.map(({ page, document }, i) => ({ page, document, sk: first + i }));
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
  const appender = new RowAppender(await transaction.connection.createAppender(mapping.table), columns);
  await appending(appender, () => appender.append(rows));
  for (const [s, { table }] of mapping.series.entries()) {
    if (!versions.some(({ document }) => document.runs[s]?.items.length)) continue;
    const runs = new RunAppender(await transaction.connection.createAppender(table), transaction.columnsOf(table));
    await appending(runs, async () => {
      for (const { page, document, sk } of versions) {
        const run = document.runs[s];
        if (run?.items.length) await runs.append({ sk, userId: page.userId, day: document.day, run });
      }
    });
  }
}
