import { UsageError } from '../base/errors.ts';
import { Mutex } from '../base/mutex.ts';
import { noAccount } from '../base/no-account.ts';
import type { Tokens } from '../base/secrets/secrets.ts';
import { createKeptRows, hasRows, number, oneOf, orNull, type Readable, type Row, readRows, readValues, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { quoteName, quoteText, textList } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import { isWithdrawn, twinOf } from './unproven.ts';

const ACCOUNT_STATES = ['active', 'paused', 'parked', 'removed'] as const;

export type AccountState = (typeof ACCOUNT_STATES)[number];

const ACCOUNT = {
  userId: text,
  serviceUserId: orNull(text),
  state: oneOf(ACCOUNT_STATES),
  reason: orNull(text),
  since: number,
};

/** `since` in microseconds since the epoch. */
export type Account = Readonly<Row<typeof ACCOUNT>>;

/** `user_id` in every table: also a file's name, a metric's label, a word in a shell. */
const ACCOUNT_NAME = /^[A-Za-z0-9._-]{1,64}$/;

export const isAccountName = (name: string): boolean => ACCOUNT_NAME.test(name);

/** Throws UsageError when a name could not be an account's. */
export function parseAccountName(name: string): string {
  if (!isAccountName(name)) {
    throw new UsageError(`${JSON.stringify(name)} cannot name an account: 1 to 64 letters, digits, ".", "_" or "-"`);
  }
  return name;
}

/** The accounts by name; those removed are left out. */
export const listAccounts = async (warehouse: Warehouse): Promise<Account[]> => [...(await readAccounts(warehouse, LISTED))];

const LISTED = `WHERE state <> 'removed' ORDER BY user_id`;

async function readAccounts(warehouse: Warehouse, which: string): Promise<readonly Account[]> {
  const sql = `SELECT user_id, service_user_id, state, reason, since FROM sync.accounts ${which}`;
  return toAccounts(await warehouse.readKept('sync.accounts', sql));
}

const toAccounts = createKeptRows(ACCOUNT);

/**
 * Finds accounts, those removed too, by the service's own id of the person. Of several accounts of one person it finds one that is active,
 * if any is.
 */
export function createAccountFinder(warehouse: Warehouse): (serviceUserId: string) => Promise<Account | undefined> {
  // The last of those with one id is the one that stays.
  const order = `WHERE service_user_id IS NOT NULL ORDER BY state = 'active', state <> 'removed', user_id DESC`;
  let known: { rows: readonly Account[]; accounts: Map<string | null, Account> } | undefined;
  return async serviceUserId => {
    const rows = await readAccounts(warehouse, order);
    if (known?.rows !== rows) known = { rows, accounts: new Map(rows.map(account => [account.serviceUserId, account])) };
    return known.accounts.get(serviceUserId);
  };
}

export async function findAccount(warehouse: Warehouse, userId: string): Promise<Account | undefined> {
  return (await readAccounts(warehouse, LISTED)).find(account => account.userId === userId);
}

/** The service's own id of the person of this account, also of one that was removed: its rows are still there. Null where nobody knows. */
export async function findServiceUserId(warehouse: Warehouse, userId: string): Promise<string | null> {
  const accounts = await readAccounts(warehouse, '');
  return accounts.find(account => account.userId === userId)?.serviceUserId ?? null;
}

/** The accounts whose people have withdrawn and have not come back themselves, those removed too. */
export async function listWithdrawn(warehouse: Warehouse): Promise<Account[]> {
  return (await readAccounts(warehouse, '')).filter(({ reason }) => isWithdrawn(reason));
}

/** @throws UsageError naming the accounts that there are */
export async function getAccount(warehouse: Warehouse, userId: string): Promise<Account> {
  const accounts = await listAccounts(warehouse);
  const account = accounts.find(({ userId: name }) => name === userId);
  if (account) return account;
  throw noAccount(
    userId,
    accounts.map(({ userId: name }) => name),
  );
}

/** How somebody has left; undefined where they have not. A file that is given again does not bring them back. */
export async function howLeft(warehouse: Warehouse, userId: string): Promise<'has withdrawn' | 'was removed' | undefined> {
  if ((await listWithdrawn(warehouse)).some(account => account.userId === userId)) return 'has withdrawn';
  if (await findAccount(warehouse, userId)) return undefined;
  return (await accountExists(warehouse, userId)) ? 'was removed' : undefined;
}

/** How an account stands: an active one without a token for this service is `without_token`, which no ledger holds. */
export function shownAccount(account: Account, tokens?: Pick<Tokens, 'whyMissing'>): Omit<Account, 'state'> & { state: string } {
  const missing = account.state === 'active' ? tokens?.whyMissing(account.userId) : undefined;
  return missing === undefined ? account : { ...account, state: 'without_token', reason: missing };
}

/** The ledger's row of an account. */
export function accountEntry({ userId, serviceUserId, state, reason, since }: Account): LedgerEntry {
  return {
    table: 'sync.accounts',
    key: { user_id: userId },
    row: { service_user_id: serviceUserId, state, reason, since },
  };
}

/** What takes away all that an account was refused before it was given what it has now: a new token, or another try. */
export const noRefusalsEntry = (userId: string): LedgerEntry => ({ table: 'sync.suspicions', key: { user_id: userId, kind: 'refused' } });

const changing = new WeakMap<Warehouse, Mutex>();

/**
 * Changes accounts, one change after the other: what `work` reads of accounts and tokens stays so until what it records is committed.
 * Never nested, and never held while the service is asked.
 */
export function changeAccounts<T>(warehouse: Warehouse, work: () => Promise<T>): Promise<T> {
  const changes = changing.get(warehouse) ?? new Mutex();
  changing.set(warehouse, changes);
  return changes.run(work);
}

/**
 * Whether nobody has changed an account since it was read: what the service says meanwhile may be of another token.
 * @param known undefined where there was none
 */
export async function isAsRead(warehouse: Warehouse, userId: string, known: Account | undefined): Promise<boolean> {
  const current = await findAccount(warehouse, userId);
  return current?.since === known?.since && current?.state === known?.state && current?.serviceUserId === known?.serviceUserId;
}

/** Commits another state of an account, within `changeAccounts`; its windows and rows stay as they are. */
export async function setAccountState(
  warehouse: Warehouse,
  account: Account,
  state: AccountState,
  reason: string | null,
): Promise<Account> {
  const changed = changedTo(warehouse, account, state, reason);
  await recordStates(warehouse, [changed]);
  return changed;
}

/** The same of several, all or none of them. */
export async function setAccountStates(
  warehouse: Warehouse,
  accounts: readonly Account[],
  state: AccountState,
  reason: string | null,
): Promise<Account[]> {
  const changed = accounts.map(account => changedTo(warehouse, account, state, reason));
  await recordStates(warehouse, changed);
  return changed;
}

const changedTo = (warehouse: Warehouse, account: Account, state: AccountState, reason: string | null): Account => ({
  ...account,
  state,
  reason,
  since: warehouse.clock.next(),
});

async function recordStates(warehouse: Warehouse, changed: readonly Account[]): Promise<void> {
  const resumed = changed.filter(({ state }) => state === 'active');
  const entries = [...changed.map(accountEntry), ...resumed.map(({ userId }) => noRefusalsEntry(userId))];
  // Nobody goes on to be read for want of room.
  await warehouse.record(entries, { usesReserve: !resumed.length });
}

const PARKED = { userId: text, collection: text, reason: orNull(text) };

export type ParkedCollection = Row<typeof PARKED>;

/** Collections that the service refused last, of accounts that have not been given a new token or resumed since. */
export function listParkedCollections(warehouse: Readable): Promise<ParkedCollection[]> {
  return readRows(
    warehouse,
    PARKED,
    `SELECT w.user_id, w.collection, arg_max(w.reason, w.committed_at)
     FROM sync.windows w JOIN sync.accounts a USING (user_id)
     WHERE a.state = 'active' AND w.outcome IS NOT NULL AND w.outcome <> 'stopped'
     GROUP BY ALL HAVING arg_max(w.outcome, w.committed_at) = 'not_authorised' AND max(w.committed_at) > any_value(a.since)
     ORDER BY ALL`,
  );
}

/** The names of the accounts in their order: of those named, removed or not, or else of all that are not removed. */
export async function listNames(warehouse: Warehouse, named: readonly string[] = []): Promise<string[]> {
  const accounts = await readAccounts(warehouse, '');
  const wanted = accounts.filter(({ userId, state }) => (named.length ? named.includes(userId) : state !== 'removed'));
  return wanted.map(({ userId }) => userId).sort();
}

/** The names of all accounts, those removed too. */
export async function listAllNames(warehouse: Warehouse): Promise<string[]> {
  return (await readAccounts(warehouse, '')).map(({ userId }) => userId).sort();
}

/**
 * Those of the accounts that no run has read yet, nor is to; a reading of heart rate alone counts where somebody asked for it, one that was
 * refused or has failed does not.
 */
export const listNeverRead = (warehouse: Readable, names: readonly string[], heartRate: string): Promise<string[]> =>
  readValues(
    warehouse,
    text,
    `SELECT user_id FROM sync.accounts WHERE user_id IN (${textList(names)}) AND user_id NOT IN
       (SELECT w.user_id FROM sync.windows w JOIN sync.runs r USING (run_id)
        WHERE w.user_id IN (${textList(names)}) AND coalesce(w.outcome NOT IN ('not_authorised', 'failed'), true)
          AND (w.collection <> ${quoteText(heartRate)} OR r.kind = 'backfill'))
     ORDER BY user_id`,
  );

/** Whether an account of this name was ever added and not erased since; also one that is removed, whose rows stay. */
export const accountExists = (warehouse: Readable, name: string): Promise<boolean> =>
  hasRows(warehouse, `SELECT 1 FROM sync.accounts WHERE user_id = ${quoteText(name)}`);

/** The other accounts of the same person, those removed too: what they hold stays. Also those that were parked for being so. */
export const findSamePerson = (warehouse: Readable, name: string): Promise<string[]> =>
  readValues(
    warehouse,
    text,
    `SELECT user_id FROM sync.accounts WHERE user_id <> ${quoteText(name)} AND (service_user_id IN
       (SELECT service_user_id FROM sync.accounts WHERE user_id = ${quoteText(name)})
       OR list_contains(string_split(reason, '; '), ${quoteText(twinOf(name))})) ORDER BY user_id`,
  );

/** Accounts that were removed, each with one of the same person that was not. */
export const listFormer = (warehouse: Readable): Promise<{ former: string; name: string }[]> =>
  readRows(
    warehouse,
    { former: text, name: text },
    `SELECT f.user_id, a.user_id FROM sync.accounts f JOIN sync.accounts a USING (service_user_id)
     WHERE f.state = 'removed' AND a.state <> 'removed' ORDER BY ALL`,
  );

/** By which ids the service's events name a person, now and before; not those by which they name another account too. */
export function findServiceUserIds(warehouse: Readable, name: string): Promise<string[]> {
  const ids = (where: string) =>
    `SELECT service_user_id FROM sync.accounts WHERE ${where} UNION SELECT service_user_id FROM sync.events WHERE ${where}`;
  return readValues(
    warehouse,
    text,
    `SELECT service_user_id FROM (${ids(`user_id = ${quoteText(name)}`)}) WHERE service_user_id IS NOT NULL
     EXCEPT SELECT service_user_id FROM (${ids(`user_id <> ${quoteText(name)}`)}) ORDER BY ALL`,
  );
}

/** Pairs of accounts, none removed and not known to be one person, that have documents with the same identifiers, and of which tables. */
export function listSharedDocuments(warehouse: Readable, tables: readonly string[]) {
  const counted = tables.map(
    table =>
      `SELECT a.user_id AS one, b.user_id AS other, ${quoteText(table)} AS collection, count(*) AS documents
       FROM ${quoteName(table)} a JOIN ${quoteName(table)} b ON a.id = b.id AND a.user_id < b.user_id GROUP BY ALL`,
  );
  return readRows(
    warehouse,
    { one: text, other: text, documents: number, collections: text },
    `SELECT one, other, sum(documents)::BIGINT, string_agg(collection, ', ' ORDER BY collection) FROM (${counted.join(' UNION ALL ')}) s
     JOIN sync.accounts x ON x.user_id = one AND x.state <> 'removed' JOIN sync.accounts y ON y.user_id = other AND y.state <> 'removed'
     WHERE x.service_user_id IS DISTINCT FROM y.service_user_id OR x.service_user_id IS NULL
     GROUP BY ALL ORDER BY ALL`,
  );
}
