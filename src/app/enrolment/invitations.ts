import { randomBytes } from 'node:crypto';
import { isoOf, MICROS_PER_DAY } from '../../../schema/instant.ts';
import { UsageError } from '../../base/errors.ts';
import { changeAccounts, findAccount, getAccount, parseAccountName, shownAccount } from '../../ledger/accounts.ts';
import { findLink, hashOf, type Link, linkEntry, listLinks, noInvitationEntry, withdrawalLink } from '../../ledger/links.ts';
import { mapCommand } from '../../sync/events/map-command.ts';
import { findTwin } from '../../sync/verdicts/same-person.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import type { App } from '../app.ts';
import { ensureEnrolment } from '../ensure-there.ts';
import { listWithoutAccount } from '../kept-tokens.ts';
import { takeBackEnded } from '../take-back.ts';

export interface InvitationReport {
  user_id: string;
  /** `done`: the account needs no invitation any more. */
  state: 'open' | 'expired' | 'done';
  created_at: string;
  expires_at: string | null;
  /** Who signed in by it and was refused last. */
  problem: string | null;
}

export interface Invited {
  user_id: string;
  /** Shown here once and never again. */
  url: string;
  expires_at: string;
  /** Whether an earlier link of the name, which was still open, has ended by this. */
  replaced: boolean;
}

/** What the owner of a data folder does with invitations. */
export const invitationCommands = { planInvitation, inviteAccount, revokeInvitation, listInvitations, makeWithdrawalLink };

export const newSecret = (): string => randomBytes(32).toString('base64url');

/**
 * Makes the link by which somebody signs in as this account, in place of an earlier one.
 * @param input.days for which it can be used
 * @throws UsageError where the settings lack something, or the account does not have to sign in
 */
export async function inviteAccount(app: App, input: { name: string; days: number }): Promise<Invited> {
  const { warehouse } = app;
  return changeAccounts(warehouse, async () => {
    const { invited, entries } = await makeInvitation(app, { ...input, links: await listLinks(warehouse, 'connect') });
    await warehouse.record(entries);
    return invited;
  });
}

/**
 * The link of `inviteAccount`, which is one as soon as its entries are recorded: before that no account may change.
 * @param input.links all that there are
 * @throws as `inviteAccount`
 */
export async function makeInvitation(
  app: App,
  { name, days, links }: { name: string; days: number; links: readonly Link[] },
): Promise<{ invited: Invited; entries: LedgerEntry[] }> {
  const { publicUrl } = await ensureInvitable(app, name);
  const secret = newSecret();
  const createdAt = app.now() * 1000;
  const expiresAt = createdAt + days * MICROS_PER_DAY;
  const link: Link = {
    secretHash: hashOf(secret),
    kind: 'connect',
    userId: name,
    createdAt,
    expiresAt,
    problem: null,
    serviceUserId: null,
  };
  const replaced = links.some(earlier => earlier.userId === name && isInTime(app, earlier));
  const invited = { user_id: name, url: `${publicUrl}/connect/${secret}`, expires_at: isoOf(expiresAt), replaced };
  return { invited, entries: [noInvitationEntry(name), linkEntry(link)] };
}

/** Whether a link could be made, without making one. @throws as `inviteAccount` */
async function planInvitation(app: App, { name }: { name: string }): Promise<{ user_id: string }> {
  await ensureInvitable(app, name);
  return { user_id: name };
}

async function ensureInvitable(app: App, name: string): Promise<ReturnType<typeof ensureEnrolment>> {
  parseAccountName(name);
  const enrolment = ensureEnrolment(app.settings);
  const why = await whyUninvitable(app, name);
  if (why !== undefined) throw new UsageError(why);
  return enrolment;
}

/** Why nobody is invited as this account: there is nothing to sign in for. Undefined where somebody may be. */
async function whyUninvitable({ warehouse, secrets }: App, name: string): Promise<string | undefined> {
  const account = await findAccount(warehouse, name);
  if (!account) return undefined;
  const { state } = shownAccount(account, secrets);
  if (state === 'active') return `${name} is active: an invitation is for a name that is free, or for an account that has to sign in again`;
  const isPaused = state === 'paused' && secrets.whyMissing(name) === undefined;
  return isPaused ? `${name} is paused and has not to sign in again: ringneck account resume ${name}` : undefined;
}

