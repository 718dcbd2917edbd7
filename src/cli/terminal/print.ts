import { createRequire } from 'node:module';
import { printable, printableJson, printableLines } from '../../base/printable.ts';

const require = createRequire(import.meta.url);

/** Results go to stdout and nothing else does. Whatever comes from outside does nothing to a terminal but show. */
export function printJson(value: unknown): void {
  process.stdout.write(`${printableJson(JSON.stringify(value))}\n`);
}

/** One line, whatever is in it: no text of somebody else's begins another. */
export function printLine(text = ''): void {
  process.stdout.write(`${printable(text)}\n`);
}

/**
 * Whoever put them together has escaped the line breaks of what comes from outside; where they have our own colours, as `coloured` says,
 * all of it.
 */
export function printLines(text: string, { coloured = false }: { coloured?: boolean } = {}): void {
  process.stdout.write(`${coloured ? text : printableLines(text)}\n`);
}

const NO_LINES = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

/** A table without lines, readable in a terminal and by `awk`. */
export function formatTable(head: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  // Loaded only here: most commands print no table.
  const Table: typeof import('cli-table3') = require('cli-table3');
  const table = new Table({
    head: [...head],
    chars: NO_LINES,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  });
  for (const row of rows) table.push(row.map(value => (value === null ? '' : printable(String(value)))));
  return table
    .toString()
    .split('\n')
    .map(line => line.trimEnd())
    .join('\n');
}

export const formatCount = (count: number): string => count.toLocaleString('en-US');

export const formatBytes = (bytes: number): string =>
  bytes < 1_000_000 ? `${formatCount(Math.ceil(bytes / 1000))} kB` : `${formatCount(Math.round(bytes / 100_000) / 10)} MB`;
