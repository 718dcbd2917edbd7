import type { Mapping } from '../mapping.ts';
import { qualified, textList } from '../sql.ts';
import { readRows } from '../store/database.ts';
import type { Transaction } from '../write/transaction.ts';
import type { DocumentPage } from '../write/write-batch.ts';

interface Stored {
  sk: number;
  day: string | null;
  fetchedAt: number;
  hash: string;
}

export const keyOf = (userId: string, id: string) => `${userId}\n${id}`;

/** What is known of the documents of one resource before a group is stored, by user and id. */
export interface Existing {
  stored: Map<string, Stored>;
  /** When each was found gone. */
  tombstones: Map<string, number>;
  /** When each was last refused. */
  refused: Map<string, number>;
  /** What was absent from an answer before. */
  suspected: Set<string>;
  /** What was refused before of an account whose reading is complete. */
  earlier: Refused[];
}

interface Refused {
  userId: string;
  id: string;
  refusedAt: number;
  day: string | null;
  startAt: number | null;
  endAt: number | null;
}

/** What a group of pages meets, by table: read by one statement. */
export async function loadExisting(
  { connection, readKept }: Pick<Transaction, 'connection' | 'readKept'>,
  groups: ReadonlyMap<Mapping, readonly DocumentPage[]>,
): Promise<Map<string, Existing>> {
  const before = new Map<string, Existing>();
  const selects: string[] = [];
  const [allUsers, allIds] = [new Set<string>(), new Set<string>()];
  // Nearly always all are empty: a service rarely removes, leaves out or sends what cannot be stored.
  const holds = async (table: string) => (await readKept(table, `SELECT 1 FROM ${table} LIMIT 1`)).length > 0;
  for (const [{ table, resource }, pages] of groups) {
    before.set(table, { stored: new Map(), tombstones: new Map(), refused: new Map(), suspected: new Set(), earlier: [] });
    const users = new Set(pages.map(({ userId }) => userId));
    const ids = new Set<string>();
    for (const { documents, known = [], removed, rejected } of pages) {
      for (const { id } of documents) ids.add(id);
      for (const { id } of known) ids.add(id);
      for (const { id } of rejected) ids.add(id);
      for (const id of removed) ids.add(id);
    }
    const complete = new Set(pages.flatMap(({ userId, completes }) => (completes ? [userId] : [])));
    if (complete.size && (await holds('sync.rejected'))) {
      selects.push(
        `SELECT 'earlier', collection, user_id, id, epoch_us(start_at), day, fetched_at, epoch_us(end_at)::VARCHAR
         FROM sync.rejected WHERE user_id IN (${textList(complete)}) AND collection = '${table}'`,
      );
    }
    if (!ids.size) continue;
    for (const user of users) allUsers.add(user);
    for (const id of ids) allIds.add(id);
    selects.push(
      `SELECT 'stored', '${table}', user_id, id, sk, ${resource.dated ? 'day' : 'NULL'}, fetched_at, content_hash
       FROM ${qualified(table)} WHERE user_id IN (${textList(users)}) AND id IN (${textList(ids)})`,
    );
  }
  if (!selects.length) return before;
  const moments = (table: string, id: string, column: string) =>
    `SELECT '${table}', collection, user_id, ${id}, NULL, NULL, ${column}, NULL
     FROM sync.${table} WHERE user_id IN (${textList(allUsers)}) AND ${id} IN (${textList(allIds)})`;
  if (allIds.size) {
    if (await holds('sync.tombstones')) selects.push(moments('tombstones', 'id', 'removed_at'));
    if (await holds('sync.rejected')) selects.push(moments('rejected', 'id', 'fetched_at'));
    if (await holds('sync.suspicions')) selects.push(`${moments('suspicions', 'object_id', 'first_seen_at')} AND kind = 'missing'`);
  }
  for (const [kind, table, userId, id, sk, day, moment, hash] of await readRows(connection, selects.join(' UNION ALL '))) {
    const known = before.get(table as string);
    const key = keyOf(userId as string, id as string);
    if (kind === 'stored') {
      known?.stored.set(key, { sk: sk as number, day: day as string | null, fetchedAt: moment as number, hash: hash as string });
    } else if (kind === 'earlier') {
      known?.refused.set(key, moment as number);
      known?.earlier.push({
        userId: userId as string,
        id: id as string,
        refusedAt: moment as number,
        day: day as string | null,
        startAt: sk as number | null,
        endAt: hash === null ? null : Number(hash),
      });
    } else if (kind === 'suspicions') known?.suspected.add(key);
    else known?.[kind === 'tombstones' ? 'tombstones' : 'refused'].set(key, moment as number);
  }
  return before;
}

/** Whether a complete reading would have brought it, were it still there. */
export function isReadAgain({ refusedAt, day, startAt, endAt }: Refused, { completes, range }: DocumentPage): boolean {
  if (!completes || refusedAt >= completes.since) return false;
  if (!completes.days || !range) return !completes.days;
  if (day !== null) return day >= completes.days.from && day <= completes.days.to;
  return startAt !== null && endAt !== null && startAt >= range.startAt && endAt <= range.endAt;
}
