import { isoOf } from '../../schema/instant.ts';
import { RingneckError, UsageError, unlessRefused } from '../base/errors.ts';
import { proven } from '../base/secrets/sign-in.ts';
import {
  type Account,
  accountEntry,
  changeAccounts,
  findAccount,
  getAccount,
  howLeft,
  listAccounts,
  listWithdrawn,
  parseAccountName,
  setAccountState,
  setAccountStates,
  shownAccount,
} from '../ledger/accounts.ts';
import { consentEntry, listHolding } from '../ledger/consents.ts';
import { noInvitationEntry } from '../ledger/links.ts';
import { askAgain, isOfAnother, isOfUnknownPerson, isWithdrawn, pausedReason, twinIn } from '../ledger/unproven.ts';
import { takeUpEvents } from '../sync/events/take-up.ts';
import { lastDays } from '../sync/runs/backfill.ts';
import { findWithdrawnTwin, keepOnce, listCountedTwice, listSamePersons, tellCountedTwice } from '../sync/verdicts/same-person.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import { type AddedAccount, askWhose, BLIND, beginAccount, ensureIdFree, ensureNoTwin, greet, howToReadAs } from './add-account.ts';
import type { App } from './app.ts';
import { withFix } from './fixes.ts';
import { holdsTokens } from './kept-tokens.ts';
import { findOtherOwner, findReadableSignIn, listLeftOf, OTHERS, takeBackEnded } from './take-back.ts';

export interface AccountReport {
  user_id: string;
  service_user_id: string | null;
  state: string;
  reason: string | null;
  since: string;
}

export interface AddedReport extends AccountReport {
  /** Whether the service was asked, and took or refused what the account has got. */
  tried: boolean;
  /** The other accounts of the same person, and which one of all has the events. Null: there is no other. */
  same_person: { accounts: string[]; events_go_to: string } | null;
}

const reportOf = ({ userId, serviceUserId, state, reason, since }: ReturnType<typeof shownAccount>): AccountReport =>
  withFix({ user_id: userId, service_user_id: serviceUserId, state, reason, since: isoOf(since) });

/** What the owner of a data folder does with accounts and their tokens. */
export const accountCommands = {
  addAccount,
  mapAccount,
  listAccounts: listAccountReports,
  removeAccount,
  pauseAccount,
  resumeAccounts,
  mirrorToken,
};

/**
 * Adds an account or gives a known one its new token, or (without `token`) the one that it has for this address too; asks the service
 * whether it takes the token.
 */
export async function addAccount(
  app: App,
  input: { name: string; token?: string; serviceUser?: string; from?: string },
): Promise<AddedReport & { warning: string | null }> {
  const name = parseAccountName(input.name);
  const { to } = lastDays(1, app.serviceClock);
  if (input.from && input.from > to) throw new UsageError(`--from ${input.from} is in the future`);
  if (input.token !== undefined) app.secrets.acceptKey();
  const tokenOf = () => input.token ?? app.secrets.findOfAny(name);
  await ensureNotWithdrawn(app, name);
  const person = await askForTwin(app, name, tokenOf());
  for (const one of [person, input.serviceUser]) await ensurePersonStays(app, name, one);
  let hadSignIn = false;
  const added = await changeAccounts(app.warehouse, async () => {
    await ensureNotWithdrawn(app, name);
    if (input.token === undefined && app.secrets.hasSignIn(name)) {
      throw new UsageError(`${name} has signed in, which holds for one address: ringneck account login ${name}`);
    }
    const token = tokenOf();
    if (token === undefined) throw new UsageError(`${name} has no token that could be kept: give one without --keep-token`);
    for (const one of [person, input.serviceUser]) await ensurePersonStays(app, name, one);
    await ensureNoTwin(app.warehouse, name, person);
    await ensureNobodysElse(app, name, token);
    const former = await findAccount(app.warehouse, name);
    const keep = () => {
      hadSignIn = app.secrets.hasSignIn(name);
      app.secrets.put(name, token, formerEndsAt(app, former));
    };
    return beginAccount(app, name, { token, keep }, input.serviceUser);
  });
  const report = await reportAdded(app, added);
  const isSeenToWork = report.tried && report.state === 'active' && !app.secrets.hasSignIn(name);
  return hadSignIn && isSeenToWork ? takeBackFormer(app, report) : report;
}

/** Since when the sign-in of an account is to be taken back that gets something else now; undefined for another person's, which is not. */
export const formerEndsAt = ({ now }: Pick<App, 'now'>, former: Account | undefined): number | undefined =>
  isOfAnother(former?.reason ?? null) ? undefined : now();

