import { didYouMean } from '../../base/did-you-mean.ts';
import { RingneckError, UsageError } from '../../base/errors.ts';
import type { ExportFormat } from '../../warehouse/readers/export/formats.ts';
import { type ExportSelection, hasUsers, isTimed } from '../../warehouse/readers/export/parts.ts';
import { type ExportSource, type ExportTable, readUsers } from '../../warehouse/readers/export/source.ts';
import { findNamed, spellName } from '../catalogue/find-named.ts';
import { isFileName, type Manifest } from './folder.ts';

/** What was asked for; null: all. A list is sorted. */
export interface ExportRequest extends ExportSelection {
  out: string;
  format: ExportFormat;
  tables: readonly string[] | null;
}

/**
 * The request with its tables as the source spells them, so that however they are written it is the same request.
 * @throws UsageError naming the table that is not there, with what was probably meant
 */
export function spellRequest({ tables }: ExportSource, request: ExportRequest): ExportRequest {
  if (!request.tables) return request;
  const all = [...tables.values()];
  const found = request.tables.map(name => {
    // First as it is: tables of others may differ from ours by a schema or by capitals alone.
    const table = tables.get(name) ?? findNamed(all, name);
    if (table) return table.name;
    const names = [...tables.keys()];
    const nearest = didYouMean(spellName(name), names);
    throw new UsageError(`there is no table or view ${name}${nearest ? ` (did you mean ${nearest}?)` : ''}: there are ${names.join(', ')}`);
  });
  return { ...request, tables: [...new Set(found)].sort() };
}

/** @throws UsageError when a table cannot be exported so */
export function chooseTables({ tables, usual }: ExportSource, { tables: names, users }: ExportRequest): readonly ExportTable[] {
  if (!names && !usual.length) throw new RingneckError('the warehouse has no tables yet: run a backfill first');
  return (
    names?.map(name => {
      const table = tables.get(name);
      if (!table || !isFileName(name))
        throw new UsageError(`the name ${JSON.stringify(name)} cannot be that of a file: export a view of another name`);
      if (users && !hasUsers(table)) throw new UsageError(`${name} has no user_id, so it holds everybody's rows: leave out --user, or it`);
      return table;
    }) ?? usual
  );
}

export async function refuseUnknownUsers(source: ExportSource, { users }: ExportRequest): Promise<void> {
  if (!users) return;
  const known = await readUsers(source);
  const unknown = users.find(name => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`there is no account ${unknown}: there are ${known.join(', ') || 'none yet'}`);
}

/** @throws UsageError when the folder holds the export of another request */
export function refuseOther(request: ExportRequest, manifest: Manifest | undefined): void {
  if (!manifest) return;
  const told = (value: unknown) => (value === null ? 'all' : Array.isArray(value) ? value.join(', ') : String(value));
  const other = (['format', 'tables', 'users', 'from', 'to'] as const).filter(
    key => JSON.stringify(manifest[key]) !== JSON.stringify(request[key]),
  );
  if (!other.length) return;
  const differences = other.map(key => `${key}: ${told(manifest[key])}, not ${told(request[key])}`).join('; ');
  throw new UsageError(
    `--out ${request.out} holds another export (${differences}): name another folder, or remove that one if it has served`,
  );
}

/** What a spreadsheet shows of a file, the names of the columns among them. */
const SPREADSHEET_LINES = 1_048_576;

/** What somebody should know who expects of the files what is not in them, or cannot be seen. */
export function* noteOn(
  { format, from, to }: ExportRequest,
  tables: readonly ExportTable[],
  files: readonly { path: string; rows: number }[],
): Generator<string> {
  const whole = from || to ? tables.filter(table => !isTimed(table)).map(({ name }) => name) : [];
  if (whole.length) yield `exported whole, whatever the days, because they have none: ${whole.join(', ')}`;
  if (format !== 'csv') return;
  for (const { path, rows } of files) {
    if (rows + 1 > SPREADSHEET_LINES) yield `${path} has ${rows + 1} lines: a spreadsheet shows only the first ${SPREADSHEET_LINES}`;
  }
}
