import type { Value } from './sql.ts';

/** What can be asked: a warehouse. */
export interface Readable {
  read(sql: string): Promise<readonly (readonly Value[])[]>;
}

/** Checks a value of a column, and gives it with its type. */
export type Column<T> = (value: Value) => T;

/** The columns of a query by the names that their values get, in the order of its SELECT. */
export type Shape = Readonly<Record<string, Column<unknown>>>;

export type Row<S extends Shape> = { -readonly [Name in keyof S]: ReturnType<S[Name]> };

// What a value is never stands in a message: it may be of somebody's health.
const refuse = (wanted: string, value: Value): never => {
  throw new TypeError(`not ${wanted}: ${value === null ? 'null' : typeof value}`);
};

export const text: Column<string> = value => (typeof value === 'string' ? value : refuse('a text', value));

/** Also a timestamp, as microseconds since the epoch. */
export const number: Column<number> = value => (typeof value === 'number' ? value : refuse('a number', value));

export const flag: Column<boolean> = value => (typeof value === 'boolean' ? value : refuse('a boolean', value));

export const orNull =
  <T>(column: Column<T>): Column<T | null> =>
  value =>
    value === null ? null : column(value);

/** A text of a list. */
export const oneOf =
  <const T extends string>(words: readonly T[]): Column<T> =>
  value =>
    words.find(word => word === value) ?? refuse(`one of ${words.join(', ')}`, value);

/** JSON that this program wrote, to be selected as VARCHAR. */
export const json =
  <T>(): Column<T> =>
  value =>
    JSON.parse(text(value));

/**
 * Reads rows as objects.
 * @throws TypeError naming the column whose value is not of its type
 */
export async function readRows<S extends Shape>(warehouse: Readable, shape: S, sql: string): Promise<Row<S>[]> {
  return (await warehouse.read(sql)).map(createToRow(shape));
}

/** Reads the only row that a query gives. */
export async function readRow<S extends Shape>(warehouse: Readable, shape: S, sql: string): Promise<Row<S>> {
  const [row] = await readRows(warehouse, shape, sql);
  if (!row) throw new Error('a query gave no row');
  return row;
}

/** The values of a query with one column. */
export async function readValues<T>(warehouse: Readable, column: Column<T>, sql: string): Promise<T[]> {
  return (await readRows(warehouse, { value: column }, sql)).map(({ value }) => value);
}

/** The value of a query that gives at most one. */
export async function readValue<T>(warehouse: Readable, column: Column<T>, sql: string): Promise<T | undefined> {
  const [value] = await readValues(warehouse, column, sql);
  return value;
}

/** Whether a query gives any row. */
export async function hasRows(warehouse: Readable, sql: string): Promise<boolean> {
  return (await warehouse.read(sql)).length > 0;
}

/** Makes an object of a row; the same rows are checked once however often they are read from memory. */
export function createKeptRows<S extends Shape>(shape: S): (rows: readonly (readonly Value[])[]) => readonly Row<S>[] {
  const made = new WeakMap<readonly (readonly Value[])[], readonly Row<S>[]>();
  const toRow = createToRow(shape);
  return rows => {
    const known = made.get(rows) ?? rows.map(toRow);
    made.set(rows, known);
    return known;
  };
}

function createToRow<S extends Shape>(shape: S): (values: readonly Value[]) => Row<S> {
  const columns = Object.entries(shape);
  return values => {
    if (values.length !== columns.length) throw new TypeError(`a row of ${values.length} values for ${columns.length} columns`);
    const row: Record<string, unknown> = {};
    let index = 0;
    for (const [name, column] of columns) {
      const value = values[index++] ?? null;
      try {
        row[name] = column(value);
      } catch (error) {
        throw new TypeError(`column ${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    }
    return row as Row<S>;
  };
}
