import { DuckDBInstance } from '@duckdb/node-api';
import { performTask, withCost } from '../task.ts';

/** One question by somebody who opens the file for it, and what it cost. */
performTask(async ({ path, question }: { path: string; question: string }) =>
  withCost(async () => {
    const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY', threads: '2' });
    const connection = await instance.connect();
    const rows = (await connection.runAndReadAll(question)).currentRowCount;
    connection.closeSync();
    instance.closeSync();
    return rows;
  }),
);
