import { messageOf, RingneckError } from '../../../base/errors.ts';
import { version } from '../../../base/version.ts';
import { number } from '../../rows.ts';
import { quoteName, quoteText } from '../../sql.ts';
import { firstLine, readRows } from '../../store/database.ts';
import type { ExportFormat } from './formats.ts';
import { type ExportPart, type ExportSelection, isOfSamples, selectPart } from './parts.ts';
import { type ExportColumn, type ExportSource, runOver } from './source.ts';
import { BYTE_ORDER_MARK, FORMULA, KEPT_NUMBER, markName, NUMBER, PLAIN } from './spreadsheet.ts';

/**
 * Writes a part into a file, which must not be there yet: streamed and sorted, whatever its size.
 * @throws RingneckError when the disk is full, or the file has other rows than the part
 */
export async function writePart(
  source: ExportSource,
  part: ExportPart,
  format: ExportFormat,
  selection: ExportSelection,
  path: string,
): Promise<void> {
  const columns = part.table.columns.map((column, i) => (format === 'csv' ? csvColumn(column, i === 0) : quoteName(column.name)));
  const sql = `COPY (${selectPart(part, selection, columns)}) TO ${quoteText(path)} (${optionsOf(part, format, selection)}, USE_TMP_FILE false)`;
  let written: number;
  try {
    const [[count = null] = []] = await runOver(source, part.table, () => readRows(source.connection, sql));
    written = number(count);
  } catch (error) {
    if (/no space left|disk full/i.test(messageOf(error))) {
      throw new RingneckError(`the disk is full: ${path} cannot be written. Make room, and the same command continues`, 1, {
        cause: error,
      });
    }
    throw new RingneckError(`${path} cannot be written: ${firstLine(error)}`, 1, { cause: error });
  }
  if (written !== part.rows) throw new RingneckError(`${path} got ${written} rows, and ${part.table.name} has ${part.rows} for it`);
}

function optionsOf(part: ExportPart, format: ExportFormat, selection: ExportSelection): string {
  switch (format) {
    case 'parquet': {
      const metadata = metadataOf(part, selection).map(entry => entry.map(quoteText).join(': '));
      const group = isOfSamples(part.table) ? SAMPLES_IN_GROUP : DOCUMENTS_IN_GROUP;
      return `FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${group}, KV_METADATA {${metadata.join(', ')}}`;
    }
    case 'csv':
      // RFC 4180.
      return `FORMAT csv, HEADER true, NEW_LINE '\\r\\n'`;
    case 'ndjson':
      return 'FORMAT json';
  }
}

/** What the catalogue says of the table, for who has only the file. */
function metadataOf({ table, month }: ExportPart, { users, from, to }: ExportSelection): [string, string][] {
  const entries: [string, string | null][] = [
    ['table', table.name],
    ['comment', table.comment],
    ['month', month],
    ['users', users ? users.join(', ') : 'all'],
    ['from', from],
    ['to', to],
    ['written_by', `ringneck ${version}`],
    ...table.columns.flatMap(({ name, comment }): [string, string | null][] => [
      [`comment.${name}`, comment],
      [`unit.${name}`, unitOf(comment)],
    ]),
  ];
  return entries.flatMap(([key, value]) => (value === null ? [] : [[key, value]]));
}

/** Comments end in, or hold, the unit in brackets. */
export const unitOf = (comment: string | null): string | null => /\[([^[\]]+)\]/.exec(comment ?? '')?.[1] ?? null;

/** Each thread has a group in memory until it is written: a document takes a hundred times as much as a sample. */
const SAMPLES_IN_GROUP = 122_880;
const DOCUMENTS_IN_GROUP = 8_192;

/**
 * A text that a spreadsheet would take for a formula, or for a number that it would change, has an apostrophe before it. Taking one away from
 * each that begins so gives all as it was.
 */
function csvColumn({ name, type }: ExportColumn, isFirst: boolean): string {
  const header = quoteName(`${isFirst ? BYTE_ORDER_MARK : ''}${markName(name)}`);
  const column = quoteName(name);
  if (PLAIN.test(type)) return `${column} AS ${header}`;
  const text = `${column}::VARCHAR`;
  const isNumber = `regexp_full_match(${text}, ${quoteText(NUMBER)}) AND NOT regexp_full_match(${text}, ${quoteText(KEPT_NUMBER)})`;
  const isChanged = `left(${text}, 1) IN (${FORMULA.map(quoteText).join(', ')}) OR (${isNumber})`;
  return `CASE WHEN ${isChanged} THEN '''' || ${text} ELSE ${text} END AS ${header}`;
}
