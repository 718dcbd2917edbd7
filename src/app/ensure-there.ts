import { existsSync } from 'node:fs';
import { type EnrolmentSettings, NO_CLIENT, NO_ENROLMENT, NO_SERVICE, type Settings, type SignInSettings } from '../base/config.ts';
import { UsageError } from '../base/errors.ts';
import { accessCommand } from '../base/sign-in-again.ts';
import { warehouseIn } from '../base/warehouse-file.ts';
import { ensureRestored } from './backup/restoring.ts';
import { readStudyText } from './enrolment/study-text.ts';

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

/** @throws UsageError naming what is to be set before anybody can sign in */
export function ensureSignIn({ serviceUrl, signIn }: Pick<Settings, 'serviceUrl' | 'signIn'>): SignInSettings {
  if (!serviceUrl) throw new UsageError(NO_SERVICE);
  if (!signIn) throw new UsageError(NO_CLIENT);
  return signIn;
}

/** @throws UsageError naming what is to be set before anybody can be invited */
export function ensureEnrolment(settings: Pick<Settings, 'serviceUrl' | 'signIn' | 'enrolment'>): EnrolmentSettings {
  ensureSignIn(settings);
  if (!settings.enrolment) throw new UsageError(NO_ENROLMENT);
  readStudyText(settings.enrolment);
  return settings.enrolment;
}

/** What is to be done where there is no warehouse. */
export const howToBegin = (settings: Pick<Settings, 'signIn'>): string =>
  `to begin here, ${accessCommand('NAME', settings)}; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it`;
