import { groupBy } from '../base/items.ts';
import { mustSignInAgain } from '../base/sign-in-again.ts';
import { isOfUnknownPerson, isUnchecked, UNCHECKED } from '../ledger/unproven.ts';

/** What is to be done, where more than one command says it. */

export const READ_MISSING = 'What is missing is read by: ringneck coverage --repair';

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

export const newToken = (name: string) => `give it a new token: ringneck account add ${name}`;

/** What is to be done about an account that the service refuses; undefined where its reason says it. */
export function fixParked({ user_id: name, state, reason }: Standing): string | undefined {
  if (state !== 'parked') return undefined;
  if (isUnchecked(reason) && reason !== UNCHECKED) return newToken(name);
  if (isOfUnknownPerson(reason) || mustSignInAgain(reason)) return undefined;
  return `${newToken(name)}; or, if it was fixed there: ringneck account resume ${name}`;
}

const FIX_ALL = 'ringneck account resume --parked, if it was fixed there; or ringneck account add NAME, for a new token';

/** Accounts that are not asked, those that are so for one reason together: of two hundred that one fault has parked there is one line. */
export function tellAlike(accounts: readonly Standing[]): Alike[] {
  const withoutName = ({ user_id: name, reason }: Standing) =>
    reason?.replaceAll(`account add ${name}`, 'account add NAME').replaceAll(`account login ${name}`, 'account login NAME') ?? '';
  const alike = groupBy(accounts, account => `${account.state}\n${withoutName(account)}`);
  return [...alike.values()].map(group => {
    const [first] = group;
    const reason = group.length === 1 ? first.reason : withoutName(first);
    const fix = fixParked(first);
    return {
      said: `${nameTogether(group.map(({ user_id }) => user_id))} ${first.state}${reason ? ` (${reason})` : ''}`,
      fix: fix && group.length > 1 ? FIX_ALL : fix,
    };
  });
}

export const sentenceOf = ({ said, fix }: Alike): string => (fix ? `${said}: ${fix}` : said);

const nameTogether = (names: readonly string[]) => (names.length === 1 ? `${names[0]} is` : `${names.length} accounts are`);
