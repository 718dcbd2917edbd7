import type { Mapping } from '../mapping.ts';
import type { LedgerEntry, Value } from '../sql.ts';
import { qualified, textList } from '../sql.ts';
import { appending, RowAppender, RunAppender } from '../write/append.ts';
import type { Transaction } from '../write/transaction.ts';
import type { DocumentPage } from '../write/write-batch.ts';
import { type KnownDocument, nothingWritten, type WriteResult } from '../write-result.ts';
import { type Existing, isReadAgain, keyOf, loadExisting } from './load-existing.ts';
import type { Drift, ParsedDocument } from './parse-document.ts';

interface Decision {
  page: DocumentPage;
  id: string;
  /** Undefined: the document is removed. */
  document?: ParsedDocument;
}

/** What is to be done for one resource. */
interface Plan {
  counts: WriteResult[];
  /** Rejected documents and tombstones. */
  ledger: LedgerEntry[];
  replaced: { userId: string; day: string | null; sk: number }[];
  additions: Required<Decision>[];
}

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
  const before = await loadExisting(transaction, groups);
  const plans = new Map(
    [...groups].map(([mapping, pages]) => [mapping, planPages(transaction, mapping, pages, before.get(mapping.table)!)]),
  );
  const deletions = [...plans].flatMap(([mapping, { replaced }]) => (replaced.length ? deleteVersions(mapping, replaced) : []));
  if (deletions.length) await transaction.connection.run(deletions.join(';\n'));
  const results = new Map<Mapping, StoredPages>();
  for (const [mapping, { counts, ledger, additions }] of plans) {
    if (additions.length) await appendVersions(transaction, mapping, additions);
    results.set(mapping, { counts, ledger, drift: additions.flatMap(({ document }) => document.drift) });
  }
  return results;
}

function planPages(
  transaction: Transaction,
  mapping: Mapping,
  pages: readonly DocumentPage[],
  { stored, tombstones, refused, suspected, earlier }: Existing,
): Plan {
  const decisions = new Map<string, Decision>();
  /** When this group settled a document: by storing, removing, or finding it unchanged. */
  const settled = new Map<string, number>();
  const ledger: LedgerEntry[] = [];
  const dayOf = (key: string) => (decisions.has(key) ? decisions.get(key)!.document?.day : stored.get(key)?.day);
  const isStored = (key: string) => (decisions.has(key) ? decisions.get(key)!.document !== undefined : stored.has(key));

  const counts = pages.map(page => {
    const count = nothingWritten();
    const newestOf = (key: string, id: string) =>
      Math.max(
        stored.get(key)?.fetchedAt ?? 0,
        tombstones.get(key) ?? 0,
        settled.get(key) ?? 0,
        transaction.confirmedAt(mapping.table, page.userId, id) ?? 0,
      );
    const finish = (key: string, id: string) => {
      settled.set(key, page.requestedAt);
      transaction.confirm(mapping.table, page.userId, id, page.requestedAt);
    };
    const ledgerKey = (id: string) => ({ user_id: page.userId, collection: mapping.resource.name, id });
    const forgetRejected = (key: string, id: string) => {
      if ((refused.get(key) ?? Number.POSITIVE_INFINITY) <= page.requestedAt) {
        ledger.push({ table: 'sync.rejected', key: ledgerKey(id) });
        refused.delete(key);
      }
    };

    /** It came, or it is gone: in neither case a second proof is waited for. */
    const forgetSuspicion = (key: string, id: string) => {
      if (!suspected.delete(key)) return;
      const { user_id, collection } = ledgerKey(id);
      ledger.push({ table: 'sync.suspicions', key: { user_id, collection, kind: 'missing', object_id: id } });
    };

    for (const document of [...page.documents, ...(page.known ?? [])]) {
      const key = keyOf(page.userId, document.id);
      count.came.push({ id: document.id, hash: document.hash });
      forgetSuspicion(key, document.id);
      const current = decisions.get(key)?.document?.hash ?? (decisions.has(key) ? undefined : stored.get(key)?.hash);
      if (page.requestedAt < newestOf(key, document.id)) {
        // A known document may have come with a later page than the moment of its answer tells.
        if (isParsed(document) || current === document.hash) count.outdated++;
        else count.differing++;
        continue;
      }
      if (current === document.hash) {
        count.unchanged++;
      } else if (!isParsed(document)) {
        count.differing++;
        continue;
      } else {
        count.changes.push({ id: document.id, command: isStored(key) ? 'update' : 'create' });
        if (stored.get(key)?.hash === document.hash) decisions.delete(key);
        else decisions.set(key, { page, id: document.id, document });
        count.stored++;
        count.samples += document.samples;
      }
      finish(key, document.id);
      if (tombstones.delete(key)) ledger.push({ table: 'sync.tombstones', key: ledgerKey(document.id) });
      forgetRejected(key, document.id);
    }

    for (const id of page.removed) {
      const key = keyOf(page.userId, id);
      if (page.requestedAt < newestOf(key, id) || isElsewhere(page, dayOf(key))) {
        count.outdated++;
        continue;
      }
      forgetSuspicion(key, id);
      if (isStored(key)) count.changes.push({ id, command: 'delete' });
      decisions.set(key, { page, id });
      count.removed++;
      tombstones.set(key, page.requestedAt);
      finish(key, id);
      ledger.push({ table: 'sync.tombstones', key: ledgerKey(id), row: { removed_at: page.requestedAt } });
      forgetRejected(key, id);
    }

    for (const { id, reason, text, day } of page.rejected) {
      const key = keyOf(page.userId, id);
      forgetSuspicion(key, id);
      const isOutdated = page.requestedAt < newestOf(key, id);
      // What another answer has brought too is missing from this one all the same.
      if (day === null && !isOutdated) count.undated++;
      if (isOutdated || page.requestedAt < (refused.get(key) ?? 0)) {
        count.outdated++;
        continue;
      }
      refused.set(key, page.requestedAt);
      count.rejected++;
      ledger.push({
        table: 'sync.rejected',
        key: ledgerKey(id),
        row: {
          reason,
          document: text,
          fetched_at: page.requestedAt,
          day,
          start_at: page.range?.startAt ?? null,
          end_at: page.range?.endAt ?? null,
        },
      });
    }

    for (const known of earlier) {
      // What this group has refused again, for whichever range, is there.
      const isLeft = known.userId === page.userId && refused.get(keyOf(known.userId, known.id)) === known.refusedAt;
      if (isLeft && isReadAgain(known, page)) ledger.push({ table: 'sync.rejected', key: ledgerKey(known.id) });
    }
    return count;
  });

  const replaced = [...decisions.keys()].flatMap(key => {
    const old = stored.get(key);
    return old ? [{ ...old, userId: decisions.get(key)!.page.userId }] : [];
  });
  const additions = [...decisions.values()].filter((decision): decision is Required<Decision> => decision.document !== undefined);
  return { counts, ledger, replaced, additions };
}

