import type { Client } from '../../client/client.ts';
import { type Account, createAccountFinder, listAccounts } from '../../ledger/accounts.ts';
import { isTwin } from '../../ledger/unproven.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
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
