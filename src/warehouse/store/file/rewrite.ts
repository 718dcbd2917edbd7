import { chmodSync, realpathSync, rmSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { resources } from '../../../../schema/index.ts';
import { messageOf, RingneckError } from '../../../base/errors.ts';
import { mapAll } from '../../mapping.ts';
import { number, text } from '../../rows.ts';
import { quoteName, quoteText } from '../../sql.ts';
import { listTables } from '../../tables.ts';
import { select } from '../database.ts';
import { duckdb } from '../duckdb.ts';
import { isOutOfMemory, LARGE_BYTES, LacksMemory, Memory } from '../memory.ts';
import { copyTable, listPresent, type Present, ROWS_AT_ONCE, shownName } from './copy-tables.ts';
import { refuseOpen, waitForHolder } from './open-file.ts';
import { putInPlace } from './put-in-place.ts';

/** How the new file differs from the old one. */
export interface Rewriting {
  /** `erasing`, `moving`: for whoever lacks memory. */
  doing: string;
  /** `erased`, `moved`: what nothing is where it fails. */
  done: string;
  /** What a run was asked for as it is to be: itself where nothing changes, undefined where the run goes. */
  request(request: unknown): unknown;
  /** Part of the requests that may change: a text that they have in them. */
  requestHolds: string;
  /** Which rows stay: a condition that is never NULL. */
  keep(table: Present): string;
  /** What is written in the place of a column, where that is not what it holds. */
  replace?(table: Present, column: string): string | undefined;
  /** Which rows are counted: a condition that is never NULL. */
  counted(table: Present): string;
  /** Throws when there is no room on the disk. */
  beforeTable(): void;
}

const LIMITS = { bytes: LARGE_BYTES, threads: 2 };

/**
 * Replaces a warehouse that nobody has open by a new file: what was changed in place would stay in the blocks and the log of the old one.
 * Killed at any moment it leaves the old file or the new one, whole. Whoever opens the file meanwhile meets a lock, on the old one before
 * the rename and on the new one after it. Where the path is a link, the file that it leads to is replaced, on its own disk.
 * @returns how many rows were counted, by table
 * @throws TryLaterError naming the process that holds the file
 */
export async function rewriteFile(given: string, rewriting: Rewriting): Promise<Record<string, number>> {
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
    return await memory.enough(connection, rewriting.doing, async () => {
      try {
        return await replace({ connection, memory }, { path, temporary, rewriting });
      } catch (error) {
        await connection.run('DETACH new').catch(() => undefined);
        remove(temporary, `${temporary}.wal`);
        throw error;
      }
    });
  } catch (error) {
    throw error instanceof LacksMemory ? new LacksMemory(`nothing was ${rewriting.done}: ${error.message}`, 1, { cause: error }) : error;
  } finally {
    connection.closeSync();
    instance.closeSync();
    remove(spill);
  }
}

async function replace(
  { connection, memory }: { connection: DuckDBConnection; memory: Memory },
  { path, temporary, rewriting }: { path: string; temporary: string; rewriting: Rewriting },
): Promise<Record<string, number>> {
  await connection.run(`ATTACH ${quoteText(temporary)} AS new`);
  chmodSync(temporary, 0o600);
  // Tables, views, macros, indexes and comments, those of others too.
  await connection.run('COPY FROM DATABASE old TO new (SCHEMA)');
  await layRequestsAside(connection, 'old', rewriting);
  const present = await listPresent(connection, 'old', 'new');
  const counted = await memory.transaction(connection, () => copyRows(connection, present, rewriting));
  for (const name of ['new', 'old']) {
    await memory.runWithMost(connection, `CHECKPOINT ${name}`).catch((error: unknown) => {
      if (isOutOfMemory(error)) throw error;
      throw new RingneckError(`nothing was ${rewriting.done}, for the new file could not be written whole: ${messageOf(error)}`, 1, {
        cause: error,
      });
    });
  }
  putInPlace(temporary, path);
  // The old one first: what it does with a log of its name is done while nobody can have one for the new file.
  await connection.run('DETACH old');
  await connection.run('DETACH new');
  return counted;
}

const OURS: ReadonlySet<string> = new Set(listTables(mapAll(resources)).map(({ name }) => name));

/** One transaction: the copy is of one state, and counted against it. */
async function copyRows(connection: DuckDBConnection, present: readonly Present[], rewriting: Rewriting): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of present) {
    rewriting.beforeTable();
    const { name, place } = table;
    const keep = [rewriting.keep(table), ...(name === 'sync.runs' ? [STAYS] : [])].join(' AND ');
    const counted = [rewriting.counted(table), ...(name === 'sync.runs' ? [`NOT (${STAYS})`] : [])].join(' OR ');
    await copyTable(connection, table, { from: 'old', to: 'new', selected: columnsOf(table, rewriting), where: keep }).catch(
      (error: unknown) => {
        if (isOutOfMemory(error)) throw error;
        const fix = OURS.has(shownName(table)) ? 'try again' : 'drop that table, or what it refers to, and try again';
        throw new RingneckError(`${messageOf(error)}: nothing was ${rewriting.done}; ${fix}`, 1, { cause: error });
      },
    );
    const [found] = await select(
      connection,
      { copied: number, kept: number, counted: number },
      `SELECT (SELECT count(*) FROM new.${place}), (SELECT count(*) FROM old.${place} WHERE ${keep}),
              (SELECT count(*) FROM old.${place} WHERE ${counted})`,
    );
    const { copied = 0, kept = 0, counted: affected = 0 } = found ?? {};
    if (copied !== kept) throw new RingneckError(`${name} was not copied whole (${copied} rows of ${kept}): nothing was replaced`);
    if (affected > 0) counts[shownName(table)] = affected;
  }
  return counts;
}

/** Holds for a run that stays. */
export const STAYS = 'run_id NOT IN (SELECT run_id FROM temp.requests WHERE request IS NULL)';

function columnsOf(table: Present, { replace }: Rewriting): string {
  const isRequest = (column: string) => table.name === 'sync.runs' && column === 'request';
  const replaced = (column: string) =>
    isRequest(column)
      ? 'coalesce((SELECT r.request FROM temp.requests r WHERE r.run_id = runs.run_id), request)'
      : replace?.(table, column);
  const written = (column: string) => [replaced(column), quoteName(column)].filter(part => part !== undefined).join(' AS ');
  return table.columns.map(written).join(', ');
}

/** Lays the requests of an attached warehouse that change aside as they are to be, in `temp.requests`; NULL: the run goes. */
export async function layRequestsAside(
  connection: DuckDBConnection,
  database: string,
  { request, requestHolds }: Pick<Rewriting, 'request' | 'requestHolds'>,
): Promise<void> {
  await connection.run('CREATE OR REPLACE TEMP TABLE requests (run_id VARCHAR, request VARCHAR)');
  const rows = await select(
    connection,
    { runId: text, said: text },
    `SELECT run_id, request::VARCHAR FROM ${database}.sync.runs WHERE contains(request::VARCHAR, ${quoteText(requestHolds)})`,
  );
  const values = rows.flatMap(({ runId, said }) => {
    const changed = request(parse(runId, said));
    if (changed === undefined) return [`(${quoteText(runId)}, NULL)`];
    const replaced = JSON.stringify(changed);
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

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