/** Takes back the sign-in before, once what came in its place was seen to work. Where that fails the report warns of it. */
export async function takeBackFormer<Report extends AddedReport & { warning: string | null }>(app: App, report: Report): Promise<Report> {
  const { user_id: name, warning } = report;
  await takeBackEnded(app, name);
  const isLeft = listLeftOf(app.secrets, name).some(({ isGivenUp }) => !isGivenUp);
  return isLeft ? { ...report, warning: [warning, STILL_ALIVE].filter(Boolean).join('; ') } : report;
}

const STILL_ALIVE =
  'the sign-in before could not be taken back at the service: ringneck up tries it each day for 30 days, and its person can do that there';

/** @throws UsageError: a token that the study gives is not the word of a person who has withdrawn */
async function ensureNotWithdrawn({ warehouse }: App, name: string): Promise<void> {
  if ((await howLeft(warehouse, name)) === 'has withdrawn') throw new UsageError(tellWithdrawn(name));
}

/** @throws UsageError where the person of a token has withdrawn, by whatever name */
async function ensurePersonStays({ warehouse }: App, name: string, person: string | undefined): Promise<void> {
  const withdrawn = await findWithdrawnTwin(warehouse, name, person);
  if (withdrawn !== undefined) throw new UsageError(`${tellWithdrawn(withdrawn)} (the token given for ${name} is theirs)`);
}

/** @throws RingneckError where another account has the very token; not where this one has it already */
async function ensureNobodysElse(app: App, name: string, token: string): Promise<void> {
  if (app.secrets.findOwner([token], [name]) !== undefined) return;
  const other = await findOtherOwner(app, name, [token]);
  if (other === undefined) return;
  const cure = await howToReadAs(app.warehouse, name, other);
  throw new RingneckError(`the account ${other} has the same token, and nothing was stored: ${cure}`);
}

/** Whose the token is, where there is somebody else whose it might be. */
async function askForTwin(app: App, name: string, token: string | undefined): Promise<string | undefined> {
  const all = [...(await listAccounts(app.warehouse)), ...(await listWithdrawn(app.warehouse))];
  const others = all.filter(({ userId, serviceUserId }) => userId !== name && serviceUserId !== null);
  return token === undefined || !others.length ? undefined : askWhose(app, token);
}

/** What the service says of an account that is being added, or given something new. */
export async function reportAdded(app: App, added: AddedAccount): Promise<AddedReport & { warning: string | null }> {
  const { account, warning, tried } = await greet(app, added);
  const waiting = await takeUpWaiting(app);
  const twice = (await listCountedTwice(app.warehouse))
    .filter(({ name }) => name === account.userId)
    .map(pair => `${tellCountedTwice(pair)}: ${keepOnce(pair)}`);
  return {
    ...reportOf(account),
    warning: [warning, added.isBlind ? BLIND : null, tellElsewhere(app), ...twice].filter(Boolean).join('; ') || waiting,
    tried,
    same_person: await findSamePerson(app.warehouse, account.userId),
  };
}

/** Whose tokens are still sealed with a key that is lost, or not there now. */
function tellElsewhere({ secrets }: App): string | null {
  const names = secrets.namesElsewhere();
  if (!names.length) return null;
  return `what ${names.join(', ')} gave was sealed with another key than there is now: put that one back, or add them again, one after the other`;
}

async function mapAccount(
  app: App,
  { name, serviceUser }: { name: string; serviceUser: string },
): Promise<AccountReport & { warning: string | null }> {
  const { before, account } = await changeAccounts(app.warehouse, async () => {
    const known = await getAccount(app.warehouse, name);
    // Who has signed in has given their own word.
    if (!app.secrets.hasSignIn(name)) await ensurePersonStays(app, name, serviceUser);
    await ensureIdFree(app.warehouse, name, serviceUser);
    const mapped = { ...known, serviceUserId: serviceUser };
    await app.warehouse.record([accountEntry(mapped)]);
    return { before: known.serviceUserId, account: mapped };
  });
  const waiting = await takeUpWaiting(app);
  const warning =
    before === null || before === serviceUser
      ? waiting
      : `${name} was ${before} at the service until now: events of that id find no account any more`;
  return { ...reportOf(account), warning };
}

async function listAccountReports(app: App): Promise<AccountReport[]> {
  const tokens = { whyMissing: (name: string) => app.secrets.whyUnusable(name) };
  return (await listAccounts(app.warehouse)).map(account => reportOf(shownAccount(account, tokens)));
}

/** Forgets the token, which a sign-in takes back at the service too; what was agreed to ends, the rows stay. A token may be all that there is. */
async function removeAccount(app: App, { name }: { name: string }): Promise<AccountReport> {
  const report = await changeAccounts(app.warehouse, async () => {
    const account = holdsTokens(app, name) ? await findAccount(app.warehouse, name) : await getAccount(app.warehouse, name);
    return forgetAccount(app, name, account);
  });
  await takeBackEnded(app, name);
  return report;
}

