import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf, TryLaterError } from '../../../base/errors.ts';
import { number } from '../../rows.ts';
import { quoteName, quoteText } from '../../sql.ts';
import { readRows, select } from '../database.ts';
import { listPresent, type Present, shownName } from '../file/copy-tables.ts';
import { layRequestsAside, type Rewriting, STAYS } from '../file/rewrite.ts';
import { LakeStore, type LakeStoreOptions, readSnapshot } from './lake-store.ts';
import { LAKE, type LakePlace, withCatalogue } from './open-lake.ts';
import { purge } from './upkeep.ts';

/**
 * Changes a lake that this folder has and nobody has open in one commit, and then removes every file, and every row of the catalogue, that
 * says how it was before. Killed in between, it is to be called again.
 * @returns how many rows were counted, by table
 * @throws TryLaterError naming the process that has the folder, or who reads the catalogue for long, or where catalogue or bucket cannot be reached
 */
export async function rewriteLake(options: LakeStoreOptions, rewriting: Omit<Rewriting, 'beforeTable'>): Promise<Record<string, number>> {
  const store = await LakeStore.open(options, []);
  try {
    const connection = await store.connect();
    const tables = (await listPresent(connection, LAKE, LAKE)).filter(({ name }) => !name.startsWith('ringneck.'));
    const counts = await store.transaction(connection, async () => {
      await layRequestsAside(connection, LAKE, rewriting);
      const counted: Record<string, number> = {};
      for (const table of tables) {
        const count = await rewriteTable(connection, table, rewriting);
        if (count > 0) counted[shownName(table)] = count;
      }
      return counted;
    });
    await purge(connection, statement => store.runAsOwner(connection, statement));
    const at = await readSnapshot(connection);
    await store.close();
    await forgetRows(options.lake, at);
    return counts;
  } finally {
    await store.close();
  }
}

async function rewriteTable(connection: DuckDBConnection, table: Present, rewriting: Omit<Rewriting, 'beforeTable'>): Promise<number> {
  const place = `${LAKE}.${table.place}`;
  const isRuns = table.name === 'sync.runs';
  const conditions = [rewriting.counted(table), ...(isRuns ? [`NOT (${STAYS})`] : [])];
  const [found] = await select(connection, { rows: number }, `SELECT count(*) FROM ${place} WHERE ${conditions.join(' OR ')}`);
  const keep = [rewriting.keep(table), ...(isRuns ? [STAYS] : [])].join(' AND ');
  if (keep !== 'true') await connection.run(`DELETE FROM ${place} WHERE NOT (${keep})`);
  if (isRuns) await connection.run(`UPDATE ${place} AS runs SET request = r.request FROM temp.requests r WHERE r.run_id = runs.run_id`);
  for (const column of table.columns) {
    const replaced = rewriting.replace?.(table, column);
    const name = quoteName(column);
    if (replaced) await connection.run(`UPDATE ${place} SET ${name} = ${replaced} WHERE (${replaced}) IS DISTINCT FROM ${name}`);
  }
  return found?.rows ?? 0;
}

/** Orders the texts of a file's statistics as the values that they are. */
const inOrder = (value: string, direction: 'ASC' | 'DESC') =>
  [
    `CASE WHEN c.column_type ~ '^(int|uint|float|decimal)' THEN ${value}::float8 END`,
    `CASE WHEN c.column_type ~ '^(timestamp|date)' THEN ${value}::timestamp END`,
    `${value} COLLATE "C"`,
  ].map(key => `${key} ${direction}`);

const firstOf = (value: string, direction: 'ASC' | 'DESC') =>
  `(array_agg(${value} ORDER BY ${inOrder(value, direction).join(', ')}) FILTER (WHERE ${value} IS NOT NULL))[1]`;

/**
 * The least and the greatest value of a column stay noted after their rows are gone: they are taken from the files that are left, where all
 * of those tell. No row may lie in the catalogue itself: nothing may have been committed since.
 */
const forgetBounds = (
  at: number,
) => `UPDATE ducklake_table_column_stats AS noted SET min_value = present.least, max_value = present.greatest
  FROM (
    SELECT s.table_id, s.column_id, ${firstOf('f.min_value', 'ASC')} AS least, ${firstOf('f.max_value', 'DESC')} AS greatest
    FROM ducklake_table_column_stats s
    JOIN ducklake_column c ON c.table_id = s.table_id AND c.column_id = s.column_id AND c.end_snapshot IS NULL
    LEFT JOIN ducklake_file_column_stats f ON f.table_id = s.table_id AND f.column_id = s.column_id
    GROUP BY s.table_id, s.column_id
    HAVING count(*) FILTER (WHERE f.min_value IS NULL AND f.value_count > coalesce(f.null_count, 0)) = 0
  ) AS present
  WHERE present.table_id = noted.table_id AND present.column_id = noted.column_id AND (SELECT max(snapshot_id) FROM ducklake_snapshot) = ${at}`;

const WHO_READS = `SELECT coalesce(string_agg(DISTINCT usename || ' from ' || coalesce(host(client_addr), 'this machine') || ' (PID ' || pid || ')', ', '), 'nobody any more') AS who
  FROM pg_locks JOIN pg_stat_activity USING (pid) JOIN pg_class ON pg_class.oid = relation
  WHERE relname LIKE 'ducklake%' AND pid <> pg_backend_pid()`;

/** Has Postgres write its tables anew: what is deleted there stays among their bytes. */
function forgetRows(place: LakePlace, at: number): Promise<void> {
  return withCatalogue(place, async (connection, execute) => {
    await execute(forgetBounds(at));
    const owned = `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tableowner = current_user AND tablename LIKE 'ducklake%'`;
    const tables = await readRows(connection, `FROM postgres_query('catalogue', ${quoteText(owned)})`);
    await execute(`VACUUM (FULL, ANALYZE) ${tables.map(([name]) => quoteName(String(name))).join(', ')}`).catch(async error => {
      if (!/lock timeout/.test(messageOf(error))) throw error;
      const [[who] = []] = await readRows(connection, `FROM postgres_query('catalogue', ${quoteText(WHO_READS)})`);
      throw new TryLaterError(
        `what is gone cannot be removed from the catalogue while somebody reads it: ${who}; end that, or wait for it`,
      );
    });
  });
}
