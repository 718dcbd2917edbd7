import { findInterrupted, whatGoesOn } from '../../sync/runs/interrupted-runs.ts';
import { nameRun } from '../../sync/runs/run-name.ts';
import { reportAccounts } from '../../sync/status.ts';
import type { App } from '../app.ts';
import { type CheckResult, warn } from './check-result.ts';

const SHOWN = 5;

/** Whether a run was interrupted that nobody goes on with; and whether days between the first that was planned and yesterday were never read, of accounts that are asked: those of each collection count. */
export async function checkDays(app: App): Promise<CheckResult[]> {
  const workedOn = await app.workedOn();
  const interrupted = [...(await findInterrupted(app, workedOn)).values()].map(run =>
    warn('days', `${nameRun(run)} was interrupted, and nobody goes on with it`, whatGoesOn(run)),
  );
  return [...interrupted, ...(await checkUnread(app, workedOn))];
}

async function checkUnread({ warehouse, collections, now, serviceClock }: App, workedOn: ReadonlySet<string>): Promise<CheckResult[]> {
  const accounts = await reportAccounts({ warehouse, now, serviceClock }, collections, workedOn);
  const unread = accounts
    .map(({ user_id, collections }) => ({ user_id, days: collections.reduce((sum, { unread_days: days }) => sum + days, 0) }))
    .filter(({ days }) => days > 0);
  if (!unread.length) return [];
  const shown = unread.slice(0, SHOWN).map(({ user_id, days }) => `${days} of ${user_id}`);
  if (unread.length > SHOWN) shown.push(`those of ${unread.length - SHOWN} others`);
  const said = `days of collections lie before today that were never read to their end, or failed when last read: ${shown.join(', ')}`;
  return [warn('days', said, 'ringneck coverage shows them, ringneck coverage --repair reads them')];
}
