import { statSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';
import { performTask } from '../task.ts';

/** How large a closed file is, and how many rows of samples are in it. */
performTask(async ({ path, table }: { path: string; table: string }) => {
  const bytes = statSync(path).size;
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const rows = Number((await connection.runAndReadAll(`SELECT count(*) FROM "${table}"`)).getRows()[0]![0]);
  connection.closeSync();
  instance.closeSync();
  return { bytes, rows };
});
