import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Results go to stdout and nothing else does. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`);
}

/** Remarks go to stderr. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
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
  const Table = require('cli-table3') as typeof import('cli-table3');
  const table = new Table({
    head: [...head],
    chars: NO_LINES,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  });
  for (const row of rows) table.push(row.map(value => (value === null ? '' : String(value))));
  return table
    .toString()
    .split('\n')
    .map(line => line.trimEnd())
    .join('\n');
}

export const formatCount = (count: number): string => count.toLocaleString('en-US');
