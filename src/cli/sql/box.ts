import { pad, widthOf } from '../../app/query/write-result.ts';
import { printable } from '../../base/printable.ts';

export interface Box {
  text: string;
  /** How many columns show a value not whole, and how many of the last ones are not there at all. */
  cut: number;
  leftOut: number;
}

/** What a cell has beside its text: a space on both sides and a line. */
const FRAME = 3;
/** A date. */
const NARROWEST = 10;

/** A result in a box that is no wider than this; NULL is written out. Long texts are cut. */
export function formatBox(
  columns: readonly { name: string; numeric: boolean }[],
  rows: readonly (readonly (string | null)[])[],
  width: number,
): Box {
  const head = columns.map(({ name }) => printable(name));
  const texts = rows.map(row => row.map(text => (text === null ? 'NULL' : printable(text))));
  const needed = head.map((name, i) => texts.reduce((most, row) => Math.max(most, widthOf(row[i] ?? '')), widthOf(name)));
  const { shown, widest } = fitColumns(needed, width - 1);
  const widths = needed.slice(0, shown).map(size => Math.min(size, widest));
  const rule = (left: string, between: string, right: string) =>
    left + widths.map(size => '─'.repeat(size + FRAME - 1)).join(between) + right;
  const line = (cells: readonly string[]) =>
    `│${widths.map((size, i) => ` ${pad(shorten(cells[i] ?? '', size), size, columns[i]?.numeric ?? false)} `).join('│')}│`;
  return {
    text: [rule('┌', '┬', '┐'), line(head), rule('├', '┼', '┤'), ...texts.map(line), rule('└', '┴', '┘')].join('\n'),
    cut: needed.slice(0, shown).filter(size => size > widest).length,
    leftOut: columns.length - shown,
  };
}

const CHARACTERS = new Intl.Segmenter('en', { granularity: 'grapheme' });

function shorten(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let [kept, taken] = ['', 0];
  for (const { segment } of CHARACTERS.segment(text)) {
    taken += widthOf(segment);
    if (taken >= width) break;
    kept += segment;
  }
  return `${kept}…`;
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
