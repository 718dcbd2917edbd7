import { DuckDBInstance } from '@duckdb/node-api';
import { performTask } from '../task.ts';

export interface HashTablesJob {
  path: string;
  tables: string[];
}

/** What no two fillings of a table have in common. */
const OWN = ['sk', 'fetched_at', 'content_hash'];

/** Each table of a file, as its columns, rows and the hash of its rows in any order. */
performTask(async ({ path, tables }: HashTablesJob) => {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const hashes: Record<string, string> = {};
  for (const table of tables) {
    const described = await connection.runAndReadAll(
      `SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = 'main' AND table_name = '${table}' ORDER BY column_index`,
    );
    const columns = described.getRows().map(row => row.join(' '));
    const names = described.getRows().flatMap(([name]) => (OWN.includes(name as string) ? [] : [`"${name}"`]));
    const hash = `hash(${names.join(', ')})`;
    const hashed = await connection.runAndReadAll(
      `SELECT concat_ws(' ', count(*), 'rows', bit_xor(${hash}), sum(${hash}::HUGEINT)) FROM "${table}"`,
    );
    hashes[table] = `${hashed.getRows()[0]![0]}; ${columns.join(', ')}`;
  }
  connection.closeSync();
  instance.closeSync();
  return hashes;
});
