import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import type { SignIn } from '../../base/secrets/sign-in.ts';
import { TimeoutError } from '../../base/timeout.ts';
import { ServiceError } from '../../client/error.ts';
import { changeAccounts, findServiceUserId } from '../../ledger/accounts.ts';
import { type Consent, consentEntry } from '../../ledger/consents.ts';
import { type Link, linkEntry, listLinks, noInvitationEntry, withdrawalLink } from '../../ledger/links.ts';
import type { ConnectOptions, SignInOutcome } from '../../receiver/connect/connect.ts';
import { SignInError } from '../../sign-in/error.ts';
import { holdsDataOf } from '../../warehouse/stored-documents.ts';
import { WrongPersonError } from '../add-account.ts';
import type { App } from '../app.ts';
import { exchangeCode, storeSignIn } from '../login.ts';
import { HourlyLimit } from './hourly-limit.ts';
import { findOpenInvitation, isReadNow, newSecret, tellAnother, tellEnrolled, tellUnrecognised, withdrawalUrl } from './invitations.ts';
import { readStudyText } from './study-text.ts';
import { findWithdrawal, withdraw } from './withdrawal.ts';

type Answer = Parameters<ConnectOptions['finish']>[0];

/** Codes of one link that the service refused, in an hour: it would shut our client out, and so all, for who makes codes up. */
const MOST_FAILED = 10;

const TOO_MANY = `the service has refused ${MOST_FAILED} codes of one invitation within an hour: its link takes none until an hour after the first`;

/**
 * What the pages for invited people do; undefined where nobody can be invited.
 * @param find throws TryLaterError while the folder is closed
 * @throws UsageError where the study's text cannot be read
 */
export function openConnect({ settings, log, now }: Pick<App, 'settings' | 'log' | 'now'>, find: () => App): ConnectOptions | undefined {
  const { enrolment, signIn } = settings;
  if (!enrolment || !signIn) return undefined;
  readStudyText(enrolment);
  const redirectUrl = `${enrolment.publicUrl}/connect/callback`;
  const finishing = new Set<string>();
  const refusals = new HourlyLimit(MOST_FAILED, now);
  const notAdmitted = new HourlyLimit(MOST_FAILED, now);
  return {
    publicUrl: enrolment.publicUrl,
    study: { name: enrolment.studyName, contact: enrolment.studyContact },
    authorizeUrl: signIn.authorizeUrl,
    scopes: signIn.scopes,
    readText: () => readStudyText(enrolment),
    isOpen: async secret => (await findOpenInvitation(findReady(find), secret)) !== undefined,
    begin: async () => {
      const { createAuthorizeRequest } = await import('../../sign-in/oauth.ts');
      return createAuthorizeRequest({ ...signIn, redirectUrl });
    },
    finish: async answer => {
      const app = findReady(find);
      const link = await findOpenInvitation(app, answer.secret);
      if (!link) return { kind: 'closed' };
      app.ending.throwIfAborted();
      // Two browsers may have opened the link.
      if (finishing.has(link.secretHash) || refusals.isReached(link.secretHash)) return { kind: 'failed' };
      finishing.add(link.secretHash);
      try {
        const enrolling = enrol(app, link, { ...answer, redirectUrl }, () => {
          refusals.note(link.secretHash);
          if (refusals.isReached(link.secretHash)) app.log.warn({ account: link.userId }, TOO_MANY);
        });
        return await app.inHand.add(enrolling);
      } finally {
        finishing.delete(link.secretHash);
      }
    },
    tellNotAdmitted: async (secret, said) => {
      const app = findReady(find);
      const link = await findOpenInvitation(app, secret);
      if (!link || notAdmitted.isReached(link.secretHash)) return;
      notAdmitted.note(link.secretHash);
      const message = `the service did not let the person sign in (it says: ${said}), and nothing was stored`;
      app.log.warn({ account: link.userId }, `an invitation was refused: ${message}`);
      app.onFailure({ reason: 'invitation_refused', user: link.userId, message });
    },
    findWithdrawal: async secret => findWithdrawal(findReady(find), secret),
    withdraw: async secret => withdraw(findReady(find), secret),
    now,
    log,
  };
}

/** @throws TryLaterError also while an erasing waits */
function findReady(find: () => App): App {
  const app = find();
  if (app.erasing) throw new TryLaterError(app.erasing.reason);
  return app;
}

/**
 * Stores the account of who has signed in by an invitation, and what they agreed to. The invitation is used up by that.
 * @param onRefused the service does not take the code
 */
