import { once } from 'node:events';
import type { Writable } from 'node:stream';
import stringWidth from 'string-width';
import { csvField } from '../../base/csv.ts';
import { printable, printableJson } from '../../base/printable.ts';
import type { Cell, QueryResult, ResultColumn } from '../../warehouse/readers/query.ts';
import type { Format } from './formats.ts';

/** A table's columns are as wide as the first rows need; later rows may stand out. */
const ROWS_MEASURED = 10_000;

/** Writes a result row by row as it comes: a large one never lies in memory whole. */
export async function writeResult({ columns, chunks }: QueryResult, format: Format, out: Writable): Promise<void> {
  const write = async (text: string) => {
    if (text && !out.write(text)) await once(out, 'drain');
  };
  switch (format) {
    case 'table':
      return writeTable(columns, chunks, write);
    case 'csv':
      return writeCsv(columns, chunks, write);
    case 'json':
      return writeJson(columns, chunks, write);
    case 'ndjson':
      for await (const rows of chunks) await write(rows.map(row => `${jsonRow(columns, row)}\n`).join(''));
  }
}

type Write = (text: string) => Promise<void>;
type Chunks = QueryResult['chunks'];

const jsonRow = (columns: readonly ResultColumn[], row: readonly Cell[]) =>
  printableJson(`{${columns.map(({ name, json }, i) => `${JSON.stringify(name)}:${json(row[i] ?? null)}`).join(',')}}`);

/** Each write ends with a line: a result that ends early leaves no half one. */
async function writeJson(columns: readonly ResultColumn[], chunks: Chunks, write: Write): Promise<void> {
  let waiting = '';
  for await (const rows of chunks) {
    await write(waiting && `${waiting},\n`);
    waiting = `${waiting ? '' : '['}${rows.map(row => jsonRow(columns, row)).join(',\n')}`;
  }
  await write(`${waiting || '['}]\n`);
}

async function writeCsv(columns: readonly ResultColumn[], chunks: Chunks, write: Write): Promise<void> {
  if (columns.length) await write(`${columns.map(({ name }) => csvField(name)).join(',')}\n`);
  for await (const rows of chunks) {
    await write(rows.map(row => `${columns.map(({ text }, i) => csvField(text(row[i] ?? null))).join(',')}\n`).join(''));
  }
}

async function writeTable(columns: readonly ResultColumn[], chunks: Chunks, write: Write): Promise<void> {
  const head = columns.map(({ name }) => printable(name));
  let widths: number[] = [];
  let waiting: string[][] = [];
  const line = (cells: readonly string[]) =>
    `${cells
      .map((cell, i) => pad(cell, widths[i] ?? 0, columns[i]?.numeric ?? false))
      .join('  ')
      .trimEnd()}\n`;
  const flush = async () => {
    if (!widths.length) {
      widths = head.map((name, i) => waiting.reduce((width, cells) => Math.max(width, widthOf(cells[i] ?? '')), widthOf(name)));
      await write(line(head));
      await write(line(widths.map(width => '─'.repeat(width))));
    }
    await write(waiting.map(line).join(''));
    waiting = [];
  };
  for await (const rows of chunks) {
    for (const row of rows) waiting.push(columns.map(({ text }, i) => printable(text(row[i] ?? null) ?? '')));
    if (widths.length || waiting.length >= ROWS_MEASURED) await flush();
  }
  if (columns.length && (!widths.length || waiting.length)) await flush();
}

/** How many places of a terminal a printable text takes. */
export const widthOf = (text: string): number => (/^[ -~]*$/.test(text) ? text.length : stringWidth(text));

/** The text with spaces before or after it, so that it takes this many places. */
export function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)));
  return right ? space + text : text + space;
}
