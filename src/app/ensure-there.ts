import { existsSync } from 'node:fs';
import type { Settings } from '../base/config.ts';
import { UsageError } from '../base/errors.ts';
import { accessCommand } from '../base/sign-in-again.ts';
import { warehouseIn } from '../base/warehouse-file.ts';
import { ensureRestored } from './backup/restoring.ts';

/** @throws UsageError in a folder that is none of Ringneck's: what is looked for lies elsewhere */
export function ensureThere({ data, namesData }: Pick<Settings, 'data' | 'namesData'>): void {
  if (namesData || existsSync(data)) return;
  throw new UsageError(
    `there is no data folder here: ${data} does not exist, and RINGNECK_DATA names none. Go to the folder in which you began, or begin here: ringneck init`,
  );
}

/** @throws UsageError also where the folder is named and nothing was begun in it; RingneckError where a backup is being restored into it */
export function ensureWarehouse(settings: Pick<Settings, 'data' | 'namesData' | 'signIn'>): void {
  ensureThere(settings);
  ensureRestored(settings.data);
  if (!existsSync(warehouseIn(settings.data))) throw new UsageError(`there is no warehouse in ${settings.data}: ${howToBegin(settings)}`);
}

/** What is to be done where there is no warehouse. */
export const howToBegin = (settings: Pick<Settings, 'signIn'>): string =>
  `to begin here, ${accessCommand('NAME', settings)}; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it`;
