import type { Client } from '../../client/client.ts';
import {
  type Account,
  changeAccounts,
  createAccountFinder,
  findAccount,
  listAccounts,
  listFormer,
  listWithdrawn,
  setAccountState,
} from '../../ledger/accounts.ts';
import { ANOTHER_PERSON, cureOf, isTwin, isWithdrawn } from '../../ledger/unproven.ts';
import { holdsDataOf } from '../../warehouse/stored-documents.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { Pipeline } from '../pipeline.ts';
import { isRefusal } from './probe.ts';

/** As of the user in an event. */
const LONGEST_ID = 1_024;

/**
 * The service’s own id of the person of a token that it takes; undefined where it does not tell, or none that an event can have. A refusal
 * does not tell either: the permission for it may be missing alone.
 */
export async function findPerson(client: Pick<Client, 'personalInfo'>, token: string, signal?: AbortSignal): Promise<string | undefined> {
  try {
    const info = await client.personalInfo(token, signal);
    return info && info.id.length <= LONGEST_ID ? info.id : undefined;
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

/**
 * Whether the person of a token is known to be another one than that of an account. What it brings would be mixed with what is stored.
 * A known id may also come from `account map`, so the last word is the user's.
 */
export const isAnother = ({ serviceUserId }: Account, person: string | undefined): boolean =>
  serviceUserId !== null && person !== undefined && person !== serviceUserId;

/** Parks an account that is read with a token that has turned out to be another person's, and has its keeper told. */
export async function parkAnother(
  { warehouse, tokens, log, onFailure }: Pick<Pipeline, 'warehouse' | 'log' | 'onFailure'> & { tokens: Pick<Pipeline['tokens'], 'isSame'> },
  userId: string,
  { token, person }: { token: string; person: string },
): Promise<void> {
  const isParked = await changeAccounts(warehouse, async () => {
    const account = await findAccount(warehouse, userId);
    // It may have been given another token, or mapped, meanwhile.
    if (account?.state !== 'active' || !isAnother(account, person) || !tokens.isSame(userId, token)) return false;
    await setAccountState(warehouse, account, 'parked', ANOTHER_PERSON);
    return true;
  });
  if (!isParked) return;
  log.warn({ account: userId, person }, 'the token of the account is that of another person: parked');
  onFailure({ reason: 'account_parked', user: userId, message: `${ANOTHER_PERSON}: ${cureOf(userId, ANOTHER_PERSON)}` });
}

/**
 * The account that a person has already, where another name is not to get it too. Pairs of before, whose user was told of them, go on.
 * @param name the account that would be the second one
 */
export async function findTwin(warehouse: Warehouse, name: string, person: string | undefined): Promise<string | undefined> {
  if (person === undefined) return undefined;
  const same = (await listAccounts(warehouse)).filter(({ serviceUserId }) => serviceUserId === person);
  const isPair = same.some(({ userId, reason }) => userId === name && !isTwin(reason));
  return isPair ? undefined : same.find(({ userId, reason }) => userId !== name && !isTwin(reason))?.userId;
}

/**
 * The account by which the person of a token has withdrawn, where no account of theirs is read by their own word since. What the study gives
 * does not take that back.
 */
export async function findWithdrawnTwin(warehouse: Warehouse, name: string, person: string | undefined): Promise<string | undefined> {
  if (person === undefined) return undefined;
  const theirs = ({ serviceUserId }: Account) => serviceUserId === person;
  const isBack = (await listAccounts(warehouse)).some(
    account => theirs(account) && !isWithdrawn(account.reason) && !isTwin(account.reason),
  );
  return isBack ? undefined : (await listWithdrawn(warehouse)).find(account => theirs(account) && account.userId !== name)?.userId;
}

/** Accounts that are one person at the service. */
export interface SamePerson {
  accounts: string[];
  /** The one of them that has the person's events. */
  eventsGoTo: string;
}

/** Everybody of whom there is more than one account; those removed do not count. */
export async function listSamePersons(warehouse: Warehouse): Promise<SamePerson[]> {
  const byPerson = new Map<string, string[]>();
  for (const { serviceUserId, userId } of await listAccounts(warehouse)) {
    if (serviceUserId !== null) byPerson.set(serviceUserId, [...(byPerson.get(serviceUserId) ?? []), userId]);
  }
  const find = createAccountFinder(warehouse);
  const several: SamePerson[] = [];
  for (const [serviceUserId, accounts] of byPerson) {
    const found = accounts.length > 1 ? await find(serviceUserId) : undefined;
    if (found) several.push({ accounts, eventsGoTo: found.userId });
  }
  return several;
}

/** Accounts that were removed and have rows of a person who is read by another name now: over all accounts the same days count twice. */
export async function listCountedTwice(warehouse: Warehouse): Promise<{ former: string; name: string }[]> {
  const found: { former: string; name: string }[] = [];
  for (const pair of await listFormer(warehouse)) if (await holdsDataOf(warehouse, pair.former)) found.push(pair);
  return found;
}

export const tellCountedTwice = ({ former, name }: { former: string; name: string }): string =>
  `${former}, which was removed, has rows of the same person as ${name}: the same days count twice`;

export const keepOnce = ({ former }: { former: string }): string => `ringneck account remove ${former} --erase`;
