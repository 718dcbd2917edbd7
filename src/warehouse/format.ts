import { RingneckError } from '../base/errors.ts';

/**
 * How the file is laid out. A program refuses a file with a higher number: another column of the ledger is another format, or an earlier
 * program would take it for somebody else's.
 */
export const FORMAT = 4;

/** Says of a file, or of a backup, what is to be done where a later program has made it. */
export const isOfNewer = (format: number): RingneckError =>
  new RingneckError(
    `the warehouse has format ${format}, this program knows ${FORMAT} at most: update Ringneck, or go back to a copy of before ` +
      '(docs/running.md, "Upgrading")',
  );
