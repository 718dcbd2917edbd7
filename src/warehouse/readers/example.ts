import { findExample } from '../schema/views.ts';
import { bareName, quoteName, quoteText } from '../sql.ts';
import type { CatalogueColumn, CatalogueEntry } from './catalogue.ts';

const MEASURES = 3;

/** What says little in a first answer: keys, bookkeeping, and strings as long as a night. */
const DULL =
  /^(user_id|id|day|ts|utc_offset|sk|position|span|code|offset_change|extra|fetched_at|content_hash|contributors_.*)$|_(id|min|sec|interval|count)$/;
const WORTH = /INT|DOUBLE|DECIMAL|FLOAT|VARCHAR/;

/** What a macro is tried with, by the name of its parameter. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  ts: `TIMESTAMP '2025-01-15 22:30:00'`,
  utc_offset: '3600',
  seconds: '27000',
  first_day: `DATE '2025-01-01'`,
  last_day: `DATE '2025-01-31'`,
};

/** A first query to run and to change; undefined for a macro that we cannot call by the names of its parameters. */
export function writeExample({ name, kind, calls, columns, script }: CatalogueEntry, person = 'ada'): string | undefined {
  const [call] = calls;
  if (call) {
    const parameters = call.replace(/^.*\((.*)\)$/s, '$1').split(', ');
    const values = parameters.map(parameter => ARGUMENTS[parameter]);
    return values.every(value => value !== undefined) ? `${kind === 'macro' ? 'SELECT' : 'FROM'} ${name}(${values.join(', ')})` : undefined;
  }
  const written = kind === 'view' && script ? findExample(name) : undefined;
  if (written) return written.replaceAll("'ada'", quoteText(person));
  const time = findTime(columns);
  const shown = [...(time ? [time] : []), ...chooseMeasures(columns.filter(column => column.name !== time))];
  const where = columns.some(column => column.name === 'user_id') ? ` WHERE user_id = ${quoteText(person)}` : '';
  const order = time ? ` ORDER BY ${quote(time)} DESC` : '';
  return `SELECT ${shown.map(quote).join(', ')} FROM ${name}${where}${order} LIMIT 7`;
}

function findTime(columns: readonly CatalogueColumn[]): string | undefined {
  const isTime = ({ type }: CatalogueColumn) => /^(DATE|TIMESTAMP)$/.test(type);
  const named = ['ts', 'day'].find(name => columns.some(column => column.name === name));
  return named ?? columns.find(column => isTime(column) && column.name !== 'fetched_at')?.name;
}

function chooseMeasures(columns: readonly CatalogueColumn[]): string[] {
  const names = new Set(columns.map(({ name }) => name));
  const isOffset = (name: string) =>
    /_offset$/.test(name) && [name.slice(0, -7), name.replace(/_offset$/, '_start')].some(at => names.has(at));
  const chosen = columns.filter(({ name, type }) => WORTH.test(type) && !DULL.test(name) && !isOffset(name));
  return (chosen.length ? chosen : columns.filter(({ name }) => name !== 'user_id')).slice(0, MEASURES).map(({ name }) => name);
}

const quote = (name: string) => (/^[a-z_][a-z0-9_]*$/.test(name) ? bareName(name) : quoteName(name));
