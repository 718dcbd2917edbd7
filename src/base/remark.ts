import { printable, printableLines } from './printable.ts';

/** Remarks go to stderr, each one line. */
export function remark(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Whoever put them together has escaped the line breaks of what comes from outside. */
export function remarkLines(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}
