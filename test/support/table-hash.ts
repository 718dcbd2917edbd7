// What a warehouse holds, as one hash a table: the order of rows, sk and fetched_at make no difference. Works by SQL alone.
import { join } from 'node:path';
import { withDuckDB } from './warehouse.ts';

type Read = (sql: string) => Promise<unknown[][]>;

const LEFT_OUT = ['sk', 'fetched_at'];

/** A view holds nothing of its own. */
const OF_TABLES = 'table_oid IN (SELECT table_oid FROM duckdb_tables() WHERE database_name = current_database())';

/** `rows hash` of every table but the ledger; of one account alone, its name left out, where one is given. */
export async function hashTables(read: Read, userId?: string): Promise<Record<string, string>> {
  const columns = await read(
    `SELECT table_name, string_agg('"' || column_name || '"', ', ' ORDER BY column_name) FROM duckdb_columns()
     WHERE schema_name = 'main' AND NOT internal AND database_name = current_database() AND ${OF_TABLES}
       AND column_name NOT IN (${[...LEFT_OUT, ...(userId === undefined ? [] : ['user_id'])].map(name => `'${name}'`).join(', ')})
     GROUP BY table_name ORDER BY table_name`,
  );
  const where = userId === undefined ? '' : `WHERE user_id = '${userId}'`;
  // One statement: to ask table by table takes longer than to hash them.
  const parts = (columns as [string, string][]).map(
    ([table, names]) =>
      `SELECT '${table}', count(*)::VARCHAR || ' ' || coalesce(sum(hash(${names})::HUGEINT), 0)::VARCHAR FROM "${table}" ${where}`,
  );
  return Object.fromEntries(await read(parts.join(' UNION ALL '))) as Record<string, string>;
}

/** What no constraint holds: each document once, each of its samples and objects once and none of another; each moment of heart rate once. */
export async function findBroken(read: Read): Promise<string[]> {
  const columns = (await read(
    `SELECT table_name, list(column_name)::VARCHAR FROM duckdb_columns()
     WHERE schema_name = 'main' AND NOT internal AND database_name = current_database() AND ${OF_TABLES} GROUP BY table_name`,
  )) as [string, string][];
  const broken: string[] = [];
  const check = async (what: string, sql: string) => {
    const [row] = await read(sql);
    if (Number(row![0]) !== 0) broken.push(`${what}: ${row![0]}`);
  };
  const documents = columns.filter(([, list]) => /\bcontent_hash\b/.test(list)).map(([name]) => name);
  for (const name of documents) {
    await check(`${name} twice`, `SELECT count(*) - count(DISTINCT (user_id, id)) FROM "${name}"`);
    await check(`${name}: sk twice`, `SELECT count(*) - count(DISTINCT sk) FROM "${name}"`);
  }
  for (const [name, list] of columns) {
    if (!/\b(value|position)\b/.test(list) || !/\bsk\b/.test(list)) continue;
    const document = documents.filter(candidate => name.startsWith(`${candidate}_`)).sort((a, b) => b.length - a.length)[0]!;
    const field = name.slice(document.length + 1);
    const day = columns.some(([other, all]) => other === document && /\bday\b/.test(all)) ? 'day' : 'start_day';
    await check(`${name} of nobody`, `SELECT count(*) FROM "${name}" WHERE sk NOT IN (SELECT sk FROM "${document}")`);
    await check(
      `${name} not as many as counted`,
      `SELECT count(*) FROM (SELECT d.sk, any_value(d."${field}_count") AS told, count(s.sk) AS found
       FROM "${document}" d LEFT JOIN "${name}" s ON s.sk = d.sk AND s.user_id = d.user_id AND s.day = d.${day} GROUP BY d.sk)
       WHERE coalesce(told, 0) <> found`,
    );
  }
  await check('heart_rate twice', 'SELECT count(*) - count(DISTINCT (user_id, ts, source)) FROM heart_rate');
  return broken;
}

/** Both of a file that nobody has open. */
export function inspectFile(folder: string): Promise<{ hashes: Record<string, string>; broken: string[]; rows: number }> {
  return withDuckDB(join(folder, 'warehouse.duckdb'), async connection => {
    const read: Read = async sql => (await connection.runAndReadAll(sql)).getRows();
    const hashes = await hashTables(read);
    return { hashes, broken: await findBroken(read), rows: countRows(hashes) };
  });
}

export const countRows = (hashes: Record<string, string>): number =>
  Object.values(hashes).reduce((sum, hash) => sum + Number(hash.split(' ')[0]), 0);
