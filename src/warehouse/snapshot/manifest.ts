import type { DuckDBConnection } from '@duckdb/node-api';
import { version } from '../../base/version.ts';
import { FORMAT } from '../format.ts';
import type { Mapping } from '../mapping.ts';
import { number, orNull, text } from '../rows.ts';
import { quoteName } from '../sql.ts';
import { select } from '../store/database.ts';
import { selectDay } from '../tables.ts';
import { publishedTables, schemaName } from './publish.ts';

export interface Contents {
  first_day: string | null;
  last_day: string | null;
  people: number;
  program: string;
  duckdb: string;
  format: number;
  /** How `content_hash` is computed, for whoever wants to do it again. */
  content_hash: string;
  tables: Record<string, { rows: number; content_hash: string }>;
}

/** Numbers and moments of our own reading: the same data read a second time has others. */
const LEFT_OUT = ['sk', 'fetched_at', 'content_hash'];

/** What the attached snapshot holds. The same data gives the same hashes, in whatever order it lies and whenever it was read. */
export async function describeContents(connection: DuckDBConnection, mappings: readonly Mapping[]): Promise<Contents> {
  const tables: Contents['tables'] = {};
  for (const { name, columns } of publishedTables(mappings)) {
    const hashed = columns.map(column => column.name).filter(column => !LEFT_OUT.includes(column));
    const [table] = await select(
      connection,
      { rows: number, content_hash: text },
      `SELECT count(*), coalesce(sum(hash(${hashed.map(quoteName).join(', ')})::HUGEINT), 0)::VARCHAR FROM snapshot.${schemaName(name)}`,
    );
    if (table) tables[name] = table;
  }
  const days = [
    ...mappings.map(mapping => `SELECT user_id, ${selectDay(mapping)} FROM snapshot.main.${quoteName(mapping.table)}`),
    'SELECT user_id, ts::DATE FROM snapshot.main.heart_rate',
  ];
  const [all] = await select(
    connection,
    { first_day: orNull(text), last_day: orNull(text), people: number, duckdb: text },
    `SELECT min(day)::VARCHAR, max(day)::VARCHAR, count(DISTINCT user_id), version() FROM (${days.join(' UNION ALL ')})`,
  );
  const { first_day = null, last_day = null, people = 0, duckdb = '' } = all ?? {};
  return {
    first_day,
    last_day,
    people,
    program: version,
    duckdb,
    format: FORMAT,
    content_hash: `sum(hash(columns)::HUGEINT), by DuckDB ${duckdb}, over all columns in their order but ${LEFT_OUT.join(', ')}`,
    tables,
  };
}
