import { DuckDBInstance } from '@duckdb/node-api';
import type { LimitSql } from './limit-sql.ts';

/** A file that is filled by DuckDB's own means; its tables are made where there are none. */
export async function openLimit(path: string, { create, load }: LimitSql) {
  const instance = await DuckDBInstance.create(path, { threads: '2' });
  const connection = await instance.connect();
  const [[tables]] = (await connection.runAndReadAll('SELECT count(*) FROM duckdb_tables()')).getRows() as [[bigint]];
  if (!tables) for (const statement of create) await connection.run(statement);
  return {
    /** Loads the answers, as well as one can in SQL. */
    async load(): Promise<void> {
      await connection.run('BEGIN TRANSACTION');
      for (const statement of load) await connection.run(statement);
      await connection.run('COMMIT');
    },
    close(): void {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** Of an answer, in the folder of its collection. */
export const answerFile = (user: string, page: number) => `${user}.${String(page).padStart(7, '0')}.json`;
