import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import type { SignIn } from '../../base/secrets/sign-in.ts';
import { changeAccounts } from '../../ledger/accounts.ts';
import { type Consent, consentEntry, noConsentEntry } from '../../ledger/consents.ts';
import { hashOf, type Link, linkEntry, listLinks, noInvitationEntry, noLinkEntry } from '../../ledger/links.ts';
import { isTwin } from '../../ledger/unproven.ts';
import type { ConnectOptions, SignInOutcome } from '../../receiver/connect/connect.ts';
import { WrongPersonError } from '../add-account.ts';
import type { App } from '../app.ts';
import { storeSignIn } from '../login.ts';
import { openOAuth } from '../sign-ins.ts';
import { findOpenInvitation, newSecret, tellAnother, tellEnrolled } from './invitations.ts';
import { readStudyText } from './study-text.ts';
import { findWithdrawal, withdraw } from './withdrawal.ts';

type Answer = Parameters<ConnectOptions['finish']>[0];

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
      // Two browsers may have opened the link.
      if (finishing.has(link.secretHash)) return { kind: 'failed' };
      finishing.add(link.secretHash);
      try {
        return await enrol(app, link, answer, redirectUrl);
      } finally {
        finishing.delete(link.secretHash);
      }
    },
    findWithdrawal: async secret => findWithdrawal(findReady(find), secret),
    withdraw: async secret => withdraw(findReady(find), secret),
    now,
    log,
  };
}

/** @throws TryLaterError also while an erasing waits for Redis */
function findReady(find: () => App): App {
  const app = find();
  if (app.erasing) throw new TryLaterError(app.erasing.reason);
  return app;
}

/** Stores the account of who has signed in by an invitation, and what they agreed to. The invitation is used up by that. */
async function enrol(app: App, link: Link, { code, verifier, scope, ...agreed }: Answer, redirectUrl: string): Promise<SignInOutcome> {
  const { log } = app;
  const name = link.userId;
  try {
    const tokens = await (await openOAuth(app)).exchange({ code, verifier, redirectUrl, scope });
    return await storeEnrolled(app, link, tokens, agreed);
  } catch (error) {
    if (error instanceof WrongPersonError) return refusePerson(app, link, error);
    if (error instanceof ClosedError) return { kind: 'closed' };
    if (!(error instanceof RingneckError)) throw error;
    log.warn({ account: name, reason: messageOf(error) }, 'somebody invited could not be enrolled, and may try again');
    return { kind: 'failed' };
  }
}

/** Revoked, replaced or used while the person signed in. */
class ClosedError extends Error {}

type Tokens = Parameters<typeof storeSignIn>[2];

async function storeEnrolled(
  app: App,
  link: Link,
  tokens: Tokens,
  agreed: Omit<Answer, 'code' | 'verifier' | 'scope'>,
): Promise<SignInOutcome> {
  const { warehouse, now, settings, secrets, log, onFailure } = app;
  const name = link.userId;
  const secret = newSecret();
  const at = now() * 1000;
  const withdrawal: Link = {
    ...link,
    secretHash: hashOf(secret),
    kind: 'withdraw',
    createdAt: at,
    expiresAt: null,
    problem: null,
    serviceUserId: null,
  };
  let kept: { signIn: SignIn; consent: Consent } | undefined;
  try {
    const report = await storeSignIn(app, name, tokens, async signIn => {
      if (!(await findOpenInvitation(app, agreed.secret))) throw new ClosedError();
      const { textHash, language } = agreed;
      const consent: Consent = { userId: name, at, scopes: signIn.scopes.join(' '), textHash, language, withdrawnAt: null };
      kept = { signIn, consent };
      // Before the account: nobody is read who is not known to have agreed.
      await warehouse.record([consentEntry(consent), linkEntry(withdrawal)]);
    });
    await warehouse.record([noInvitationEntry(name)]);
    log.info({ account: name, state: report.state }, 'somebody invited has signed in');
    if (report.state === 'parked') onFailure({ reason: 'account_parked', user: name, message: report.reason ?? '' });
    if (isTwin(report.reason)) return { kind: 'enrolled' };
  } catch (error) {
    if (kept && secrets.findSignIn(name)?.id !== kept.signIn.id)
      await warehouse.record([noConsentEntry(kept.consent), noLinkEntry(withdrawal)]);
    throw error;
  }
  const withdrawUrl = `${settings.enrolment?.publicUrl}/connect/withdraw/${secret}`;
  return { kind: 'connected', scopes: kept?.signIn.scopes ?? [], withdrawUrl };
}

/** Nothing was stored of who signed in; the operator is told, and the invitation stays. */
async function refusePerson(app: App, link: Link, { person, other }: WrongPersonError): Promise<SignInOutcome> {
  const { warehouse, log, onFailure } = app;
  const name = link.userId;
  const kind = other === undefined ? 'another' : 'enrolled';
  const message = other === undefined ? tellAnother(name) : tellEnrolled(other);
  log.warn({ account: name, ...(other === undefined ? {} : { other }) }, `an invitation was refused: ${message}`);
  onFailure({ reason: 'invitation_refused', user: name, message });
  await changeAccounts(warehouse, async () => {
    const isThere = (await listLinks(warehouse, 'connect')).some(({ secretHash }) => secretHash === link.secretHash);
    if (isThere) await warehouse.record([linkEntry({ ...link, problem: kind, serviceUserId: other === undefined ? null : person })]);
  });
  return { kind };
}