async function enrol(
  app: App,
  link: Link,
  { code, verifier, redirectUrl, scope, ...agreed }: Answer & { redirectUrl: string },
  onRefused: () => void,
): Promise<SignInOutcome> {
  const { log } = app;
  const name = link.userId;
  try {
    const tokens = await exchangeCode(app, { code, verifier, redirectUrl, scope });
    return await storeEnrolled(app, link, tokens, agreed);
  } catch (error) {
    if (error instanceof WrongPersonError) {
      const { person, other } = error;
      if (other === undefined) return refuse(app, link, { kind: 'another', message: tellAnother(name), serviceUserId: null });
      const isRead = await isReadNow(app, other);
      const outcome = await refuse(app, link, { kind: 'enrolled', message: tellEnrolled(other, isRead), serviceUserId: person });
      return isRead ? outcome : { kind: 'unread' };
    }
    if (error instanceof UnrecognisedError) {
      const { person } = error;
      return refuse(app, link, { kind: 'unrecognised', message: tellUnrecognised(name, person), serviceUserId: person });
    }
    if (error instanceof ClosedError) return { kind: 'closed' };
    // The service said nothing, or nothing that helps, of who signed in.
    const isUntold = error instanceof ServiceError || error instanceof TimeoutError;
    if (!isUntold && !(error instanceof RingneckError)) throw error;
    // An outage says nothing of the code.
    if (error instanceof SignInError && error.kind !== 'unavailable') onRefused();
    log.warn({ account: name, reason: messageOf(error) }, 'somebody invited could not be enrolled, and may try again');
    return { kind: 'failed' };
  }
}

/** Revoked, replaced or used while the person signed in. */
class ClosedError extends Error {}

/** Nobody can tell whether who signed in is the person of the account. */
class UnrecognisedError extends Error {
  readonly person: string | null;

  /** @param person the service's own id of who signed in, where it tells */
  constructor(person: string | null) {
    super();
    this.person = person;
  }
}

type Tokens = Parameters<typeof storeSignIn>[2];

async function storeEnrolled(
  app: App,
  link: Link,
  tokens: Tokens,
  agreed: Omit<Answer, 'code' | 'verifier' | 'scope'>,
): Promise<SignInOutcome> {
  const { now, settings, secrets, log, onFailure } = app;
  const name = link.userId;
  const secret = newSecret();
  const at = now() * 1000;
  let kept: SignIn | undefined;
  try {
    const report = await storeSignIn(app, name, tokens, async (signIn, person) => {
      if (!(await findOpenInvitation(app, agreed.secret))) throw new ClosedError();
      await ensureRecognised(app, name, person);
      const { textHash, language } = agreed;
      const scopes = signIn.areScopesTold === false ? null : signIn.scopes.join(' ');
      const consent: Consent = { userId: name, at, scopes, textHash, language, withdrawnAt: null };
      kept = signIn;
      return [consentEntry(consent), linkEntry(withdrawalLink(name, secret, at)), noInvitationEntry(name)];
    });
    const { state, reason, warning } = report;
    log.info({ account: name, state, ...(warning ? { warning } : {}) }, 'somebody invited has signed in');
    if (state === 'parked') onFailure({ reason: 'account_parked', user: name, message: reason ?? '' });
  } catch (error) {
    if (!kept || secrets.findSignIn(name)?.id !== kept.id) throw error;
    // The account is stored; what was to be asked about it then, each night asks.
    log.warn({ account: name, reason: messageOf(error) }, 'somebody invited has signed in, and the service was not asked further');
  }
  const withdrawUrl = withdrawalUrl(`${settings.enrolment?.publicUrl}`, secret);
  return { kind: 'connected', scopes: kept?.scopes ?? [], areScopesTold: kept?.areScopesTold !== false, withdrawUrl };
}

/** @throws UnrecognisedError where what is stored may be of somebody else */
async function ensureRecognised({ warehouse }: App, name: string, person: string | undefined): Promise<void> {
  const isKnown = (await findServiceUserId(warehouse, name)) !== null;
  if (person !== undefined && isKnown) return;
  if (isKnown || (await holdsDataOf(warehouse, name))) throw new UnrecognisedError(person ?? null);
}

interface Refusal {
  kind: NonNullable<Link['problem']>;
  message: string;
  serviceUserId: string | null;
}

/** Nothing was stored of who signed in; the operator is told, and the invitation stays. */
async function refuse(app: App, link: Link, { kind, message, serviceUserId }: Refusal): Promise<SignInOutcome> {
  const { warehouse, log, onFailure } = app;
  log.warn({ account: link.userId }, `an invitation was refused: ${message}`);
  onFailure({ reason: 'invitation_refused', user: link.userId, message });
  await changeAccounts(warehouse, async () => {
    const isThere = (await listLinks(warehouse, 'connect')).some(({ secretHash }) => secretHash === link.secretHash);
    if (isThere) await warehouse.record([linkEntry({ ...link, problem: kind, serviceUserId })]);
  });
  return { kind };
}
