import { removeCommonFile } from '../base/common-files.ts';
import { RingneckError, shownMessageOf, TryLaterError, UsageError, unlessRefused } from '../base/errors.ts';
import { loginCommand } from '../base/sign-in-again.ts';
import { TimeoutError, withTimeout } from '../base/timeout.ts';
import { ServiceError } from '../client/error.ts';
import {
  type Account,
  accountEntry,
  accountExists,
  changeAccounts,
  findAccount,
  findServiceUserId,
  isAsRead,
  listAccounts,
  noRefusalsEntry,
} from '../ledger/accounts.ts';
import { noWithdrawalEntry } from '../ledger/links.ts';
import { ANOTHER_PERSON, isOfUnknownPerson, isWithdrawn, refusedUnchecked, twinOf, UNCHECKED } from '../ledger/unproven.ts';
import { isNotOffered, isRefusal, probeAccount } from '../sync/verdicts/probe.ts';
import { findPerson, findTwin, findWithdrawnTwin, isAnother } from '../sync/verdicts/same-person.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { holdsDataOf } from '../warehouse/stored-documents.ts';
import type { App } from './app.ts';
import { endConsoleSessionsOf } from './console-sessions.ts';
import { TRIED_MS } from './doctor/accounts.ts';
import { removePersonFiles } from './person-files/folder.ts';

export const BLIND =
  'the service never said whose the data of this account are, so nobody can tell whether the new token is of the same person: if it is not, remove the account and add it by another name';

/** What an account is to be read with. */
export interface Credential {
  token: string;
  /** What its person has allowed, where that is known. */
  scopes?: readonly string[];
  /** Whether its person has signed in with it: what is not kept of that is taken back, and another person's is never kept. */
  isSignIn?: true;
  /** Whose it is, as the service has said. */
  person?: string | undefined;
  /** Who had the account before is known to be the same: it need not be proven. */
  isProven?: boolean;
  /** What else is recorded, once it is kept, together with the account. */
  entries?: readonly LedgerEntry[];
  /** Keeps it, alone or with the sign-in that it is of, in place of what the account has. */
  keep(): void;
}

/** An account that is being added or given a token, before the service was asked. */
export interface AddedAccount {
  account: Account;
  credential: Credential;
  /** The account as the ledger has it. */
  recorded: Account | undefined;
  /** The token that it has. */
  keptToken: string | undefined;
  /** Nothing is read with the token before it is known to be of the same person: until then the earlier one is used. */
  isUnproven: boolean;
  /** The account is read with what it has, of a known person: that stays until the new one is shown to be of the same. */
  hasGood: boolean;
  /** Its first token, given with an id: where the service does not tell whose it is, the word counts. */
  isGiven?: boolean;
  /** Nobody can tell whether the token is of the person whose data are stored. */
  isBlind: boolean;
}

/** @throws UsageError when somebody says of two accounts that they are one person */
export async function ensureIdFree(warehouse: App['warehouse'], name: string, serviceUser: string): Promise<void> {
  const other = (await listAccounts(warehouse)).find(({ serviceUserId, userId }) => serviceUserId === serviceUser && userId !== name);
  if (!other) return;
  throw new UsageError(`${serviceUser} is already the service’s id of ${other.userId}: ringneck account remove ${other.userId} frees it`);
}

/** Whose a token is, before anything is kept; undefined where the service does not tell now: it is asked again once the token is kept. */
export const askWhose = (app: App, token: string): Promise<string | undefined> => askWhoseSurely(app, token).catch(() => undefined);

/**
 * Whose a token is; undefined where its person has not allowed that to be told.
 * @throws where the service gives no answer to that
 */
export async function askWhoseSurely(app: App, token: string): Promise<string | undefined> {
  if (!app.settings.serviceUrl) return undefined;
  const client = await app.client();
  return withTimeout(findPerson(client, token), TRIED_MS);
}

