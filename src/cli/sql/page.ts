import type { Page } from '../../app/query/frames.ts';
import { formatPlan, isPlan } from '../../app/query/plan.ts';
import { formatCount } from '../terminal/print.ts';
import { formatBox } from './box.ts';

/** How many rows a terminal is shown of a result, unless told otherwise. */
export const ROWS_SHOWN = 100;

/**
 * A result for a terminal, with what is to be said of it below.
 * @param more what shows more of its rows: `.rows N`
 */
export function formatPage({ columns, rows, rest }: Page, { more, time }: { more: string; time?: string | undefined }): string {
  if (!columns.length) return ['(done', ...(time ? [time] : [])].join(', ').concat(')');
  if (isPlan(columns)) return [formatPlan(rows), ...(time ? [`(${time})`] : [])].join('\n');
  // A terminal that does not tell says 0.
  const { text, cut, leftOut } = formatBox(columns, rows, process.stdout.columns || 80);
  const all = rows.length + rest.rows;
  const count = rest.rows
    ? `${formatCount(rows.length)} of ${rest.ended ? '' : 'more than '}${formatCount(all)} rows, ${more} shows more`
    : `${formatCount(all)} ${all === 1 ? 'row' : 'rows'}`;
  const narrow = [...(cut ? [`${cut} cut`] : []), ...(leftOut ? [`${leftOut} left out`] : [])].join(' and ');
  return `${text}\n(${[count, ...(narrow ? [`columns: ${narrow} to fit`] : []), ...(time ? [time] : [])].join('; ')})`;
}
