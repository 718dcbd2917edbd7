// What an account has in every table that names accounts, those of the ledger too. Works by SQL alone.
type Read = (sql: string) => Promise<unknown[][]>;

/** `rows hash` by table, of every column: sk and moments make a difference, the order of rows does not. */
export async function hashAccount(read: Read, userId: string): Promise<Record<string, string>> {
  const tables = await read(
    `SELECT schema_name || '.' || table_name FROM duckdb_columns() JOIN duckdb_tables() USING (table_oid, database_oid, schema_name, table_name)
     WHERE column_name = 'user_id' AND duckdb_columns.database_name = current_database() ORDER BY ALL`,
  );
  const hashes: Record<string, string> = {};
  for (const [table] of tables as [string][]) {
    const [row] = await read(
      `SELECT count(*)::VARCHAR || ' ' || coalesce(sum(hash(t)::HUGEINT), 0)::VARCHAR FROM ${table} t WHERE user_id = '${userId}'`,
    );
    hashes[table] = String(row![0]);
  }
  return hashes;
}

export const isEmpty = (hashes: Record<string, string>): boolean => Object.values(hashes).every(hash => hash === '0 0');
