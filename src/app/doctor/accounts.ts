import { RingneckError, shownMessageOf } from '../../base/errors.ts';
import { type Group, groupBy } from '../../base/items.ts';
import { accessCommand, loginCommand } from '../../base/sign-in-again.ts';
import { withTimeout } from '../../base/timeout.ts';
import { type Account, changeAccounts, listAccounts } from '../../ledger/accounts.ts';
import { newToken } from '../../ledger/unproven.ts';
import { SignInError } from '../../sign-in/error.ts';
import { isRefusal, probeAccount } from '../../sync/verdicts/probe.ts';
import { keepOnce, listCountedTwice, listSamePersons, tellCountedTwice } from '../../sync/verdicts/same-person.ts';
import type { App } from '../app.ts';
import { tellAlike, withoutName } from '../fixes.ts';
import { listWithoutAccount } from '../kept-tokens.ts';
import { type CheckResult, fail, notTried, ok, SEE_SERVICE, warn } from './check-result.ts';
import { findSilence } from './service.ts';

/** For one account's token to be tried. */
export const TRIED_MS = 15_000;
/** After it no further account is tried. */
const ALL_MS = 40_000;
const SIDE_BY_SIDE = 8;

/** Whether the service takes each account's token. Where it gives no answer, which takes its time for each, none is tried. */
export async function checkAccounts(app: App, serviceUrl: string): Promise<CheckResult[]> {
  const accounts = await listAccounts(app.warehouse);
  if (!accounts.length) return [warn('accounts', 'there is no account yet', accessCommand('NAME', app.settings))];
  const silence = await findSilence(serviceUrl);
  const end = performance.now() + ALL_MS;
  const parked = accounts.filter(({ state }) => state === 'parked');
  const asked = accounts.filter(({ state }) => state !== 'parked');
  const found: (Trouble | 'well' | 'not tried')[] = [];
  const left = asked.values();
  const worker = async () => {
    for (const account of left) if (performance.now() < end) found.push(await checkAccount(app, account, silence !== undefined));
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
  const troubles = found.filter(one => typeof one === 'object');
  const results = [
    ...tellAlike(parked.map(toStanding)).map(({ said, fix }) => warn('accounts', said, fix ?? 'do what it says')),
    ...[...groupBy(troubles, ({ message, fix }) => JSON.stringify([message('NAME', true), fix('NAME')])).values()].map(tellTogether),
  ];
  if (silence !== undefined && found.includes('not tried'))
    results.unshift(notTried('accounts', silence, `${SEE_SERVICE}; the accounts may be well`));
  if (found.length < asked.length) {
    results.push(warn('accounts', `only ${found.length} of ${asked.length} were tried in time`, 'run it again when less is going on'));
  }
  // A line for each of a thousand that are well would hide the one that is not.
  const well = found.filter(one => one === 'well').length;
  return well && silence === undefined
    ? [ok('accounts', `${well} of ${found.length + parked.length} accounts are well`), ...results]
    : results;
}

const toStanding = ({ userId, state, reason }: Account) => ({ user_id: userId, state, reason });

/** What is wrong with an account, said so that it can be said of several. */
interface Trouble {
  userId: string;
  message(who: string, many: boolean): string;
  fix(name: string): string;
}

function tellTogether(alike: Group<Trouble>): CheckResult {
  const [{ userId, message, fix }] = alike;
  return alike.length === 1
    ? fail('accounts', message(userId, false), fix(userId))
    : fail('accounts', message(`${alike.length} accounts`, true), fix('NAME'));
}

/** Whether tokens are kept for which there is no account. */
export async function checkKeptTokens(app: Pick<App, 'warehouse' | 'secrets' | 'mirrorTokens'>): Promise<CheckResult[]> {
  return (await changeAccounts(app.warehouse, () => listWithoutAccount(app))).map(name =>
    warn(
      'accounts',
      `${name} has a token, a sign-in or a token for the mirror, and is no account: a sign-in was interrupted, or the tokens are younger than the warehouse, as in a backup during which accounts came and went`,
      `ringneck account remove ${name}, which forgets what is kept and takes a sign-in back; then add it again where it belongs here`,
    ),
  );
}

/** Whether anybody is kept under more than one name, also by one that was removed. */
export async function checkSamePersons({ warehouse }: Pick<App, 'warehouse'>): Promise<CheckResult[]> {
  const several = (await listSamePersons(warehouse)).map(({ accounts, eventsGoTo }) =>
    warn(
      'accounts',
      `${accounts.join(', ')} are the same person at the service: events go to ${eventsGoTo} alone`,
      'ringneck account remove NAME, for what is not needed; one that stays is kept up by sweeps',
    ),
  );
  const twice = (await listCountedTwice(warehouse)).map(pair => warn('accounts', tellCountedTwice(pair), keepOnce(pair)));
  return [...several, ...twice];
}

async function checkAccount(app: App, { userId, state }: Account, isSilent: boolean): Promise<Trouble | 'well' | 'not tried'> {
  if (state === 'paused') return 'well';
  try {
    const token = app.secrets.find(userId);
    if (token === undefined) {
      const fix = (name: string) => (app.secrets.hasSignIn(userId) ? loginCommand(name) : accessCommand(name, app.settings));
      const why = app.secrets.whyMissing(userId) ?? 'no token';
      const whyOf = (many: boolean) => (many ? withoutName(userId, why) : why);
      return { userId, message: (who, many) => `${who} ${many ? 'have' : 'has'} no token for this service (${whyOf(many)})`, fix };
    }
    if (isSilent) return 'not tried';
    const client = await app.client();
    const scopes = app.secrets.findSignIn(userId)?.scopes;
    await withTimeout(probeAccount({ client, warehouse: app.warehouse, serviceClock: app.serviceClock }, token, { scopes }), TRIED_MS);
    return 'well';
  } catch (error) {
    const why = shownMessageOf(error);
    if (isRefusal(error)) {
      const lapsed = 'the membership has lapsed or a permission is missing: that is for its holder to fix';
      const renew = app.secrets.hasSignIn(userId) ? loginCommand : newToken;
      const fix = (name: string) => (error.kind === 'unauthorized' ? renew(name) : lapsed);
      return { userId, message: who => `the service refuses ${who} (${why})`, fix };
    }
    // What the service said at a renewal is a sentence of ours too, and says nothing of what to do.
    const saysWhat = error instanceof RingneckError && !(error instanceof SignInError);
    const fix = saysWhat ? 'do what it says' : `${SEE_SERVICE}; the account itself may be well`;
    return { userId, message: who => `${who} could not be tried (${why})`, fix: () => fix };
  }
}
