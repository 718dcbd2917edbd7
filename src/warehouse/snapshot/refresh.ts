import { constants, existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { RingneckError } from '../../base/errors.ts';
import { type Mapping, partsOf } from '../mapping.ts';
import { NeedsRebuild } from '../needs-rebuild.ts';
import { number, orNull, text } from '../rows.ts';
import { literal, quoteName, quoteText, textList } from '../sql.ts';
import { firstLine, select } from '../store/database.ts';
import { isOutOfMemory } from '../store/memory.ts';
import { isWrittenByEntries, selectDay, type Table } from '../tables.ts';
import type { DirtySet } from '../write/dirty-set.ts';
import { findAbout, selectId, snapshotDeclarations, writeAbout } from './metadata.ts';
import { publishedTables, publishing, run, type SnapshotParts, schemaName } from './publish.ts';

/** With more of its rows changed since they were sorted, sorting them all anew is worth its time. */
const MOST_CHANGED = 1 / 3;
/** Of so many documents DuckDB finds the samples best by literals; of more by reading a table once. */
const FEW_DOCUMENTS = 50;
/** Of more accounts a list of them saves nothing. */
const FEW_USERS = 50;

/**
 * Brings the published snapshot up to date: what differs from the warehouse is replaced in a copy of it, which is then published. What
 * differs is found by comparing the two, whatever has happened in between: by the versions of documents, by count and newest request for
 * each day of heart rate, by the hashes of the ledger's rows.
 * @param find asked once the state that is read is settled: where what is committed by then may have changed something. Undefined: anywhere
 * @returns rows added and removed
 * @throws NeedsRebuild when a full one is called for; then nothing has changed
 */
export async function refreshSnapshot(parts: SnapshotParts, find: (() => DirtySet) | undefined): Promise<number> {
  try {
    return await refresh(parts, find);
  } catch (error) {
    if (error instanceof NeedsRebuild || error instanceof RingneckError || isOutOfMemory(error)) throw error;
    // As where the file cannot be read.
    throw new NeedsRebuild(firstLine(error), { cause: error });
  }
}

async function refresh(parts: SnapshotParts, find: (() => DirtySet) | undefined): Promise<number> {
  const { connection, memory, mappings, path, takenAt } = parts;
  if (!existsSync(path)) throw new NeedsRebuild('there is none yet');
  if (existsSync(`${path}.wal`)) throw new NeedsRebuild('somebody has opened it for writing');
  let changed = 0;
  await publishing(
    parts,
    async source => {
      const about = await findAbout(connection);
      const declarations = snapshotDeclarations(mappings);
      if (about?.declarations !== declarations) throw new NeedsRebuild('it was made by another version');
      const work = async () => {
        const { total, growth } = await compareCounts(connection, source, publishedTables(mappings));
        const ensureWorthwhile = (rows: number) => {
          if (about.changedRows + rows > MOST_CHANGED * total) throw new NeedsRebuild('much has changed since it was sorted');
        };
        ensureWorthwhile(growth);
        // A change that is seen was committed before that first reading.
        const dirty = find?.();
        for (const mapping of mappings) {
          const users = dirty?.tables.get(mapping.table);
          if (!dirty || users) changed += await refreshDocuments(parts, source, mapping, users);
        }
        changed += await refreshHeartRate(parts, source, dirty?.heartRate);
        for (const table of publishedTables(mappings)) {
          if (isWrittenByEntries(table)) changed += await refreshEntries(parts, source, table);
        }
        ensureWorthwhile(changed);
        const { differing } = await compareCounts(connection, source, publishedTables(mappings));
        if (differing.length) throw new NeedsRebuild(`it differs from the warehouse in ${differing.join(', ')}`);
        await writeAbout(connection, mappings, selectId(source), {
          takenAt,
          sortedAt: about.sortedAt,
          changedRows: about.changedRows + changed,
          declarations,
        });
        await dropLists(connection);
      };
      await memory.transaction(connection, work);
    },
    temporary => copyFile(path, temporary, constants.COPYFILE_FICLONE),
  );
  return changed;
}

/** What comparing has left in the connection. */
export async function dropLists(connection: DuckDBConnection): Promise<void> {
  for (const list of ['leaving', 'coming', 'differing']) await connection.run(`DROP TABLE IF EXISTS temp.${list}`);
}

export async function compareCounts(connection: DuckDBConnection, source: string, tables: readonly { name: string; place?: string }[]) {
  const selects = tables.map(
    ({ name, place = schemaName(name) }) =>
      `SELECT ${quoteText(name)}, (SELECT count(*) FROM ${source}.${place}), (SELECT count(*) FROM snapshot.${place})`,
  );
  const rows = await select(connection, { name: text, ours: number, theirs: number }, selects.join(' UNION ALL '));
  return {
    total: rows.reduce((sum, { ours }) => sum + ours, 0),
    growth: rows.reduce((sum, { ours, theirs }) => sum + Math.abs(ours - theirs), 0),
    differing: rows.flatMap(({ name, ours, theirs }) => (ours === theirs ? [] : [name])),
  };
}

type RefreshParts = Pick<SnapshotParts, 'connection' | 'mappings' | 'signal'>;

/**
 * Makes the documents of the attached copy, and the rows of their parts, those of the warehouse.
 * @param users where to look; undefined: everywhere
 */
export async function refreshDocuments(
  parts: RefreshParts,
  source: string,
  mapping: Mapping,
  users: ReadonlySet<string> | undefined,
): Promise<number> {
  const { connection, mappings, signal } = parts;
  const table = schemaName(mapping.table);
  // By all three: a number that was given and went with its document is given again after a restart.
  const same = 'other.sk = one.sk AND other.fetched_at = one.fetched_at AND other.content_hash = one.content_hash';
  const among = (table: string) => (users && users.size <= FEW_USERS ? `${table}.user_id IN (${textList(users)})` : 'true');
  const differences = (name: string, of: string, to: string) =>
    run(
      connection,
      signal,
      `CREATE OR REPLACE TEMP TABLE ${name} AS SELECT sk, user_id, ${selectDay(mapping)}
       FROM ${of}.${table} one WHERE ${among('one')} AND NOT EXISTS (FROM ${to}.${table} other WHERE ${among('other')} AND ${same})`,
    );
  await differences('leaving', 'snapshot', source);
  await differences('coming', source, 'snapshot');
  const [leaving, coming] = [await findVersions(connection, 'leaving'), await findVersions(connection, 'coming')];
  const dayOf = new Map([[mapping.table, mapping.resource.dayField], ...partsOf(mapping).map(({ table }) => [table, 'day'] as const)]);
  let changed = 0;
  for (const one of publishedTables(mappings)) {
    const day = dayOf.get(one.name);
    if (day === undefined) continue;
    if (leaving) changed += await run(connection, signal, `DELETE FROM snapshot.${schemaName(one.name)} WHERE ${leaving(day)}`);
    if (coming) changed += await copyRows(parts, source, one, coming(day));
  }
  return changed;
}

/** The rows of the versions that a temporary table lists, by the column that has their day; undefined when it lists none. */
async function findVersions(connection: DuckDBConnection, list: string): Promise<((day: string) => string) | undefined> {
  const rows = await select(
    connection,
    { sk: number, user: text, day: orNull(text) },
    `SELECT sk, user_id, day FROM ${list} LIMIT ${FEW_DOCUMENTS + 1}`,
  );
  if (!rows.length) return undefined;
  if (rows.length > FEW_DOCUMENTS) return () => `sk IN (SELECT sk FROM ${list})`;
  const users = textList(new Set(rows.map(({ user }) => user)));
  const days = textList(new Set(rows.flatMap(({ day }) => day ?? [])));
  const versions = `sk IN (${rows.map(({ sk }) => sk).join(', ')}) AND user_id IN (${users})`;
  return day => (days ? `${versions} AND ${quoteName(day)} IN (${days})` : versions);
}

/** The same for heart rate. */
export async function refreshHeartRate(parts: RefreshParts, source: string, ranges: DirtySet['heartRate'] | undefined): Promise<number> {
  if (ranges?.size === 0) return 0;
  const { connection, mappings, signal } = parts;
  const where = ranges ? between([...ranges.keys()], [...ranges.values()]) : 'true';
  // Rows come with a newer request than those that they replace: of as many rows the sum has grown.
  const days = (database: string) =>
    `SELECT user_id, ts::DATE AS day, count(*), sum(epoch_us(fetched_at)) FROM ${database}.main.heart_rate WHERE ${where} GROUP BY ALL`;
  await run(
    connection,
    signal,
    `CREATE OR REPLACE TEMP TABLE differing AS SELECT DISTINCT user_id, day FROM
     ((${days(source)} EXCEPT ${days('snapshot')}) UNION ALL (${days('snapshot')} EXCEPT ${days(source)}))`,
  );
  const found = await select(
    connection,
    { user: text, from: number, to: number },
    `SELECT user_id, epoch_us(min(day)::TIMESTAMP), epoch_us(max(day)::TIMESTAMP + INTERVAL 1 DAY) FROM differing GROUP BY user_id`,
  );
  if (!found.length) return 0;
  const bounds = between(
    found.map(({ user }) => user),
    found.map(({ from, to }) => [from, to]),
  );
  const condition = `${bounds} AND (user_id, ts::DATE) IN (SELECT (user_id, day) FROM differing)`;
  const table = publishedTables(mappings).find(({ name }) => name === 'heart_rate')!;
  const left = await run(connection, signal, `DELETE FROM snapshot.main.heart_rate WHERE ${condition}`);
  return left + (await copyRows(parts, source, table, condition));
}

function between(users: readonly string[], ranges: readonly (readonly [number, number])[]): string {
  const moment = (micros: number) => literal(micros, 'TIMESTAMP');
  const [from, to] = ranges.reduce(([from, to], range) => [Math.min(from, range[0]), Math.max(to, range[1])]);
  return `user_id IN (${textList(new Set(users))}) AND ts >= ${moment(from)} AND ts < ${moment(to)}`;
}

/** Rows that were written as entries have no number: what is equal in every column is the same. */
async function refreshEntries(parts: SnapshotParts, source: string, table: Table): Promise<number> {
  const { connection, signal } = parts;
  const name = schemaName(table.name);
  const hash = `hash(${table.columns.map(column => quoteName(column.name)).join(', ')})`;
  const missingIn = (database: string) => `${hash} NOT IN (SELECT ${hash} FROM ${database}.${name})`;
  let changed = await run(connection, signal, `DELETE FROM snapshot.${name} WHERE ${missingIn(source)}`);
  changed += await copyRows(parts, source, table, missingIn('snapshot'));
  const { differing } = await compareCounts(connection, source, [table]);
  // Rows that are there several times.
  if (differing.length) {
    changed += await run(connection, signal, `DELETE FROM snapshot.${name}`);
    changed += await copyRows(parts, source, table, 'true');
  }
  return changed;
}

function copyRows({ connection, signal }: RefreshParts, source: string, table: Table, condition: string): Promise<number> {
  const names = table.columns.map(({ name }) => quoteName(name)).join(', ');
  const name = schemaName(table.name);
  return run(connection, signal, `INSERT INTO snapshot.${name} (${names}) SELECT ${names} FROM ${source}.${name} WHERE ${condition}`);
}
