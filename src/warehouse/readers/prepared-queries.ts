import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBPreparedStatement } from '@duckdb/node-api';
import { messageOf, RingneckError } from '../../base/errors.ts';
import type { Value } from '../sql.ts';
import { plainValue } from '../store/database.ts';
import { openReader, type Reader } from './open-reader.ts';

/** A result by its columns, all of the same length: whole numbers as numbers, instants as microseconds, days as text. */
export type Columns = Record<string, Value[]>;

interface Limits {
  /** As DuckDB takes it: `256MB`. */
  memoryLimit: string;
  threads: number;
}

/** The queries of a folder, each `NAME.sql` with parameters as `$user`, over a file that others replace: asked of what lies there now. */
export class PreparedQueries {
  readonly #folder: string;
  readonly #path: string;
  readonly #limits: Limits;
  #open: { stamp: string; reader: Reader; statements: Map<string, DuckDBPreparedStatement> } | undefined;

  constructor(folder: string, path: string, limits: Limits) {
    this.#folder = folder;
    this.#path = path;
    this.#limits = limits;
  }

  /** One at a time. Parameters that the query does not name are left out. */
  async ask(name: string, parameters: Readonly<Record<string, Value>>): Promise<Columns> {
    const statement = await this.#prepare(name);
    statement.clearBindings();
    for (let index = 1; index <= statement.parameterCount; index++) {
      const key = statement.parameterName(index);
      const value = parameters[key];
      if (value === undefined) throw new RingneckError(`the query ${name} needs ${key}`);
      if (value === null) statement.bindNull(index);
      else if (typeof value === 'number') statement.bindDouble(index, value);
      else if (typeof value === 'boolean') statement.bindBoolean(index, value);
      else statement.bindVarchar(index, value);
    }
    const result = await statement.runAndReadAll();
    const names = result.columnNames();
    return Object.fromEntries(result.getColumns().map((column, index) => [names[index], column.map(plainValue)]));
  }

  close(): void {
    this.#open?.reader.close();
    this.#open = undefined;
  }

  async #prepare(name: string): Promise<DuckDBPreparedStatement> {
    const { reader, statements } = await this.#reader();
    const known = statements.get(name);
    if (known) return known;
    const sql = readFileSync(join(this.#folder, `${name}.sql`), 'utf8');
    const statement = await reader.connection.prepare(sql).catch(error => {
      // The queries are ours: a file that lacks what they name is not.
      if (!/^(Catalog|Binder) Error/.test(messageOf(error))) throw error;
      const message = `${this.#path} was made by another version of Ringneck: ringneck snapshot publishes a new one, and so does ringneck up`;
      throw new RingneckError(message, 1, { cause: error });
    });
    statements.set(name, statement);
    return statement;
  }

  async #reader() {
    const stats = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    const stamp = stats ? `${stats.ino} ${stats.mtimeNs} ${stats.size}` : '';
    if (this.#open?.stamp === stamp) return this.#open;
    this.close();
    const reader = await openReader({ path: this.#path, ...this.#limits });
    this.#open = { stamp, reader, statements: new Map() };
    return this.#open;
  }
}
