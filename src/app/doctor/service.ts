import { randomBytes } from 'node:crypto';
import type { EnrolmentSettings, Settings, WebhookSettings } from '../../base/config.ts';
import { messageOf } from '../../base/errors.ts';
import { escapeHtml } from '../../base/html.ts';
import { wrongTokenOf } from '../../base/signature.ts';
import { findRefusal } from '../../client/refusal.ts';
import { isOneTime } from '../../client/service-clock.ts';
import { withoutQuery } from '../../sync/subscriptions/callback-url.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';
import { formatSpan } from './clock.ts';

const ANSWER_MS = 10_000;
const MAX_BYTES = 65_536;
const CLOCK_WARN_MS = 30_000;
/** So far off is a service with a time of its own, or a machine whose clock was never set. */
const OTHER_TIME_MS = 3_600_000;
const OTHER_TIME =
  'set the machine’s clock (NTP), or events are refused; of a sandbox that was started with another time this is as it should be';

const ELSEWHERE = 'is RINGNECK_SERVICE_URL right (no /v2 at its end), and does a proxy, a firewall or a sign-in page stand between?';

interface Reached {
  status: number;
  headers: Headers;
  /** At most so much of it. */
  text: string;
}

/** Asks an address once; redirects are not followed, and no more than the beginning is read. */
async function reach(url: string): Promise<Reached> {
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) });
  const { status, headers } = response;
  let bytes = Buffer.alloc(0);
  for await (const chunk of response.body ?? []) {
    bytes = Buffer.concat([bytes, chunk]);
    if (bytes.length > MAX_BYTES) break;
  }
  return { status, headers, text: bytes.toString() };
}

