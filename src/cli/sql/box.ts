import Table from 'cli-table3';
import { printable, widthOf } from '../result.ts';

export interface Box {
  text: string;
  /** How many columns show a value not whole, and how many of the last ones are not there at all. */
  cut: number;
  leftOut: number;
}

/** What a cell has beside its text: a space on both sides and a line. */
const FRAME = 3;
const NARROWEST = 8;

/** A result in a box that is no wider than this; NULL is written out. Long texts are cut. */
export function formatBox(
  columns: readonly { name: string; numeric: boolean }[],
  rows: readonly (readonly (string | null)[])[],
  width: number,
): Box {
  const head = columns.map(({ name }) => printable(name));
  const texts = rows.map(row => row.map(text => (text === null ? 'NULL' : printable(text))));
  const needed = head.map((name, i) => texts.reduce((most, row) => Math.max(most, widthOf(row[i]!)), widthOf(name)));
  const { shown, widest } = fitColumns(needed, width - 1);
  const table = new Table({
    head: head.slice(0, shown),
    colWidths: needed.slice(0, shown).map(size => Math.min(size, widest) + FRAME - 1),
    colAligns: columns.slice(0, shown).map(({ numeric }) => (numeric ? 'right' : 'left')),
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
    style: { head: [], border: [] },
  });
  for (const row of texts) table.push(row.slice(0, shown));
  return {
    text: underline(table.toString()),
    cut: needed.slice(0, shown).filter(size => size > widest).length,
    leftOut: columns.length - shown,
  };
}

/** How many columns fit, and how wide the widest of them may be. */
function fitColumns(needed: readonly number[], width: number): { shown: number; widest: number } {
  const total = (count: number, widest: number) => needed.slice(0, count).reduce((sum, size) => sum + Math.min(size, widest) + FRAME, 0);
  let shown = needed.length;
  while (shown > 1 && total(shown, NARROWEST) > width) shown--;
  let widest = Math.max(NARROWEST, ...needed);
  while (widest > NARROWEST && total(shown, widest) > width) widest--;
  return { shown, widest };
}

/** The line below the head, which cli-table3 draws only together with lines between rows. */
function underline(text: string): string {
  const [top, head, ...rest] = text.split('\n');
  const line = top!.replace('┌', '├').replace('┐', '┤').replaceAll('┬', '┼');
  return [top, head, line, ...rest].join('\n');
}
