import { RingneckError } from '../../../base/errors.ts';
import { number, orNull, text } from '../../rows.ts';
import { qualified, quoteName, quoteText } from '../../sql.ts';
import { firstLine, select } from '../../store/database.ts';
import type { ExportFormat } from './formats.ts';
import { type ExportSource, type ExportTable, runOver } from './source.ts';

/** Whose rows and which days are exported; null: all. */
export interface ExportSelection {
  users: readonly string[] | null;
  from: string | null;
  to: string | null;
}

/** What becomes one file. */
export interface ExportPart {
  table: ExportTable;
  /** `2025-03`, or `undated` for rows without a day; null where the table is one file. */
  month: string | null;
  rows: number;
  /** A hash of the rows, whatever their order. */
  content: string;
}

const UNDATED = 'undated';

/**
 * Divides a table into files, and hashes what belongs into each, by one reading of it. In Parquet each table is cut into months; in text
 * only what has a row for each sample, for a table of documents is handier whole. A view is one file, because it is computed anew for each.
 * Without a row there is one part all the same: a file that shows the columns.
 * @throws RingneckError when a view of the file fails, or reads another file
 */
export async function planParts(
  source: ExportSource,
  table: ExportTable,
  format: ExportFormat,
  selection: ExportSelection,
): Promise<ExportPart[]> {
  const time = timeOf(table);
  const monthly = table.kind === 'table' && time !== undefined && (format === 'parquet' || isOfSamples(table));
  const month = monthly ? `coalesce(strftime(date_trunc('month', ${time.sql}), '%Y-%m'), ${quoteText(UNDATED)})` : 'NULL::VARCHAR';
  const hash = `coalesce(sum(hash(${table.columns.map(({ name }) => quoteName(name)).join(', ')})::HUGEINT), 0)::VARCHAR`;
  const sql = `SELECT ${month}, count(*), ${hash} FROM ${qualified(table.name)} WHERE ${conditionOf(table, selection)}
     ${monthly ? 'GROUP BY 1 ORDER BY 1' : ''}`;
  const shape = { month: orNull(text), rows: number, content: text };
  const parts = await runOver(source, table, () => select(source.connection, shape, sql)).catch((error: unknown) => {
    throw new RingneckError(`${table.name} cannot be read: ${firstLine(error)}`, 1, { cause: error });
  });
  return parts.length ? parts.map(part => ({ table, ...part })) : [{ table, month: null, rows: 0, content: '0' }];
}

/** The query of a part's rows, each time in the same order. */
export function selectPart({ table, month }: ExportPart, selection: ExportSelection, columns: readonly string[]): string {
  const conditions = [conditionOf(table, selection), ...(month === null ? [] : [inMonth(table, month)])];
  return `SELECT ${columns.join(', ')} FROM ${qualified(table.name)} AS part WHERE ${conditions.join(' AND ')} ORDER BY ${orderOf(table)}`;
}

/** Who has no user_id holds rows of everybody. */
export const hasUsers = ({ columns }: ExportTable) => columns.some(({ name }) => name === 'user_id');

/** Whether it has a row for each sample or measurement, rather than for each document. */
export const isOfSamples = ({ columns }: ExportTable) => columns.some(({ name, type }) => name === 'ts' && type === 'TIMESTAMP');

/** Whether a range of days leaves something of it out. */
export const isTimed = (table: ExportTable) => timeOf(table) !== undefined;

/** The column that says when: the document's day, the Monday of a week, or the moment (UTC) of what has neither. */
function timeOf(table: ExportTable): { sql: string; is: 'day' | 'week' | 'moment' } | undefined {
  if (table.day !== null) return { sql: quoteName(table.day), is: 'day' };
  if (table.columns.some(({ name, type }) => name === 'week' && type === 'DATE')) return { sql: quoteName('week'), is: 'week' };
  return isOfSamples(table) ? { sql: quoteName('ts'), is: 'moment' } : undefined;
}

/** What has no time is exported whole; of weeks those that have a day in the range. Literals, by which DuckDB passes over row groups. */
function conditionOf(table: ExportTable, { users, from, to }: ExportSelection): string {
  const time = timeOf(table);
  const conditions = users && hasUsers(table) ? [`user_id IN (${users.map(quoteText).join(', ')})`] : [];
  if (time && from) conditions.push(`${time.sql} >= DATE ${quoteText(from)}${time.is === 'week' ? ' - 6' : ''}`);
  if (time && to)
    conditions.push(time.is === 'moment' ? `${time.sql} < DATE ${quoteText(to)} + 1` : `${time.sql} <= DATE ${quoteText(to)}`);
  return conditions.length ? conditions.join(' AND ') : 'true';
}

function inMonth(table: ExportTable, month: string): string {
  const sql = timeOf(table)?.sql ?? 'NULL';
  if (month === UNDATED) return `${sql} IS NULL`;
  const first = `DATE ${quoteText(`${month}-01`)}`;
  return `${sql} >= ${first} AND ${sql} < (${first} + INTERVAL 1 MONTH)`;
}

/** By person and time. No two rows of our documents and samples share all of these; elsewhere the other columns decide. */
function orderOf({ name, kind, columns, day }: ExportTable): string {
  const keys = ['user_id', day ?? 'day', 'week', 'ts', 'id', 'sk', 'position', 'source'].filter(key =>
    columns.some(column => column.name === key),
  );
  const ours = kind === 'table' && !name.includes('.') && keys.length >= 3;
  const rest = ours ? [] : columns.map(column => column.name).filter(column => !keys.includes(column));
  return [...keys, ...rest].map(column => `part.${quoteName(column)}`).join(', ');
}
