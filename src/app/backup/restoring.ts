import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { RingneckError } from '../../base/errors.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';

/** Lies in a data folder from the beginning of a restore to its end, and holds what is not in its place yet. */
export const restoringIn = (data: string): string => join(data, 'restoring');

/** Is in it from when all lies ready to be moved until all was moved, the warehouse last. */
export const readyIn = (data: string): string => join(restoringIn(data), 'ready.json');

/** @throws RingneckError where a restore has not come to its end: who began there now would begin with nothing */
export function ensureRestored(data: string): void {
  const staging = restoringIn(data);
  if (!existsSync(staging)) return;
  // All was in its place when the process was killed.
  if (existsSync(warehouseIn(data)) && !existsSync(readyIn(data))) rmSync(staging, { recursive: true, force: true });
  else {
    throw new RingneckError(
      `a backup is being restored into ${data}, or was when a process ended: wait for it, or run the same ringneck restore again`,
    );
  }
}