/** What stopped a `fetch`, in a word: its own message says only that it failed. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `no answer within ${ANSWER_MS / 1000} s`;
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return messageOf(cause ?? error);
}

const askService = (serviceUrl: string) => reach(`${serviceUrl}/v2/usercollection/personal_info`);

/** Why nobody answers at the service's address, in a word; undefined where somebody does, whatever the answer. */
export async function findSilence(serviceUrl: string): Promise<string | undefined> {
  try {
    await askService(serviceUrl);
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Whether anybody answers at the service's address, and whether our clock agrees with theirs. */
export async function checkService(
  { serviceUrl, webhooks, signatureWindow }: Pick<Settings, 'webhooks' | 'signatureWindow'> & { serviceUrl: string },
  now: () => number = Date.now,
): Promise<CheckResult[]> {
  const began = now();
  let reached: Reached;
  try {
    reached = await askService(serviceUrl);
  } catch (error) {
    const fix = 'is it running, is RINGNECK_SERVICE_URL right, does a firewall or proxy stand between?';
    return [fail('service', `${serviceUrl} gives no answer (${reasonOf(error)})`, fix)];
  }
  const results = [statusResult(serviceUrl, reached)];
  const remote = Date.parse(reached.headers.get('date') ?? '');
  if (Number.isNaN(remote)) return [...results, ok('clock', 'the service shows no clock to compare with')];
  // Theirs is cut to whole seconds, and was read at some moment in between.
  const off = Math.max(0, began - (remote + 1_000), remote - now());
  if (off > OTHER_TIME_MS) {
    const stands = `the service’s clock (${new Date(remote).toISOString().slice(0, 16)}Z) is ${formatSpan(off)} ${remote > began ? 'ahead of' : 'behind'} ours`;
    return [
      ...results,
      warn(
        'clock',
        `${stands}; ${isOneTime(off) ? 'the last days of both clocks are read' : 'its days are read by its own clock'}`,
        OTHER_TIME,
      ),
    ];
  }
  const said = `our clock is ${Math.round(off / 1000)} s away from the service’s`;
  const fix = 'set the machine’s clock (NTP)';
  if (webhooks && signatureWindow > 0 && off > signatureWindow * 1000) {
    return [...results, fail('clock', `${said}: events are refused beyond ${signatureWindow} s`, fix)];
  }
  if (off > CLOCK_WARN_MS) return [...results, warn('clock', said, fix)];
  return [...results, ok('clock', off < 1_000 ? 'our clock agrees with the service’s' : said)];
}

function isObjectWithId(text: string): boolean {
  try {
    return typeof JSON.parse(text)?.id === 'string';
  } catch {
    return false;
  }
}

/** Without a token it refuses, which is an answer where it has the service's own form: what stands before it may refuse too. */
function statusResult(serviceUrl: string, { status, headers, text: body }: Reached): CheckResult {
  const said = `${serviceUrl} answers ${status}`;
  if (status >= 500) return fail('service', said, 'the service, or a proxy before it, is in trouble: try again later');
  if (status >= 300 && status < 400)
    return fail('service', `${said}, a redirect, which is not followed`, 'set RINGNECK_SERVICE_URL to the final address');
  const isRemote = status < 300 ? isObjectWithId(body) : findRefusal({ status, headers: Object.fromEntries(headers), body });
  if (!isRemote) return fail('service', `${said}, but not in the form of the service`, ELSEWHERE);
  // A service may not offer what is asked for; an address with a path too many offers nothing.
  if (status === 404) return warn('service', `${said}: it does not have personal_info`, ELSEWHERE);
  return ok('service', `${serviceUrl} answers`);
}

const BEHIND = 'ringneck up must run, and the reverse proxy must pass this address on to RINGNECK_HOST:RINGNECK_PORT/webhook';

const BEHIND_PAGES =
  'ringneck up must run, with these settings, and the reverse proxy must pass /connect on to RINGNECK_HOST:RINGNECK_PORT';

/** Whether the pages of invitations are reached at their address, by a link that is none. From here: a phone may see it otherwise. */
export async function checkInvitations({ publicUrl, studyContact }: EnrolmentSettings): Promise<CheckResult[]> {
  let reached: Reached;
  try {
    reached = await reach(`${publicUrl}/connect/${randomBytes(32).toString('base64url')}`);
  } catch (error) {
    return [fail('invitations', `${publicUrl} gives no answer (${reasonOf(error)})`, BEHIND_PAGES)];
  }
  const { status, text } = reached;
  if (status >= 300 && status < 400) {
    return [fail('invitations', `${publicUrl} answers ${status}, a redirect`, 'set RINGNECK_PUBLIC_URL to the final address')];
  }
  if (status === 404 && text.includes(escapeHtml(studyContact))) {
    return [ok('invitations', `${publicUrl} shows their pages; the service must know ${publicUrl}/connect/callback as a redirect address`)];
  }
  return [fail('invitations', `${publicUrl} answers ${status}, and not with a page of this study`, BEHIND_PAGES)];
}

/** Verifies our own callback as the service does (6.2), and that it takes no other token. From here: the service may see it otherwise. */
export async function checkCallback({ callbackUrl, verificationToken }: WebhookSettings): Promise<CheckResult[]> {
  const shown = withoutQuery(callbackUrl);
  const challenge = randomBytes(16).toString('hex');
  const ask = (token: string) => {
    const url = new URL(callbackUrl);
    url.searchParams.append('verification_token', token);
    url.searchParams.append('challenge', challenge);
    return reach(url.href);
  };
  let reached: Reached;
  try {
    reached = await ask(verificationToken);
  } catch (error) {
    return [fail('callback', `${shown} gives no answer (${reasonOf(error)})`, BEHIND)];
  }
  const wrong = findWrong(reached, challenge);
  if (wrong) return [fail('callback', `${shown} ${wrong.message}`, wrong.fix)];
  const { status } = await ask(wrongTokenOf(verificationToken));
  if (status === 401) return [ok('callback', `${shown} returns the challenge, and refuses a wrong token`)];
  return [
    fail('callback', `${shown} answers ${status} to a wrong token, not 401`, `something else than ringneck answers there: ${BEHIND}`),
  ];
}

function findWrong({ status, text }: Reached, challenge: string): { message: string; fix: string } | undefined {
  if (status >= 300 && status < 400) {
    return {
      message: `answers ${status}, a redirect, which the service does not follow`,
      fix: 'set RINGNECK_CALLBACK_URL to the final address',
    };
  }
  if (status === 401) {
    const fix = 'restart ringneck up, so that it has the same RINGNECK_VERIFICATION_TOKEN as this command';
    return { message: 'refuses our verification token', fix };
  }
  if (status === 404) return { message: 'answers 404', fix: `the path is wrong, or webhooks were off when ringneck up started: ${BEHIND}` };
  if (status !== 200) return { message: `answers ${status}`, fix: BEHIND };
  try {
    if (JSON.parse(text)?.challenge === challenge) return undefined;
  } catch {
    // Not JSON: some page.
  }
  return { message: 'answers 200 without our challenge', fix: `something else than ringneck answers there: ${BEHIND}` };
}
