import type { DuckDBConnection, DuckDBPreparedStatement, DuckDBResult, DuckDBType, DuckDBValue, StatementType } from '@duckdb/node-api';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { duckdb } from '../store/duckdb.ts';
import { formatJson, formatText } from './format-value.ts';
import { openReader } from './open-reader.ts';

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
  /** Counts the rows that `chunks` has not given yet, without reading what is in them; gives up after so long. */
  countRest(withinMs: number): Promise<{ rows: number; ended: boolean }>;
}

export interface Queries {
  /**
   * Runs SQL. Of several statements all are run, and the last one's result is given.
   * @throws RingneckError with what DuckDB says, also while the chunks are read
   */
  query(sql: string): Promise<QueryResult>;
  /** Runs SQL and gives the result of each statement in turn. */
  results(sql: string): AsyncGenerator<QueryResult>;
  close(): void;
}

/**
 * Opens a warehouse or a snapshot for an analyst's SQL, in a process of its own: a statement can end the DuckDB instance it runs in.
 * No file can be reached, not even the opened one by its name; so nothing spills either, and what needs more memory fails.
 * @throws TryLaterError naming the process that holds the file, after waiting for it
 */
export async function openQueries(
  path: string,
  { memoryLimit = '1GB', patienceMs }: { memoryLimit?: string; patienceMs?: number } = {},
): Promise<Queries> {
  const reader = await openReader({ path, memoryLimit, ...(patienceMs === undefined ? {} : { patienceMs }) });
  try {
    await reader.connection.run(LOCKS);
  } catch (error) {
    reader.close();
    throw queryError(error);
  }
  const session = new Session(reader.connection);
  let closed = false;
  return {
    query: sql => session.query(sql),
    results: sql => session.results(sql),
    close() {
      if (closed) return;
      closed = true;
      reader.close();
    },
  };
}

/**
 * Without external access DuckDB still lets a statement write to the opened file by its name, and to its log: `COPY … TO` overwrites them,
 * also in a file that is open READ_ONLY. Without any file system nobody can; the opened file stays readable.
 */
const LOCKS = `SET disabled_filesystems = 'LocalFileSystem'; SET lock_configuration = true`;

class Session {
  readonly connection: DuckDBConnection;
  /** Whether a transaction of ours is open around a streamed result. */
  #open = false;
  /** Whether the user has one open. */
  #theirs = false;

  constructor(connection: DuckDBConnection) {
    this.connection = connection;
  }

  async query(sql: string): Promise<QueryResult> {
    return this.#attempt(async () => {
      const statements = await this.#extract(sql);
      for (let i = 0; i < statements.count - 1; i++) {
        await using(await statements.prepare(i), async statement => {
          await statement.run();
          this.#note(statement);
        });
      }
      return this.#stream(sql, statements, statements.count - 1);
    });
  }

  async *results(sql: string): AsyncGenerator<QueryResult> {
    const statements = await this.#attempt(() => this.#extract(sql));
    for (let i = 0; i < statements.count; i++) {
      await this.#end();
      yield await this.#attempt(() => this.#stream(sql, statements, i));
    }
  }

  async #extract(sql: string): Promise<Statements> {
    if (sql.includes('\0')) throw new RingneckError('the SQL holds a NUL character');
    await this.#end();
    return extract(this.connection, sql);
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      // After an error that ended the database there is nothing left to roll back.
      await this.#end().catch(() => undefined);
      throw queryError(error);
    }
  }

  async #stream(sql: string, statements: Statements, index: number): Promise<QueryResult> {
    const result = await using(await statements.prepare(index), async statement => {
      if (STREAMED.has(statement.statementType)) await this.#begin();
      const streamed = await statement.stream();
      this.#note(statement);
      return streamed;
    });
    if (result.returnType !== duckdb.ResultReturnType.QUERY_RESULT) {
      // A streamed statement is done only when its result is read.
      await result.fetchAllChunks();
      return { columns: [], chunks: noChunks(), countRest: async () => ({ rows: 0, ended: true }) };
    }
    const types = result.columnTypes();
    const ensureWhole = async () => {
      if (await this.#failed()) throw await this.#why(sql, index);
    };
    return {
      columns: types.map((type, i) => describe(result.columnName(i), type)),
      chunks: this.#read(result, ensureWhole),
      countRest: withinMs => countRows(result, performance.now() + withinMs, ensureWhole),
    };
  }

  async *#read(result: DuckDBResult, ensureWhole: () => Promise<void>): AsyncGenerator<Cell[][]> {
    try {
      for await (const rows of result.yieldRows()) if (rows.length) yield rows;
      await ensureWhole();
    } catch (error) {
      throw queryError(error);
    } finally {
      await this.#end();
    }
  }

  /**
   * Whether the stream ended by an error. DuckDB's fetch ends in the same way after the last row and after an error, and the bindings
   * show no more; but an error aborts the transaction around it, and that can be seen.
   */
  async #failed(): Promise<boolean> {
    try {
      await this.connection.run('SELECT 1');
      return false;
    } catch (error) {
      if (/transaction is aborted/i.test(messageOf(error))) return true;
      throw error;
    }
  }

  /** The error that ended a stream: only running it again tells, this time without a stream. */
  async #why(sql: string, index: number): Promise<Error> {
    await this.#end();
    try {
      // A statement that was extracted can be prepared once only.
      const { count, prepare } = await extract(this.connection, sql);
      if (count === 1) await this.connection.run(`EXPLAIN ANALYZE ${sql}`);
      else await using(await prepare(index), statement => statement.run());
    } catch (error) {
      return queryError(error);
    }
    return new RingneckError('the query failed after some of its rows, for a reason that did not come up again');
  }

  async #begin(): Promise<void> {
    // In a transaction of the user's own there is no need of ours, and DuckDB would abort theirs.
    if (this.#theirs) return;
    await this.connection.run('BEGIN TRANSACTION');
    this.#open = true;
  }

  /** A statement of the user about transactions that succeeded was a BEGIN where none was open, and the end of one where one was. */
  #note({ statementType }: DuckDBPreparedStatement): void {
    if (statementType === duckdb.StatementType.TRANSACTION) this.#theirs = !this.#theirs;
  }

  async #end(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    await this.connection.run('ROLLBACK');
  }
}

/** What may give many rows. Others, as SET or COMMIT, may not be possible in a transaction. */
const STREAMED: ReadonlySet<StatementType> = new Set([
  duckdb.StatementType.SELECT,
  duckdb.StatementType.EXECUTE,
  duckdb.StatementType.CALL,
  duckdb.StatementType.RELATION,
]);

async function using<T>(statement: DuckDBPreparedStatement, work: (statement: DuckDBPreparedStatement) => Promise<T>): Promise<T> {
  try {
    return await work(statement);
  } finally {
    statement.destroySync();
  }
}

interface Statements {
  count: number;
  prepare(index: number): Promise<DuckDBPreparedStatement>;
}

async function extract(connection: DuckDBConnection, sql: string): Promise<Statements> {
  try {
    const statements = await connection.extractStatements(sql);
    return { count: statements.count, prepare: index => statements.prepare(index) };
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

async function countRows(result: DuckDBResult, until: number, ensureWhole: () => Promise<void>): Promise<{ rows: number; ended: boolean }> {
  for (let rows = 0; ; ) {
    const chunk = await result.fetchChunk();
    if (!chunk?.rowCount) {
      await ensureWhole();
      return { rows, ended: true };
    }
    rows += chunk.rowCount;
    if (performance.now() > until) return { rows, ended: false };
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
