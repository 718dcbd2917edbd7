import { type Account, listAccounts } from '../../../jobs/accounts.ts';
import { isRefusal, probeAccount } from '../../../jobs/probe.ts';
import { listSamePersons } from '../../../jobs/same-person.ts';
import { shownMessageOf, UsageError } from '../../errors.ts';
import { withinTime } from '../../within-time.ts';
import type { Owner } from '../owner.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { findSilence } from './reach.ts';

const ANSWER_MS = 15_000;
/** After it no further account is tried. */
const ALL_MS = 40_000;
const SIDE_BY_SIDE = 8;

/** Whether the service takes each account's token. Where it gives no answer, which takes its time for each, none is tried. */
export async function examineAccounts(owner: Owner, serviceUrl: string): Promise<Finding[]> {
  const accounts = await listAccounts(owner.warehouse);
  if (!accounts.length) return [warn('accounts', 'there is no account yet', 'ringneck account add NAME')];
  const silence = await findSilence(serviceUrl);
  const notTried =
    silence === undefined
      ? undefined
      : fail(
          'accounts',
          `not tried: the service gives no answer (${silence})`,
          'see what is said of the service; the accounts may be well',
        );
  const end = performance.now() + ALL_MS;
  const findings: Finding[] = [];
  const left = accounts.values();
  const worker = async () => {
    for (const account of left) if (performance.now() < end) findings.push(await examineAccount(owner, account, notTried));
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
  const troubled = [...new Set(findings.filter(({ state }) => state !== 'ok'))];
  if (findings.length < accounts.length) {
    troubled.push(
      warn('accounts', `only ${findings.length} of ${accounts.length} were tried in time`, 'run it again when less is going on'),
    );
  }
  // A line for each of a thousand that are well would hide the one that is not.
  const well = findings.filter(({ state }) => state === 'ok').length;
  return well && !notTried ? [ok('accounts', `${well} of ${findings.length} accounts are well`), ...troubled] : troubled;
}

/** Whether anybody is kept under more than one name. */
export async function examineSamePersons({ warehouse }: Pick<Owner, 'warehouse'>): Promise<Finding[]> {
  return (await listSamePersons(warehouse)).map(({ accounts, eventsGoTo }) =>
    warn(
      'accounts',
      `${accounts.join(', ')} are the same person at the service: events go to ${eventsGoTo} alone`,
      'ringneck account remove NAME, for what is not needed; one that stays is kept up by sweeps',
    ),
  );
}

/** @param notTried what is found of one that would be tried, where none is */
async function examineAccount(owner: Owner, { userId, state, reason }: Account, notTried: Finding | undefined): Promise<Finding> {
  const anew = `give it a new token: ringneck account add ${userId}`;
  if (state === 'paused') return ok('accounts', `${userId} is paused`);
  if (state === 'parked')
    return warn(
      'accounts',
      `${userId} is parked${reason ? ` (${reason})` : ''}`,
      `${anew}; or, if it was mended there: ringneck account resume ${userId}`,
    );
  try {
    const token = owner.secrets.find(userId);
    if (token === undefined) {
      const why = owner.secrets.whyMissing(userId) ?? 'no token';
      return fail('accounts', `${userId} has no token for this service (${why})`, `ringneck account add ${userId}`);
    }
    if (notTried) return notTried;
    const client = await owner.client();
    await withinTime(probeAccount({ client, warehouse: owner.warehouse, serviceClock: owner.serviceClock }, token), ANSWER_MS);
    return ok('accounts', `${userId} is well`);
  } catch (error) {
    if (isRefusal(error)) {
      const mend =
        error.kind === 'unauthorized' ? anew : 'the membership has lapsed or a permission is missing: that is for its holder to mend';
      return fail('accounts', `the service refuses ${userId} (${shownMessageOf(error)})`, mend);
    }
    const mend = error instanceof UsageError ? 'do what it says' : 'see what is said of the service; the account itself may be well';
    return fail('accounts', `${userId} could not be tried (${shownMessageOf(error)})`, mend);
  }
}
