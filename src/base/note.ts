import { printable, printableLines } from './printable.ts';

/** Notes go to stderr, each one line. */
export function note(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Whoever put them together has escaped the line breaks of what comes from outside. */
export function noteLines(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}
