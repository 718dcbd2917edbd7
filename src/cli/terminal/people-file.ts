import { type BadLine, describeBad } from '../../app/people-file.ts';
import { RingneckError } from '../../base/errors.ts';
import { note } from './note.ts';

/** Names all that is wrong with the lines of a file, of which nothing was done. */
export function refuseLines(file: string, bad: readonly BadLine[]): RingneckError {
  for (const line of bad) note(`${file}, ${describeBad(line)}`);
  return new RingneckError(`${file}: nothing was done: put right what is named above, and try again`);
}

/** Says which columns of a file are the study's own: a known one that is misspelt would be among them. */
export function noteFree(columns: readonly string[]): void {
  if (columns.length) note(`in extra of participants: ${columns.join(', ')}`);
}