/** @throws RingneckError where the person of the token has another account */
export async function ensureNoTwin(warehouse: App['warehouse'], name: string, person: string | undefined): Promise<void> {
  const other = await findTwin(warehouse, name, person);
  if (other === undefined) return;
  const cure = await howToReadAs(warehouse, name, other);
  throw new RingneckError(`${twinOf(other)}, and nothing was stored: to give ${other} this token, ringneck account add ${other}; ${cure}`);
}

/** Removed, the other account would keep its rows, and be read once more. */
export async function howToReadAs(warehouse: App['warehouse'], name: string, other: string): Promise<string> {
  const isTaken = await accountExists(warehouse, name);
  return `to read its person as ${name}, ${isTaken ? `first ringneck account remove ${other}` : `ringneck account move ${other} ${name}`}`;
}

/** Keeps a token at once where it need not be proven. Within `changeAccounts`. */
export async function beginAccount(app: App, name: string, credential: Credential, serviceUser: string | undefined): Promise<AddedAccount> {
  const { warehouse, secrets } = app;
  const known = await findServiceUserId(warehouse, name);
  if (serviceUser !== undefined) {
    await ensureIdFree(warehouse, name, serviceUser);
    if (known !== null && known !== serviceUser) {
      throw new UsageError(
        `${name} is ${known} at the service, and its data are of that person: add ${serviceUser} by another name, or say that both are one with ringneck account map ${name} ${serviceUser}`,
      );
    }
  }
  const before = await findAccount(warehouse, name);
  // Of an account that was removed only its own person is read by its name again, where they are known.
  if (!before && known === null) await leaveToNext(app, name);
  // What is damaged is given again by that.
  const keptToken = unlessRefused(() => secrets.findOfAny(name));
  const isNew = credential.token !== keptToken;
  const wasProven = before?.state === 'active' || (before?.state === 'parked' && !isOfUnknownPerson(before.reason));
  const needsProof = isNew || !wasProven;
  const findBlind = async () => known === null && (isNew || isOfUnknownPerson(before?.reason ?? null)) && holdsDataOf(warehouse, name);
  const isBlind = await findBlind();
  const isGiven = known === null && !isBlind && serviceUser !== undefined && needsProof;
  const isUnproven = (known !== null && needsProof && !credential.isProven) || (isBlind && serviceUser !== undefined) || isGiven;
  const account: Account = {
    userId: name,
    serviceUserId: serviceUser ?? known ?? credential.person ?? null,
    since: warehouse.clock.next(),
    ...(isUnproven ? { state: 'parked', reason: UNCHECKED } : { state: 'active', reason: null }),
  };
  const hasGood = known !== null && isNew && keptToken !== undefined && isInUse(before);
  if (isUnproven) return { account, credential, recorded: before, keptToken, isUnproven, hasGood, isGiven, isBlind: false };
  // What ends between the token and the account leaves one that waits to be added again.
  const fresh = before ? [] : [noWithdrawalEntry(name)];
  if (isBlind) await warehouse.record([accountEntry({ ...account, serviceUserId: known, state: 'parked', reason: UNCHECKED }), ...fresh]);
  try {
    credential.keep();
  } catch (error) {
    if (isBlind) await warehouse.record([accountEntry(before ?? { ...account, state: 'removed' })]);
    throw error;
  }
  await warehouse.record([accountEntry(account), noRefusalsEntry(name), ...fresh, ...(credential.entries ?? [])]);
  // An answer to the earlier token may have been on its way into the file.
  return { account, credential, recorded: account, keptToken, isUnproven, hasGood: false, isBlind: isBlind || (await findBlind()) };
}

/** Has who had a name before, and still looks at their own data by it, see nothing of who gets it. */
async function leaveToNext({ warehouse, secrets, settings: { data }, log }: App, name: string): Promise<void> {
  secrets.leaveToNext(name);
  if (!(await accountExists(warehouse, name))) return;
  const instead = endConsoleSessionsOf(data, name);
  if (instead) log.warn(instead);
  removePersonFiles(data);
  // By this the other machines of a lake do so too.
  removeCommonFile(data, 'moving.json');
}

const isInUse = (account: Account | undefined) =>
  account?.state === 'active' || (account?.state === 'paused' && !isOfUnknownPerson(account.reason));

