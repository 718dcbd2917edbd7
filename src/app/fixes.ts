import { groupBy } from '../base/items.ts';
import { cureOf, isOfAnother, isOfUnknownPerson, isSignInOver, isWithdrawn, twinIn } from '../ledger/unproven.ts';
import { isUngranted } from '../sync/verdicts/ungranted.ts';

/** What is to be done, where more than one command says it. */

/** Why an account is not read, for who may not look into the ledger. */
export { isOfAnother, isOfUnknownPerson, isSignInOver, isWithdrawn, twinIn };

export const READ_MISSING = 'What is missing is read by: ringneck coverage --repair';

/** What has an account, or a collection, read that was never asked for. */
export const readFirst = (name: string): string =>
  `ringneck up reads the last days, ringneck backfill --user ${name} --from DAY those before`;

/** Whether nobody need do anything about a collection: what a person has not allowed is no fault. */
export const isWell = ({ state, reason }: { state: string; reason: string | null }): boolean =>
  ['up_to_date', 'pending', 'not_offered'].includes(state) || (state === 'not_authorised' && isUngranted(reason));

/** Whether a window failed for the service refused its account, or would have: that was parked by then. */
export const isRefused = ({ kind }: { kind: string }): boolean => ['unauthorized', 'forbidden', 'not_authorised'].includes(kind);

/** An account as it is shown. */
export interface Standing {
  user_id: string;
  state: string;
  reason: string | null;
}

/** Accounts of which the same is said. */
interface Alike {
  /** `ada is parked (unauthorized: …)`, `200 accounts are parked (…)` */
  said: string;
  /** Undefined where nothing is to be done, or the reason says it. */
  fix: string | undefined;
}

/** What is to be done about an account that is parked; undefined where its reason says it. */
function fixParked({ user_id: name, state, reason }: Standing): string | undefined {
  return state === 'parked' ? cureOf(name, reason) : undefined;
}

/** An account whose reason ends with what is to be done about it. */
export function withFix<Account extends Standing>(account: Account): Account {
  const fix = fixParked(account);
  return fix === undefined ? account : { ...account, reason: [account.reason, fix].filter(Boolean).join(': ') };
}

const FIX_ALL =
  'ringneck account resume --parked, if it was fixed there; or ringneck account add NAME, for a new token, or ringneck account login NAME';

/** A reason as it is said of several accounts. */
export const withoutName = (name: string, reason: string): string =>
  reason.replaceAll(`account add ${name}`, 'account add NAME').replaceAll(`account login ${name}`, 'account login NAME');

/** Accounts that are not asked, those that are so for one reason together: of two hundred that one fault has parked there is one line. */
export function tellAlike(accounts: readonly Standing[]): Alike[] {
  const alike = groupBy(accounts, ({ user_id, state, reason }) => `${state}\n${withoutName(user_id, reason ?? '')}`);
  return [...alike.values()].map(group => {
    const [first] = group;
    const reason = group.length === 1 ? first.reason : withoutName(first.user_id, first.reason ?? '');
    const fix = fixParked(first);
    return {
      said: `${nameTogether(group.map(({ user_id }) => user_id))} ${first.state}${reason ? ` (${reason})` : ''}`,
      fix: fix && group.length > 1 ? FIX_ALL : fix,
    };
  });
}

export const sentenceOf = ({ said, fix }: Alike): string => (fix ? `${said}: ${fix}` : said);

const nameTogether = (names: readonly string[]) => (names.length === 1 ? `${names[0]} is` : `${names.length} accounts are`);
