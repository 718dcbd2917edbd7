import { chmodSync, realpathSync, rmSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { resources } from '../../../../schema/index.ts';
import { messageOf, RingneckError } from '../../../base/errors.ts';
import { mapAll } from '../../mapping.ts';
import { number, text } from '../../rows.ts';
import { quoteName, quoteText, textList } from '../../sql.ts';
import { listTables } from '../../tables.ts';
import { select } from '../database.ts';
import { duckdb } from '../duckdb.ts';
import { isOutOfMemory, LARGE_BYTES, LacksMemory, Memory } from '../memory.ts';
import { copyTable, has, listPresent, type Present, ROWS_AT_ONCE, shownName } from './copy-tables.ts';
import { refuseOpen, waitForHolder } from './open-file.ts';
import { putInPlace } from './put-in-place.ts';

/** Whose rows go: the account, and the ids by which the service's events name the person and nobody else. */
export interface Person {
  userId: string;
  serviceUserIds: readonly string[];
}

const LIMITS = { bytes: LARGE_BYTES, threads: 2 };

/**
 * Replaces a warehouse that nobody has open by a new file of all that is not a person's: deleted rows would stay in the blocks and the log
 * of the old one. Killed at any moment it leaves the old file or the new one, whole. Whoever opens the file meanwhile meets a lock, on the old
 * one before the rename and on the new one after it. Where the path is a link, the file that it leads to is replaced, on its own disk.
 * @param beforeTable throws when there is no room on the disk
 * @returns how many rows went, by table
 * @throws TryLaterError naming the process that holds the file
 */
export async function rewriteWithout(given: string, person: Person, beforeTable: () => void): Promise<Record<string, number>> {
  refuseOpen(given);
  // DuckDB's log and what it spills lie beside that file too.
  const path = realpathSync(given);
  const temporary = `${path}.new`;
  const spill = `${path}.erase.tmp`;
  const remove = (...leftovers: string[]) => {
    for (const leftover of leftovers) rmSync(leftover, { force: true, recursive: true });
  };
  const instance = await duckdb.DuckDBInstance.create(':memory:', {
    memory_limit: `${LIMITS.bytes}B`,
    threads: String(LIMITS.threads),
    temp_directory: spill,
    autoinstall_known_extensions: 'false',
  });
  const connection = await instance.connect();
  try {
    await waitForHolder(path, () => connection.run(`ATTACH ${quoteText(path)} AS old`));
    // From here on they are nobody's: what a process that was killed has left, its spilled rows too.
    remove(temporary, `${temporary}.wal`, spill, `${path}.tmp`);
    const memory = new Memory(LIMITS);
    return await memory.enough(connection, 'erasing', async () => {
      try {
        return await replace({ connection, memory }, { path, temporary, person, beforeTable });
      } catch (error) {
        await connection.run('DETACH new').catch(() => undefined);
        remove(temporary, `${temporary}.wal`);
        throw error;
      }
    });
  } catch (error) {
    throw error instanceof LacksMemory ? new LacksMemory(`nothing was erased: ${error.message}`, 1, { cause: error }) : error;
  } finally {
    connection.closeSync();
    instance.closeSync();
    remove(spill);
  }
}

async function replace(
  { connection, memory }: { connection: DuckDBConnection; memory: Memory },
  { path, temporary, person, beforeTable }: { path: string; temporary: string; person: Person; beforeTable: () => void },
): Promise<Record<string, number>> {
  await connection.run(`ATTACH ${quoteText(temporary)} AS new`);
  chmodSync(temporary, 0o600);
  // Tables, views, macros, indexes and comments, those of others too.
  await connection.run('COPY FROM DATABASE old TO new (SCHEMA)');
  await replaceRequests(connection, person.userId);
  const present = await listPresent(connection, 'old', 'new');
  const removed = await memory.transaction(connection, () => copyRows(connection, present, person, beforeTable));
  for (const name of ['new', 'old']) await memory.runWithMost(connection, `CHECKPOINT ${name}`);
  putInPlace(temporary, path);
  // The old one first: what it does with a log of its name is done while nobody can have one for the new file.
  await connection.run('DETACH old');
  await connection.run('DETACH new');
  return removed;
}

const OURS: ReadonlySet<string> = new Set(listTables(mapAll(resources)).map(({ name }) => name));

/** One transaction: the copy is of one state, and counted against it. */
async function copyRows(
  connection: DuckDBConnection,
  present: readonly Present[],
  person: Person,
  beforeTable: () => void,
): Promise<Record<string, number>> {
  const removed: Record<string, number> = {};
  for (const table of present) {
    beforeTable();
    const { name, place } = table;
    const keep = conditionOf(table, person);
    await copyTable(connection, table, { from: 'old', to: 'new', selected: columnsOf(table), where: keep }).catch((error: unknown) => {
      if (isOutOfMemory(error)) throw error;
      const fix = OURS.has(shownName(table)) ? 'try again' : 'drop that table, or what it refers to, and try again';
      throw new RingneckError(`${messageOf(error)}: nothing was erased; ${fix}`, 1, { cause: error });
    });
    const [counts] = await select(
      connection,
      { copied: number, kept: number, gone: number },
      `SELECT (SELECT count(*) FROM new.${place}), (SELECT count(*) FROM old.${place} WHERE ${keep}),
              (SELECT count(*) FROM old.${place} WHERE NOT (${keep}))`,
    );
    const { copied = 0, kept = 0, gone = 0 } = counts ?? {};
    if (copied !== kept) throw new RingneckError(`${name} was not copied whole (${copied} rows of ${kept}): nothing was replaced`);
    if (gone > 0) removed[shownName(table)] = gone;
  }
  return removed;
}

/** What holds for the rows that stay; never NULL. */
function conditionOf(table: Present, { userId, serviceUserIds }: Person): string {
  const conditions = ['true'];
  if (has(table, 'user_id')) conditions.push(`user_id::VARCHAR IS DISTINCT FROM ${quoteText(userId)}`);
  if (has(table, 'service_user_id') && serviceUserIds.length) {
    conditions.push(`coalesce(service_user_id::VARCHAR NOT IN (${textList(serviceUserIds)}), true)`);
  }
  if (table.name === 'sync.runs') conditions.push('run_id NOT IN (SELECT run_id FROM temp.requests WHERE request IS NULL)');
  return conditions.join(' AND ');
}

function columnsOf({ name, columns }: Present): string {
  const names = columns.map(quoteName);
  if (name !== 'sync.runs') return names.join(', ');
  const replaced = '(SELECT r.request FROM temp.requests r WHERE r.run_id = runs.run_id)';
  return columns.map((column, i) => (column === 'request' ? `coalesce(${replaced}, request)` : names[i])).join(', ');
}

/** Lays the requests that name the person aside as they are without; NULL: the run was theirs alone. */
async function replaceRequests(connection: DuckDBConnection, userId: string): Promise<void> {
  await connection.run('CREATE OR REPLACE TEMP TABLE requests (run_id VARCHAR, request VARCHAR)');
  const rows = await select(
    connection,
    { runId: text, said: text },
    `SELECT run_id, request::VARCHAR FROM old.sync.runs WHERE contains(request::VARCHAR, ${quoteText(JSON.stringify(userId))})`,
  );
  const values = rows.flatMap(({ runId, said }) => {
    const request = requestWithout(parse(runId, said), userId);
    if (request === undefined) return [`(${quoteText(runId)}, NULL)`];
    const replaced = JSON.stringify(request);
    return replaced === said ? [] : [`(${quoteText(runId)}, ${quoteText(replaced)})`];
  });
  for (let i = 0; i < values.length; i += ROWS_AT_ONCE) {
    await connection.run(`INSERT INTO requests VALUES ${values.slice(i, i + ROWS_AT_ONCE).join(', ')}`);
  }
}

function parse(runId: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RingneckError(`the request of run ${runId} in sync.runs is not JSON (${messageOf(error)}): nothing was replaced`, 1, {
      cause: error,
    });
  }
}

/**
 * What a run was asked for, without a person; undefined when nobody else was asked. A person is named in lists of users, and by the
 * `user_id` or `userId` of an object in a list.
 */
export function requestWithout(request: unknown, userId: string): unknown {
  if (!isObject(request)) return request;
  const { users } = request;
  if (Array.isArray(users) && users.length > 0 && users.every(user => user === userId)) return undefined;
  return without(request, userId);
}

function without(value: unknown, userId: string): unknown {
  if (Array.isArray(value)) return value.filter(item => !isTheirs(item, userId)).map(item => without(item, userId));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key === 'users' && Array.isArray(item)) return [key, item.filter(user => user !== userId)];
      return [key, without(item, userId)];
    }),
  );
}

function isTheirs(item: unknown, userId: string): boolean {
  return isObject(item) && (item.user_id === userId || item.userId === userId);
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