const isParsed = (document: KnownDocument | ParsedDocument): document is ParsedDocument => 'values' in document;

const isElsewhere = ({ absentFrom }: DocumentPage, day: string | null | undefined) =>
  absentFrom !== undefined && typeof day === 'string' && (day < absentFrom.from || day > absentFrom.to);

/** With user and day beside the numbers DuckDB skips whole row groups; by `sk` alone it would read them all. */
function deleteVersions(mapping: Mapping, versions: readonly { userId: string; day: string | null; sk: number }[]): string[] {
  const users = textList(new Set(versions.map(({ userId }) => userId)));
  const numbers = versions.map(({ sk }) => sk).join(', ');
  const days = textList(new Set(versions.flatMap(({ day }) => (day === null ? [] : [day]))));
  const where = `WHERE user_id IN (${users}) ${mapping.resource.dated ? `AND day IN (${days})` : ''} AND sk IN (${numbers})`;
  return [mapping.table, ...mapping.series.map(series => series.table)].map(table => `DELETE FROM ${qualified(table)} ${where}`);
}

async function appendVersions(transaction: Transaction, mapping: Mapping, decisions: readonly Required<Decision>[]): Promise<void> {
  const columns = transaction.columnsOf(mapping.table);
  const position = new Map(mapping.columns.map(({ name }, index) => [name, index]));
  const first = await transaction.takeSks(decisions.length);
  const versions = decisions.map((decision, i) => ({ ...decision, sk: first + i }));
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
      return index === undefined ? bookkeeping[name]! : document.values[index]!;
    });
  });
  const appender = new RowAppender(await transaction.connection.createAppender(mapping.table), columns);
  await appending(appender, () => appender.append(rows));
  for (let s = 0; s < mapping.series.length; s++) {
    const { table } = mapping.series[s]!;
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
