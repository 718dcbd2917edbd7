import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api';
import { messageOf } from '../../base/errors.ts';
import { type Row, readRows as readShaped, type Shape } from '../rows.ts';
import type { Value } from '../sql.ts';
import { duckdb } from './duckdb.ts';

export function firstLine(error: unknown): string {
  return messageOf(error).replace(/\n.*/s, '');
}

/** After such an error DuckDB refuses every further statement: only a new process can go on. */
export function isFatal(error: unknown): boolean {
  return /^(FATAL|INTERNAL) Error|database has been invalidated/i.test(messageOf(error));
}

/**
 * Runs `work` in one transaction. `work` may be repeated and does all its reads inside. Rollback is in `finally`: a COMMIT after a
 * failed statement reports success and stores nothing.
 */
export async function withTransaction<T>(
  connection: DuckDBConnection,
  work: () => Promise<T>,
  commit: () => Promise<unknown> = () => connection.run('COMMIT'),
): Promise<T> {
  let committed = false;
  try {
    await connection.run('BEGIN TRANSACTION');
    const result = await work();
    await commit();
    committed = true;
    return result;
  } finally {
    // A failed COMMIT has ended the transaction already, and a fatal error the database: the first error is the one to report. A failed
    // BEGIN may have left one open, or met one: without a rollback no other could ever begin.
    if (!committed) await connection.run('ROLLBACK').catch(() => undefined);
  }
}

/** A value as the mapping knows it: whole numbers as numbers, instants as microseconds, days as text. */
export function plainValue(value: DuckDBValue): Value {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof duckdb.DuckDBTimestampValue) return Number(value.micros);
  if (value instanceof duckdb.DuckDBDateValue) return value.toString();
  throw new TypeError(`no plain value for ${value?.constructor?.name}`);
}

/** Rows of a query that is known to be small, as plain values. */
export async function readRows(connection: DuckDBConnection, sql: string): Promise<Value[][]> {
  const reader = await connection.runAndReadAll(sql);
  return reader.getRows().map(row => row.map(plainValue));
}

/** The same as objects, each value checked. */
export const select = <S extends Shape>(connection: DuckDBConnection, shape: S, sql: string): Promise<Row<S>[]> =>
  readShaped({ read: text => readRows(connection, text) }, shape, sql);