/** What the service says of a token. */
interface Verdict {
  /** Why the account is parked; null: it is active. */
  reason: string | null;
  warning: string | null;
  /** Whose it is, where the service tells. */
  person?: string | undefined;
  /** Whether the service took or refused it. */
  tried: boolean;
}

/** An account as it was recorded, and what the service said of its token. */
export interface Greeted extends Pick<Verdict, 'warning' | 'tried'> {
  account: Account;
}

/** Asks the service whether it takes the token, and whose it is: the account is active, or parked with the reason. */
export async function greet(app: App, added: AddedAccount): Promise<Greeted> {
  const { warehouse } = app;
  const { credential, isUnproven, account } = added;
  const { token } = credential;
  const end = (verdict: Verdict) => changeAccounts(warehouse, () => conclude(app, added, verdict));
  const stay = (warning: string, tried = false) => end({ reason: isUnproven && !added.isGiven ? UNCHECKED : null, warning, tried });

  if (!app.settings.serviceUrl) return stay('RINGNECK_SERVICE_URL is not set: the token was not tried');
  const client = await app.client();
  const findPersonOnceTaken = async () => {
    await probeAccount({ client, warehouse, serviceClock: app.serviceClock }, token, { scopes: credential.scopes });
    return findPerson(client, token);
  };
  let person: string | undefined;
  try {
    // Nobody who adds an account is to wait for all attempts at a service that is ill.
    person = await withTimeout(findPersonOnceTaken(), TRIED_MS);
  } catch (error) {
    if (isRefusal(error)) {
      const refusal = `${error.kind}: ${error.message}`;
      const reason = isUnproven ? refusedUnchecked(refusal) : refusal;
      return end({ reason, warning: `the service refuses the token: ${shownMessageOf(error)}`, tried: true });
    }
    if (error instanceof ServiceError && error.kind === 'stopped') {
      const left = isUnproven ? 'the new token is not kept. Give it again.' : 'its token is kept, and was not tried.';
      throw new TryLaterError(`ringneck is being ended while ${account.userId} is added: ${left}`);
    }
    const said = error instanceof TimeoutError ? `the service has not answered yet (${error.message})` : shownMessageOf(error);
    const hint = isNotOffered(error) ? ': is RINGNECK_SERVICE_URL right? Ringneck adds /v2 itself' : '';
    return stay(`the token could not be tried: ${client.findSilence()?.why ?? `${said}${hint}`}`);
  }
  if (isUnproven && person === undefined) return stay('the service takes the token and does not say whose it is', true);
  return end({ reason: null, warning: null, person, tried: true });
}

/** Who signed in, or whose token was given, is not who the account is of. */
export class WrongPersonError extends RingneckError {
  /** The service's own id of the person. */
  readonly person: string;
  /** The account that they have. */
  readonly other: string | undefined;

  constructor(message: string, { person, other }: { person: string; other?: string | undefined }) {
    super(message);
    this.person = person;
    this.other = other;
  }
}

/** Why what an account has got is not kept: what it has is good, or nobody may be read by what it has got. Undefined: it is kept. */
function findRefused(
  { account: { userId }, recorded, credential, hasGood, isUnproven }: AddedAccount,
  { reason, warning, person }: Verdict,
  { isOther, hadSignIn }: { isOther: boolean; hadSignIn: boolean },
): RingneckError | undefined {
  if (!isUnproven) return undefined;
  const { isSignIn = false } = credential;
  const again = isSignIn ? loginCommand(userId) : `ringneck account add ${userId}`;
  if (isOther && person !== undefined && (isSignIn || (hasGood && hadSignIn))) {
    const who = isSignIn ? 'the person who signed in is' : 'the token is of';
    const cure = isSignIn ? 'sign out there, then ' : 'give one of the same person: ';
    return new WrongPersonError(`${who} somebody else (${person} at the service), not ${userId}, and nothing was stored: ${cure}${again}`, {
      person,
    });
  }
  const why = warning ?? reason;
  // It would take the mark away, and what the study gives counted again: only the person's own word does that.
  if (reason !== null && isWithdrawn(recorded?.reason ?? null)) {
    return new TryLaterError(
      `nobody knows whose it is (${why}), and the person of ${userId} has withdrawn: nothing was stored. Try again later, and allow the scope personal: ${again}`,
    );
  }
  if (!hasGood || reason === null || !(isSignIn || hadSignIn)) return undefined;
  return new TryLaterError(
    `nobody knows whose it is (${why}), and ${userId} has a sign-in that is good: nothing was stored. Try again later, and allow the scope personal: ${again}`,
  );
}

