import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { InTheWay } from '../rewriting.ts';

/** Where the files lie that hold the rows of one person each. */
export const personFilesIn = (data: string): string => join(data, 'person-files');

/**
 * Removes them all: they are made again when somebody asks. To be called once what they are made of has nothing more of who is to be forgotten.
 * @throws InTheWay where they cannot be removed
 */
export function removePersonFiles(data: string): void {
  try {
    rmSync(personFilesIn(data), { recursive: true, force: true, maxRetries: 5 });
  } catch (error) {
    throw new InTheWay(`${personFilesIn(data)} has what is to be kept no longer, and cannot be removed: ${messageOf(error)}`, 1, {
      cause: error,
    });
  }
}
