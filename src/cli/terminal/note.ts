import type { Source } from '../../app/find-source.ts';
import { printable, printableLines } from '../../base/printable.ts';

/** Notes go to stderr, each one line. */
export function note(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Whoever put them together has escaped the line breaks of what comes from outside. */
export function noteLines(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

/** Says so when the warehouse has changed since. */
export function noteStale({ stale, at }: Source): void {
  if (stale) note(`this is the snapshot of ${at}: the warehouse has changed since, and copying it takes a while (ringneck snapshot)`);
}
