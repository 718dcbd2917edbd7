import { RingneckError, shownMessageOf, TryLaterError } from '../base/errors.ts';
import { findAccount, howLeft } from '../ledger/accounts.ts';
import { askAgain, isWithdrawn } from '../ledger/unproven.ts';
import { addAccount } from './account-commands.ts';
import type { App } from './app.ts';
import type { CommandContext } from './control/command.ts';
import { storeTold } from './participants.ts';
import type { BadLine, PersonToAdd } from './people-file.ts';

/** What became of a line. */
export interface LineReport {
  line: number;
  user_id: string;
  /** Failed: the service refuses the token or could not be asked, or the account was not added; `reason` says which. */
  result: 'added' | 'unchanged' | 'failed';
  /** Of the account; null where there is none. */
  state: string | null;
  service_user_id: string | null;
  reason: string | null;
}

export interface AddedPeople {
  people: LineReport[];
  /** When there are any, nothing was done. */
  bad: BadLine[];
}

export const addAccountsCommands = { addAccounts };

/**
 * Adds an account for each line, or gives it its new token, and stores what the lines tell of participants. Who is there with the same
 * token is left as they are, and so is who has withdrawn or was removed. What was done before it was stopped stays done.
 */
async function addAccounts(
  app: App,
  { people }: { people: readonly PersonToAdd[] },
  { emit, signal }: CommandContext<LineReport>,
): Promise<AddedPeople> {
  const bad = await storeTold(app, people);
  if (bad.length) return { people: [], bad };
  const reports: LineReport[] = [];
  for (const person of people) {
    signal.throwIfAborted();
    const report = await addOne(app, person);
    emit(report);
    reports.push(report);
  }
  return { people: reports, bad: [] };
}

async function addOne(app: App, { line, name, token }: PersonToAdd): Promise<LineReport> {
  const report = (report: Omit<LineReport, 'line' | 'user_id'>): LineReport => ({ line, user_id: name, ...report });
  try {
    const before = await findAccount(app.warehouse, name);
    const left = before ? undefined : await howLeft(app.warehouse, name);
    if (left !== undefined) {
      const again = left === 'was removed' ? `ringneck account add ${name} adds them all the same` : askAgain(name);
      const reason = `${left}: ${again}`;
      return report({ result: 'unchanged', state: 'removed', service_user_id: null, reason });
    }
    if (before && (isWithdrawn(before.reason) || (before.state !== 'parked' && app.secrets.find(name) === token))) {
      return report({ result: 'unchanged', state: before.state, service_user_id: before.serviceUserId, reason: before.reason });
    }
    const { state, service_user_id, reason, warning, tried } = await addAccount(app, { name, token });
    const isRead = state === 'active' && tried;
    return report({ result: isRead ? 'added' : 'failed', state, service_user_id, reason: reason ?? warning });
  } catch (error) {
    if (!(error instanceof RingneckError) || error instanceof TryLaterError) throw error;
    const { state = null, serviceUserId = null } = (await findAccount(app.warehouse, name)) ?? {};
    return report({ result: 'failed', state, service_user_id: serviceUserId, reason: shownMessageOf(error) });
  }
}
