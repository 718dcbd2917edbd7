import { createHash } from 'node:crypto';
import type { DuckDBConnection } from '@duckdb/node-api';
import { version } from '../../base/version.ts';
import { FORMAT } from '../format.ts';
import type { Mapping } from '../mapping.ts';
import { number, text } from '../rows.ts';
import { declarationsHash } from '../schema/schema-evolution.ts';
import { readScripts } from '../schema/views.ts';
import type { Value } from '../sql.ts';
import { literal, quoteName } from '../sql.ts';
import { readRows, select } from '../store/database.ts';
import type { Table } from '../tables.ts';
import { column, createTable } from '../tables.ts';

/** Of our own ledger, what analysts and the views need: no token is in it anywhere, and no fact about the live file. */
const PUBLISHED: ReadonlySet<string> = new Set([
  'sync.runs',
  'sync.windows',
  'sync.events',
  'sync.missed_events',
  'sync.rejected',
  'sync.tombstones',
  'sync.drift',
  'sync.routes',
  'sync.accounts',
  'sync.consents',
]);

/** The one row by which a snapshot says what it is. */
export const ABOUT: Table = {
  name: 'sync.snapshot',
  comment: 'What this file is: a copy of a warehouse at one moment; one row',
  columns: [
    column('taken_at', 'TIMESTAMP', 'Everything that was committed before is in it, UTC'),
    column('sorted_at', 'TIMESTAMP', 'When all rows were last put in the order of user and time, UTC; what changed since lies at the end'),
    column('changed_rows', 'BIGINT', 'Rows added and removed since then'),
    column('newest_sk', 'BIGINT', 'The newest version of a document in it'),
    column('warehouse', 'VARCHAR', 'Identifier of the warehouse; null before it has one'),
    column('program', 'VARCHAR', 'Version of Ringneck that made it'),
    column('duckdb', 'VARCHAR', 'Version of DuckDB that wrote it'),
    column('format', 'BIGINT', 'How the warehouse is laid out'),
    column('declarations', 'VARCHAR', 'Hash of the declarations of its tables and views'),
  ],
};

export interface About {
  /** Microseconds. */
  sortedAt: number;
  changedRows: number;
  declarations: string;
}

/** Whether a table is in a snapshot. */
export const isPublished = (name: string): boolean => !name.startsWith('sync.') || PUBLISHED.has(name);

/** Changes whenever the tables or views of a snapshot would be others. */
export function snapshotDeclarations(mappings: readonly Mapping[]): string {
  return createHash('sha256')
    .update(JSON.stringify([declarationsHash(mappings), readScripts(), createTable(ABOUT), [...PUBLISHED]]))
    .digest('base64url')
    .slice(0, 22);
}

/** What the attached snapshot says of itself; undefined where it does not. */
export async function findAbout(connection: DuckDBConnection): Promise<About | undefined> {
  const known = await readRows(
    connection,
    `SELECT count(*) FROM duckdb_columns() WHERE database_name = 'snapshot' AND schema_name = 'sync' AND table_name = 'snapshot'
       AND column_name IN ('sorted_at', 'changed_rows', 'declarations')`,
  );
  if (known[0]?.[0] !== 3) return undefined;
  const [about] = await select(
    connection,
    { sortedAt: number, changedRows: number, declarations: text },
    'SELECT sorted_at, changed_rows, declarations FROM snapshot.sync.snapshot',
  );
  return about;
}

/** Selects the identifier of an attached warehouse. */
export const selectId = (source: string): string => `SELECT value FROM ${source}.sync.meta WHERE key = 'id'`;

/**
 * Writes that row into the attached snapshot, whose rows are there.
 * @param warehouse selects the identifier of the warehouse
 */
export async function writeAbout(
  connection: DuckDBConnection,
  mappings: readonly Mapping[],
  warehouse: string,
  { takenAt, ...about }: About & { takenAt: number },
): Promise<void> {
  const numbers = mappings.map(({ table }) => `SELECT max(sk) AS sk FROM snapshot.main.${quoteName(table)}`);
  const [[newestSk, id, duckdb] = []] = await readRows(
    connection,
    `SELECT (SELECT max(sk) FROM (${numbers.join(' UNION ALL ')})), (${warehouse}), version()`,
  );
  const row: Record<string, Value> = {
    taken_at: takenAt,
    sorted_at: about.sortedAt,
    changed_rows: about.changedRows,
    newest_sk: newestSk ?? null,
    warehouse: id ?? null,
    program: version,
    duckdb: duckdb ?? null,
    format: FORMAT,
    declarations: about.declarations,
  };
  const names = ABOUT.columns.map(({ name }) => quoteName(name));
  const values = ABOUT.columns.map(({ name, type }) => literal(row[name] ?? null, type));
  await connection.run('DELETE FROM snapshot.sync.snapshot');
  await connection.run(`INSERT INTO snapshot.sync.snapshot (${names.join(', ')}) VALUES (${values.join(', ')})`);
}
