import { DuckDBInstance } from '@duckdb/node-api';
import type { LimitSql } from './limit-sql.ts';

/** Fills a file by DuckDB's own means, in one transaction; makes the tables where there are none. */
export async function loadLimit(path: string, { create, load }: LimitSql): Promise<void> {
  const instance = await DuckDBInstance.create(path, { threads: '2' });
  const connection = await instance.connect();
  const [[tables]] = (await connection.runAndReadAll('SELECT count(*) FROM duckdb_tables()')).getRows() as [[bigint]];
  await connection.run('BEGIN TRANSACTION');
  for (const statement of tables ? load : [...create, ...load]) await connection.run(statement);
  await connection.run('COMMIT');
  connection.closeSync();
  instance.closeSync();
}

/** Of an answer, in the folder of its collection. */
export const answerFile = (user: string, page: number) => `${user}.${String(page).padStart(7, '0')}.json`;
