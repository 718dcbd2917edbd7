import type { Mapping } from '../mapping.ts';
import { number, oneOf, orNull, type Row, text } from '../rows.ts';
import { qualified, quoteText, textList } from '../sql.ts';
import { select } from '../store/database.ts';
import { type KnownVersions, versionKey } from '../store/known-versions.ts';
import { selectDay } from '../tables.ts';
import type { DocumentPage, Transaction } from '../write/write-batch.ts';

export const keyOf = (userId: string, id: string) => `${userId}\n${id}`;

/** What is known of the documents of one resource before a group is stored, by user and id. */
export interface Existing {
  stored: Map<string, Row<typeof STORED>>;
  /** When each was found gone. */
  tombstones: Map<string, number>;
  /** When each was last refused. */
  refused: Map<string, number>;
  /** What was absent from an answer before. */
  suspected: Set<string>;
  /** What was refused before of an account whose reading is complete. */
  earlier: Row<typeof REFUSED>[];
}

const NAMED = { collection: text, userId: text, id: text };
const STORED = { ...NAMED, sk: number, day: orNull(text), fetchedAt: number, hash: text };
const NOTED = { ...NAMED, kind: oneOf(['tombstones', 'refused', 'suspected']), moment: number };
const REFUSED = { ...NAMED, refusedAt: number, day: orNull(text), startAt: orNull(number), endAt: orNull(number) };

/** The pages of one resource, and whom and what they name. */
interface Asked {
  mapping: Mapping;
  users: ReadonlySet<string>;
  ids: ReadonlySet<string>;
  /** Of each user. */
  idsOf: ReadonlyMap<string, ReadonlySet<string>>;
  /** Whose reading is complete. */
  complete: ReadonlySet<string>;
}

/**
 * What a group of pages meets, by table. Nearly always it takes one statement: a service rarely removes, leaves out or sends what cannot be
 * stored.
 */
export async function loadExisting(
  { connection, readKept, versions }: Pick<Transaction, 'connection' | 'readKept' | 'versions'>,
  groups: ReadonlyMap<Mapping, readonly DocumentPage[]>,
): Promise<(table: string) => Existing> {
  const existing = new Map<string, Existing>();
  const existingOf = (table: string): Existing => {
    const known = existing.get(table) ?? {
      stored: new Map(),
      tombstones: new Map(),
      refused: new Map(),
      suspected: new Set(),
      earlier: [],
    };
    existing.set(table, known);
    return known;
  };
  const holds = async (table: string) => (await readKept(table, `SELECT 1 FROM ${table} LIMIT 1`)).length > 0;
  const asked = [...groups].map(([mapping, pages]) => listAsked(mapping, pages));

  const earlier = selectRefused(asked);
  if (earlier.length && (await holds('sync.rejected'))) {
    for (const row of await select(connection, REFUSED, earlier.join(' UNION ALL '))) {
      const { refused, earlier } = existingOf(row.collection);
      refused.set(keyOf(row.userId, row.id), row.refusedAt);
      earlier.push(row);
    }
  }
  const named = asked.filter(({ ids }) => ids.size > 0);
  if (!named.length) return existingOf;
  const unknown = versions ? named.filter(one => !findKnown(versions, one, existingOf(one.mapping.table))) : named;
  if (unknown.length) {
    const startedAt = performance.now();
    for (const row of await select(connection, STORED, unknown.map(selectStored).join(' UNION ALL '))) {
      existingOf(row.collection).stored.set(keyOf(row.userId, row.id), row);
    }
    versions?.noteRead(performance.now() - startedAt);
  }
  const noted: string[] = [];
  for (const note of NOTES) if (await holds(note.table)) noted.push(selectNoted(note, named));
  for (const { collection, kind, userId, id, moment } of noted.length ? await select(connection, NOTED, noted.join(' UNION ALL ')) : []) {
    const key = keyOf(userId, id);
    if (kind === 'suspected') existingOf(collection).suspected.add(key);
    else existingOf(collection)[kind].set(key, moment);
  }
  return existingOf;
}

function listAsked(mapping: Mapping, pages: readonly DocumentPage[]): Asked {
  const idsOf = new Map<string, Set<string>>();
  for (const { userId, documents, known = [], removed, missing, rejected } of pages) {
    const ids = idsOf.get(userId) ?? new Set();
    idsOf.set(userId, ids);
    for (const { id } of documents) ids.add(id);
    for (const { id } of known) ids.add(id);
    for (const { id } of rejected) ids.add(id);
    for (const id of removed) ids.add(id);
    for (const id of missing?.ids ?? []) ids.add(id);
  }
  return {
    mapping,
    ids: new Set([...idsOf.values()].flatMap(ids => [...ids])),
    idsOf,
    users: new Set(idsOf.keys()),
    complete: new Set(pages.flatMap(({ userId, completes }) => (completes ? [userId] : []))),
  };
}

/** Adds what is stored of what is asked for; false where that is not known of all of it. */
function findKnown(versions: KnownVersions, { mapping: { table }, idsOf }: Asked, { stored }: Existing): boolean {
  for (const [userId, ids] of idsOf) {
    for (const id of ids) {
      const version = versions.find(versionKey(table, userId, id));
      if (!version) return false;
      if (version !== 'none') stored.set(keyOf(userId, id), { collection: table, userId, id, ...version });
    }
  }
  return true;
}

const selectStored = ({ mapping, users, ids }: Asked) =>
  `SELECT '${mapping.table}', user_id, id, sk, ${selectDay(mapping)}, fetched_at, content_hash
   FROM ${qualified(mapping.table)} WHERE user_id IN (${textList(users)}) AND id IN (${textList(ids)})`;

const NOTES = [
  { kind: 'tombstones', table: 'sync.tombstones', id: 'id', moment: 'removed_at', where: 'true' },
  { kind: 'refused', table: 'sync.rejected', id: 'id', moment: 'fetched_at', where: 'true' },
  { kind: 'suspected', table: 'sync.suspicions', id: 'object_id', moment: 'first_seen_at', where: `kind = 'missing'` },
] as const;

function selectNoted({ kind, table, id, moment, where }: (typeof NOTES)[number], asked: readonly Asked[]): string {
  const users = textList(new Set(asked.flatMap(({ users }) => [...users])));
  const ids = textList(new Set(asked.flatMap(({ ids }) => [...ids])));
  return `SELECT collection, user_id, ${id}, '${kind}', ${moment} FROM ${table} WHERE user_id IN (${users}) AND ${id} IN (${ids}) AND ${where}`;
}

const selectRefused = (asked: readonly Asked[]): string[] =>
  asked
    .filter(({ complete }) => complete.size > 0)
    .map(
      ({ mapping, complete }) =>
        `SELECT collection, user_id, id, fetched_at, day, start_at, end_at FROM sync.rejected
         WHERE user_id IN (${textList(complete)}) AND collection = ${quoteText(mapping.table)}`,
    );

/** Whether a complete reading would have brought it, were it still there. */
export function isReadAgain({ refusedAt, day, startAt, endAt }: Existing['earlier'][number], { completes, range }: DocumentPage): boolean {
  if (!completes || refusedAt >= completes.since) return false;
  if (!completes.days || !range) return !completes.days;
  if (day !== null) return day >= completes.days.from && day <= completes.days.to;
  return startAt !== null && endAt !== null && startAt >= range.startAt && endAt <= range.endAt;
}
