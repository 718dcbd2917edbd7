import { existsSync } from 'node:fs';
import type { DuckDBConnection, DuckDBExtractedStatements, DuckDBResult, DuckDBType, DuckDBValue } from '@duckdb/node-api';
import { ResultReturnType } from '@duckdb/node-api';
import { messageOf, RingneckError } from '../errors.ts';
import { openWaiting, refuseOpen } from './database.ts';
import { formatJson, formatText } from './format-value.ts';

/** A value of a result, to be printed by the functions of its column. */
export type Cell = DuckDBValue;

export interface ResultColumn {
  name: string;
  /** DuckDB's name of the type: `BIGINT`, `VARCHAR[]`. */
  type: string;
  /** Whether the values are numbers, which tables set to the right. */
  numeric: boolean;
  /** The JSON text of a value, as in DuckDB's JSON mode. */
  json(value: Cell): string;
  /** The text of a value, as in DuckDB's tables and CSV; null for NULL. */
  text(value: Cell): string | null;
}

export interface QueryResult {
  /** Empty for a statement that has no result. */
  columns: ResultColumn[];
  /** Rows as they come, a chunk of at most 2,048 at a time. To be read to its end, or returned from, before the next query. */
  chunks: AsyncGenerator<Cell[][]>;
}

export interface Reader {
  /**
   * Runs SQL. Of several statements all are run, and the last one's result is given.
   * @throws RingneckError with what DuckDB says, also while the chunks are read
   */
  query(sql: string): Promise<QueryResult>;
  /** Stops the query under way, which then throws. */
  interrupt(): void;
  close(): void;
}

/**
 * Opens a warehouse or a snapshot for an analyst's SQL, in a process of its own: a statement can end the DuckDB instance it runs in.
 * Nothing outside of the file can be reached.
 * @throws TryLaterError naming the process that holds the file, after waiting for it
 */
export async function openReader(
  path: string,
  { memoryLimit = '1GB', patienceMs }: { memoryLimit?: string; patienceMs?: number } = {},
): Promise<Reader> {
  if (!existsSync(path)) throw new RingneckError(`there is no file ${path} yet: run a backfill first`);
  refuseOpen(path);
  const instance = await openWaiting(
    path,
    {
      access_mode: 'READ_ONLY',
      // Two processes must not spill into one folder, which is what DuckDB does with readers of one file. Refused once external access is off.
      temp_directory: `${path}.${process.pid}.tmp`,
      enable_external_access: 'false',
      autoload_known_extensions: 'false',
      memory_limit: memoryLimit,
      lock_configuration: 'true',
    },
    patienceMs,
  );
  const connection = await instance.connect();
  let closed = false;
  return {
    query: sql => query(connection, sql),
    interrupt: () => connection.interrupt(),
    close() {
      if (closed) return;
      closed = true;
      connection.closeSync();
      instance.closeSync();
    },
  };
}

async function query(connection: DuckDBConnection, sql: string): Promise<QueryResult> {
  if (sql.includes('\0')) throw new RingneckError('the SQL holds a NUL character');
  let last: DuckDBResult | undefined;
  try {
    const statements = await extract(connection, sql);
    for (let i = 0; i < statements.count; i++) {
      const prepared = await statements.prepare(i);
      try {
        if (i < statements.count - 1) await prepared.run();
        else last = await prepared.stream();
        // A streamed statement is done only when its result is read.
        if (last && last.returnType !== ResultReturnType.QUERY_RESULT) await last.fetchAllChunks();
      } finally {
        prepared.destroySync();
      }
    }
  } catch (error) {
    throw queryError(error);
  }
  if (!last) throw new RingneckError('there is no SQL statement to run');
  if (last.returnType !== ResultReturnType.QUERY_RESULT) return { columns: [], chunks: noChunks() };
  const types = last.columnTypes();
  return { columns: last.columnNames().map((name, i) => describe(name, types[i]!)), chunks: readChunks(last) };
}

async function extract(connection: DuckDBConnection, sql: string): Promise<{ count: number } & Pick<DuckDBExtractedStatements, 'prepare'>> {
  try {
    return await connection.extractStatements(sql);
  } catch (error) {
    // What the bindings say of a text without any statement.
    if (messageOf(error) === 'Error in native callback') throw new RingneckError('there is no SQL statement to run');
    throw error;
  }
}

const NUMERIC = /^(U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|BIGNUM|DECIMAL\(.*\))$/;

function describe(name: string, type: DuckDBType): ResultColumn {
  const typeName = type.alias ?? String(type);
  return {
    name,
    type: typeName,
    numeric: NUMERIC.test(typeName),
    json: value => formatJson(value, type),
    text: value => formatText(value, type),
  };
}

async function* readChunks(result: DuckDBResult): AsyncGenerator<Cell[][]> {
  try {
    for await (const rows of result.yieldRows()) if (rows.length) yield rows;
  } catch (error) {
    throw queryError(error);
  }
}

async function* noChunks(): AsyncGenerator<Cell[][]> {}

/** What DuckDB says, with the place in the statement where it shows one. */
function queryError(error: unknown): RingneckError {
  if (error instanceof RingneckError) return error;
  const message = messageOf(error)
    .replace(/^Failed to (extract|prepare) statements?: /, '')
    .replace(/\n{2,}/g, '\n')
    .trimEnd();
  return new RingneckError(message, 1, { cause: error });
}
