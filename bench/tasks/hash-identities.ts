import { createHash } from 'node:crypto';
import { DuckDBInstance } from '@duckdb/node-api';
import { HEART_RATE } from '../recording.ts';
import { performTask } from '../task.ts';

/** What is stored, told by names: every document's, and every row of heart rate. As `fetch-chains` tells what it read. */
performTask(async ({ path, collections }: { path: string; collections: string[] }) => {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const parts = collections.map(name =>
    name === HEART_RATE
      ? `SELECT concat_ws(' ', user_id, '${name}', epoch_ms(ts), source, bpm) FROM heart_rate`
      : `SELECT concat_ws(' ', user_id, '${name}', id) FROM "${name}"`,
  );
  const all = (await connection.runAndReadAll(parts.join(' UNION ALL '))).getRows().map(([text]) => text as string);
  connection.closeSync();
  instance.closeSync();
  return { things: all.length, hash: createHash('sha256').update(all.sort().join('\n')).digest('hex') };
});
