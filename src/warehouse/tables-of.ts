import { type Readable, readRows, readValues, text } from './rows.ts';
import { quoteName, quoteText } from './sql.ts';

/** The tables, ours or not, that hold rows of an account. */
export async function listTablesOf(warehouse: Readable, userId: string): Promise<string[]> {
  const tables = await readRows(
    warehouse,
    { schema: text, name: text },
    `SELECT t.schema_name, t.table_name FROM duckdb_tables() t JOIN duckdb_columns() c USING (table_oid, database_oid)
     WHERE t.database_name = current_database() AND NOT t.internal AND lower(c.column_name) = 'user_id' ORDER BY t.table_oid`,
  );
  const found: string[] = [];
  for (const { schema, name } of tables) {
    const shown = schema === 'main' ? name : `${schema}.${name}`;
    const sql = `SELECT ${quoteText(shown)} FROM ${quoteName(schema)}.${quoteName(name)} WHERE user_id::VARCHAR COLLATE "C" = ${quoteText(userId)} LIMIT 1`;
    found.push(...(await readValues(warehouse, text, sql)));
  }
  return found;
}
