import { join } from 'node:path';
import { TryLaterError } from '../base/errors.ts';
import { lockFile } from '../warehouse/readers/export/lock.ts';
import { isMoving, tellClosed } from './move/is-moving.ts';

/** Lies in a data folder while a process finishes an erasing or a move that was interrupted. */
export const finishingIn = (folder: string): string => join(folder, 'finishing.lock');

const PATIENCE_MS = 30_000;

/**
 * Has one process at a time finish what was interrupted: two would each meet what the other is replacing or removing. Who comes second finds it
 * done.
 * @returns ends that
 * @throws TryLaterError where the other takes longer
 */
export async function lockFinishing(folder: string, patienceMs = PATIENCE_MS): Promise<() => void> {
  try {
    return await lockFile(finishingIn(folder), patienceMs);
  } catch (error) {
    if (!(error instanceof TryLaterError)) throw error;
    throw new TryLaterError(tellClosed(isMoving(folder) ? 'moved in' : 'erased from', folder), { cause: error });
  }
}
