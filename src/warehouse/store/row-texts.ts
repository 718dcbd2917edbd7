import type { DuckDBConnection } from '@duckdb/node-api';
import { quoteName, type Value } from '../sql.ts';

/** Of so many rows DuckDB holds all texts at once: one of its vectors. */
const ROWS = 2048;
/** As they lie in memory and as they are written, for each of two threads. */
const COPIES = 4;
/** Of what this process has stored: a larger one than that gains more than the 30 ms that it takes to ask. */
const SAMPLES_BEFORE_ASKING = 250_000;

/**
 * How many bytes the texts of one row have, of the row that has most of them: what a commit and a checkpoint need grows with it. Nothing is
 * known of a file before somebody asks it.
 */
export class RowTexts {
  #longest: number | undefined;
  #samples = 0;

  get isWorthAsking(): boolean {
    return this.#longest === undefined && this.#samples >= SAMPLES_BEFORE_ASKING;
  }

  /** What all that are held at once may take; undefined while nothing is known. */
  get bytes(): number | undefined {
    return this.#longest === undefined ? undefined : this.#longest * ROWS * COPIES;
  }

  /** Asks what DuckDB has noted of each column: it reads no rows. What was longer once still counts. */
  async ask(connection: DuckDBConnection): Promise<void> {
    // Where it fails it is tried again so much later.
    this.#samples = 0;
    const read = async (sql: string) => (await connection.runAndReadAll(sql)).getRows() as string[][];
    const listed = await read(
      `SELECT schema_name, table_name, column_name FROM duckdb_tables() JOIN duckdb_columns() USING (database_name, schema_name, table_name)
       WHERE database_name = current_database() AND data_type IN ('VARCHAR', 'JSON')`,
    );
    const columns = new Map<string, string[]>();
    for (const [schema, name, column] of listed) {
      const table = `${quoteName(schema!)}.${quoteName(name!)}`;
      columns.set(table, [...(columns.get(table) ?? []), `stats(${quoteName(column!)})`]);
    }
    const selects = [...columns].map(([table, stats]) => `(SELECT concat_ws('\n', ${stats.join(', ')}) FROM ${table} LIMIT 1)`);
    // An empty table has no row that would tell.
    const noted = selects.length ? await read(selects.join(' UNION ALL ')) : [];
    this.#longest = Math.max(this.#longest ?? 0, ...noted.map(([stats]) => sumOfLengths(stats!)));
  }

  noteSamples(count: number): void {
    this.#samples += count;
  }

  /** What a row has that is about to be committed. */
  note(values: readonly Value[]): void {
    if (this.#longest === undefined) return;
    let bytes = 0;
    for (const value of values) if (typeof value === 'string') bytes += Buffer.byteLength(value);
    if (bytes > this.#longest) this.#longest = bytes;
  }
}

/** Of a line for each column; where one does not tell, the texts may have any length. */
function sumOfLengths(stats: string): number {
  const lengths = stats.split('\n').map(line => /Max String Length: (\d+)/.exec(line)?.[1]);
  return lengths.reduce((sum, length) => sum + (length === undefined ? Number.POSITIVE_INFINITY : Number(length)), 0);
}