/** Within `changeAccounts`. */
async function forgetAccount(app: App, name: string, account: Account | undefined): Promise<AccountReport> {
  // An account without tokens can be removed again; tokens without an account would stay.
  const isOthers = isOfAnother(account?.reason ?? null);
  if (isOthers && app.secrets.hasSignIn(name)) app.log.warn({ account: name }, `a sign-in was not taken back at the service: ${OTHERS}`);
  if (isOthers) app.secrets.remove(name);
  else app.secrets.end(name, app.now());
  app.mirrorTokens.remove(name);
  const noInvitation = noInvitationEntry(name);
  if (!account) {
    await app.warehouse.record([noInvitation], { usesReserve: true });
    return reportOf({ userId: name, serviceUserId: null, state: 'removed', reason: null, since: app.warehouse.clock.next() });
  }
  const holding = await listHolding(app.warehouse, name);
  const ended = holding.map(consent => consentEntry({ ...consent, withdrawnAt: app.now() * 1000 }));
  await app.warehouse.record([noInvitation, ...ended], { usesReserve: true });
  // Who has withdrawn has done so also once the study has forgotten the account.
  return reportOf(await setAccountState(app.warehouse, account, 'removed', isWithdrawn(account.reason) ? account.reason : null));
}

async function pauseAccount(app: App, { name }: { name: string }): Promise<AccountReport> {
  return changeAccounts(app.warehouse, async () => {
    const account = await getAccount(app.warehouse, name);
    if (isWithdrawn(account.reason)) return reportOf(account);
    return reportOf(await setAccountState(app.warehouse, account, 'paused', pausedReason(account.reason)));
  });
}

/** Those named, all or none; without names all that are parked, but those whose token may be of somebody else, which stay so. */
async function resumeAccounts(
  app: App,
  { names, parked }: { names?: string[]; parked?: true },
): Promise<(AccountReport & { warning: string | null })[]> {
  const stays = ({ reason }: Account) => parked === true && isOfUnknownPerson(reason);
  const { chosen, resumed } = await changeAccounts(app.warehouse, async () => {
    const chosen = parked
      ? (await listAccounts(app.warehouse)).filter(({ state }) => state === 'parked')
      : await Promise.all([...new Set(names)].map(name => getAccount(app.warehouse, name)));
    for (const { userId, reason } of chosen) {
      await ensureNotWithdrawn(app, userId);
      const twin = twinIn(reason);
      if (twin !== undefined && !parked) await ensureNotWithdrawn(app, twin);
    }
    const asked = chosen.filter(account => !stays(account));
    for (const { userId, reason } of asked) if (isOfUnknownPerson(reason)) takeAsSame(app, userId);
    const resumed = await setAccountStates(app.warehouse, asked, 'active', null);
    for (const { userId } of resumed) unlessRefused(() => app.askSignInAgain(userId));
    return { chosen, resumed };
  });
  const warning = resumed.length ? await takeUpWaiting(app) : null;
  return chosen.map(account => {
    const changed = resumed.find(({ userId }) => userId === account.userId);
    return changed ? { ...reportOf(changed), warning } : { ...reportOf(account), warning: null };
  });
}

const tellWithdrawn = (name: string) =>
  `the person of ${name} has withdrawn, and is read again only after another sign-in of theirs: ${askAgain(name)}`;

/** Whoever resumes an account by its name says that its renewed tokens are of the same person, until the next renewal. */
function takeAsSame({ secrets }: App, name: string): void {
  const signIn = findReadableSignIn({ secrets }, name);
  if (signIn?.unprovenSince === undefined) return;
  secrets.putSignIn(name, proven(signIn));
}

async function mirrorToken(app: App, { name }: { name: string }): Promise<{ user_id: string; token: string }> {
  await getAccount(app.warehouse, name);
  return { user_id: name, token: app.mirrorTokens.create(name) };
}

async function findSamePerson(warehouse: Warehouse, name: string): Promise<AddedReport['same_person']> {
  const same = (await listSamePersons(warehouse)).find(({ accounts }) => accounts.includes(name));
  return same ? { accounts: same.accounts.filter(other => other !== name), events_go_to: same.eventsGoTo } : null;
}

/**
 * Where events are worked off, those that waited for their account are taken up now; elsewhere at the next start of `up`.
 * @returns what to warn of
 */
async function takeUpWaiting({ opened }: App): Promise<string | null> {
  const pipeline = await opened;
  if (!pipeline || (await takeUpEvents(pipeline))) return null;
  return 'events that waited for their accounts could not be taken up now: it is tried again each minute';
}