const isInTime = ({ now }: Pick<App, 'now'>, { expiresAt }: Link) => expiresAt === null || now() * 1000 < expiresAt;

/** The invitation with this secret, where it can be used. */
export async function findOpenInvitation(app: App, secret: string): Promise<Link | undefined> {
  const link = await findLink(app.warehouse, 'connect', secret);
  return link && isInTime(app, link) && (await whyUninvitable(app, link.userId)) === undefined ? link : undefined;
}

/** Makes another link by which the person of an account withdraws; those before stay good. */
async function makeWithdrawalLink(app: App, { name }: { name: string }): Promise<{ user_id: string; url: string }> {
  const { warehouse, now } = app;
  const { publicUrl } = ensureEnrolment(app.settings);
  const secret = newSecret();
  await changeAccounts(warehouse, async () => {
    await getAccount(warehouse, name);
    await warehouse.record([linkEntry(withdrawalLink(name, secret, now() * 1000))]);
  });
  return { user_id: name, url: withdrawalUrl(publicUrl, secret) };
}

export const withdrawalUrl = (publicUrl: string, secret: string): string => `${publicUrl}/connect/withdraw/${secret}`;

/** Ends the link of a name, and takes back what a sign-in by it has left that was interrupted. */
async function revokeInvitation(app: App, { name }: { name: string }): Promise<{ user_id: string; revoked: true }> {
  const { warehouse, secrets, mirrorTokens, now } = app;
  parseAccountName(name);
  await changeAccounts(warehouse, async () => {
    const hasLink = (await listLinks(warehouse, 'connect')).some(({ userId }) => userId === name);
    const isLeft = (await listWithoutAccount(app)).includes(name);
    if (!hasLink && !isLeft) throw new UsageError(`${name} has no invitation: ringneck account invitations shows those there are`);
    await warehouse.record([noInvitationEntry(name)]);
    if (!isLeft) return;
    secrets.end(name, now());
    mirrorTokens.remove(name);
  });
  await takeBackEnded(app, name);
  return { user_id: name, revoked: true };
}

export async function listInvitations(app: App): Promise<InvitationReport[]> {
  const links = await listLinks(app.warehouse, 'connect');
  return Promise.all(
    links.map(async link => ({
      user_id: link.userId,
      state: !isInTime(app, link) ? 'expired' : (await whyUninvitable(app, link.userId)) === undefined ? 'open' : 'done',
      created_at: isoOf(link.createdAt),
      expires_at: link.expiresAt === null ? null : isoOf(link.expiresAt),
      problem: await tellProblem(app, link),
    })),
  );
}

/** The other account is found by the person's id: its name stands in no row but its own. */
async function tellProblem(app: App, { userId, problem, serviceUserId }: Link): Promise<string | null> {
  if (problem === null) return null;
  if (problem === 'another') return tellAnother(userId);
  if (problem === 'unrecognised') return tellUnrecognised(userId, serviceUserId);
  const other = await findTwin(app.warehouse, userId, serviceUserId ?? undefined);
  return other === undefined ? tellEnrolled('another account', true) : tellEnrolled(other, await isReadNow(app, other));
}

export const tellEnrolled = (other: string, isRead: boolean): string =>
  `the person who signed in is already ${other}, ${isRead ? '' : 'which is not read now, '}and nothing was stored${isRead ? '' : `: ringneck why ${other}; once they sign in as ${other} they are read again`}`;

/** Whether an account is neither paused nor parked, and has what it is read with. */
export async function isReadNow({ warehouse, secrets }: App, name: string): Promise<boolean> {
  const account = await findAccount(warehouse, name);
  return account !== undefined && shownAccount(account, secrets).state === 'active';
}

/** @param person the service's own id of who signed in, where that is known and the account's is not */
export const tellUnrecognised = (name: string, person: string | null): string =>
  person === null
    ? `nobody can tell whether who signed in is the person whose data ${name} has, and nothing was stored: they have to allow the scope personal`
    : `nobody knows whose the data of ${name} are, and nothing was stored of who signed in (${person} at the service): if they are the same, ${mapCommand(person, name)}, then the link again; if not, invite them by another name`;

export const tellAnother = (name: string): string => `somebody else signed in than ${name} was before, and nothing was stored`;
