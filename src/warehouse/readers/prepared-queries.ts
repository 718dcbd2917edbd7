import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBConnection, DuckDBPreparedStatement } from '@duckdb/node-api';
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

/** Most of what is asked is too small for DuckDB to divide among threads: two questions at once take two cores. */
const LANES = 2;

/** The queries of a folder, each `NAME.sql` with parameters as `$user`, over a file that others replace: asked of what lies there now. */
export class PreparedQueries {
  readonly #folder: string;
  readonly #path: string;
  readonly #limits: Limits;
  #open: OpenFile | undefined;

  constructor(folder: string, path: string, limits: Limits) {
    this.#folder = folder;
    this.#path = path;
    this.#limits = limits;
  }

  /** Two at a time, others wait. Parameters that the query does not name are left out. */
  async ask(name: string, parameters: Readonly<Record<string, Value>>): Promise<Columns> {
    return this.#file().use(name, async lane => {
      const statement = lane.statements.get(name) ?? (await this.#prepare(name, lane));
      bind(statement, name, parameters);
      const result = await statement.runAndReadAll();
      const names = result.columnNames();
      return Object.fromEntries(result.getColumns().map((column, index) => [names[index], column.map(plainValue)]));
    });
  }

  /** Lets go of the file, once what is being asked is answered. */
  close(): void {
    this.#open?.end();
    this.#open = undefined;
  }

  async #prepare(name: string, { connection, statements }: Lane): Promise<DuckDBPreparedStatement> {
    const sql = readFileSync(join(this.#folder, `${name}.sql`), 'utf8');
    const statement = await connection.prepare(sql).catch(error => {
      // The queries are ours: a file that lacks what they name is not.
      if (!/^(Catalog|Binder) Error/.test(messageOf(error))) throw error;
      const message = `${this.#path} was made by another version of Ringneck: ringneck snapshot publishes a new one, and so does ringneck up`;
      throw new RingneckError(message, 1, { cause: error });
    });
    statements.set(name, statement);
    return statement;
  }

  #file(): OpenFile {
    const stats = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    const stamp = stats ? `${stats.ino} ${stats.mtimeNs} ${stats.size}` : '';
    if (this.#open?.stamp === stamp) return this.#open;
    this.close();
    const reader = openReader({ path: this.#path, ...this.#limits });
    const open = new OpenFile(stamp, reader);
    this.#open = open;
    // What could not be opened is tried again.
    reader.catch(() => {
      if (this.#open === open) this.#open = undefined;
    });
    return open;
  }
}

function bind(statement: DuckDBPreparedStatement, name: string, parameters: Readonly<Record<string, Value>>): void {
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
}

/** A connection, for one question at a time. */
interface Lane {
  connection: DuckDBConnection;
  statements: Map<string, DuckDBPreparedStatement>;
}

class OpenFile {
  readonly stamp: string;
  readonly #reader: Promise<Reader>;
  readonly #idle: Lane[] = [];
  readonly #waiting: (() => void)[] = [];
  #lanes = 0;
  #asked = 0;
  #isEnded = false;

  constructor(stamp: string, reader: Promise<Reader>) {
    this.stamp = stamp;
    this.#reader = reader;
  }

  async use<Result>(name: string, work: (lane: Lane) => Promise<Result>): Promise<Result> {
    this.#asked++;
    try {
      const lane = await this.#take(name);
      try {
        return await work(lane);
      } finally {
        this.#idle.push(lane);
      }
    } finally {
      this.#asked--;
      this.#waiting.shift()?.();
      if (this.#isEnded && this.#asked === 0) this.#close();
    }
  }

  end(): void {
    this.#isEnded = true;
    if (this.#asked === 0) this.#close();
  }

  #close(): void {
    this.#reader.then(
      reader => reader.close(),
      () => undefined,
    );
  }

  async #take(name: string): Promise<Lane> {
    while (!this.#idle.length) {
      if (this.#lanes < LANES) return this.#begin();
      await new Promise<void>(resolve => this.#waiting.push(resolve));
    }
    const known = this.#idle.findIndex(({ statements }) => statements.has(name));
    const [lane] = this.#idle.splice(Math.max(0, known), 1);
    return lane!;
  }

  async #begin(): Promise<Lane> {
    this.#lanes++;
    try {
      const reader = await this.#reader;
      return { connection: await reader.connect(), statements: new Map() };
    } catch (error) {
      this.#lanes--;
      throw error;
    }
  }
}
