import { type BadLine, describeBad } from '../../app/people-file.ts';
import { RingneckError } from '../../base/errors.ts';
import { note } from './note.ts';

/** Names all that is wrong with the lines of a file, of which nothing was done. */
export function refuseLines(file: string, bad: readonly BadLine[]): RingneckError {
  for (const line of bad) note(`${file}, ${describeBad(line)}`);
  return new RingneckError(`${file}: nothing was done: put right what is named above, and try again`);
}