/** Records what the service has said. Within `changeAccounts`. */
async function conclude(app: App, added: AddedAccount, said: Verdict): Promise<Greeted> {
  const { reason, warning, person, tried } = said;
  const { warehouse, secrets } = app;
  const { credential, isUnproven } = added;
  const overtaking = await findOvertaking(app, added);
  const account = overtaking ?? added.account;
  const changed = `the account was changed meanwhile and is ${howIs(account)}`;
  if (account.state === 'removed' || (overtaking && !secrets.isSame(account.userId, credential.token)))
    return { account, warning: changed, tried };
  const isOther = isAnother(account, person);
  const refused = findRefused(added, said, { isOther, hadSignIn: secrets.hasSignIn(account.userId) });
  if (refused) throw refused;
  const findOther = async () =>
    (await findTwin(warehouse, account.userId, person)) ??
    (credential.isSignIn ? undefined : await findWithdrawnTwin(warehouse, account.userId, person));
  const twin = isOther ? undefined : await findOther();
  const alarm = isOther ? ANOTHER_PERSON : twin === undefined ? undefined : twinOf(twin);
  const verdict = alarm ?? reason;
  let next = { ...account, serviceUserId: account.serviceUserId ?? (twin === undefined ? person : undefined) ?? null };
  if (!overtaking) next = { ...next, state: verdict === null ? 'active' : 'parked', reason: verdict };
  // What another command has made of the account stays, but for what the service says of the token that it has.
  else if (alarm !== undefined) {
    next = { ...next, state: account.state === 'paused' ? 'paused' : 'parked', reason: verdict };
  }
  if (next.state !== account.state || next.reason !== account.reason) next.since = warehouse.clock.next();
  // A process that ends between the two must not leave an active account with the token of somebody else.
  if (isUnproven && next.state === 'active') credential.keep();
  const fresh = added.recorded ? [] : [noWithdrawalEntry(account.userId)];
  await warehouse.record([accountEntry(next), noRefusalsEntry(account.userId), ...fresh]);
  if (isUnproven && next.state !== 'active') {
    try {
      credential.keep();
    } catch (error) {
      // The earlier token stays, and with it how the account stood.
      if (added.recorded) await warehouse.record([accountEntry(added.recorded)]);
      throw error;
    }
  }
  return { account: next, warning: alarm ?? warning ?? (overtaking ? changed : null), tried };
}

const howIs = ({ state, reason }: Account) => `${state}${reason ? `: ${reason}` : ''}`;

/**
 * The account as another command has left it while the service was asked. The parking of the earlier token is no such change: it says
 * nothing of the new one.
 * @throws TryLaterError where the new token is not kept
 */
async function findOvertaking(
  { warehouse, secrets }: App,
  { account, recorded, keptToken, isUnproven }: AddedAccount,
): Promise<Account | undefined> {
  const { userId } = account;
  if (await isAsRead(warehouse, userId, recorded)) return undefined;
  const current = (await findAccount(warehouse, userId)) ?? { ...account, state: 'removed', reason: null };
  if (!isUnproven) return current;
  const isParkedSince =
    recorded?.state === 'active' &&
    current.state === 'parked' &&
    current.serviceUserId === recorded.serviceUserId &&
    !isOfUnknownPerson(current.reason);
  if (isParkedSince && (secrets.findOfAny(userId) === keptToken || secrets.isSame(userId, keptToken ?? ''))) return undefined;
  throw new TryLaterError(`${userId} was changed meanwhile and is ${howIs(current)}: the new token is not kept. Give it again.`);
}
