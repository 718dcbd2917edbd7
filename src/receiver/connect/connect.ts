import rateLimit from '@fastify/rate-limit';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { findSignInRefusal } from '../../base/sign-in-refusal.ts';
import { TimeoutError, withTimeout } from '../../base/timeout.ts';
import { connectedPage, GUARDED, invitationPage, type Page, sentencePage, withdrawalPage, withdrawnPage } from './pages.ts';
import { type PendingSignIn, PendingSignIns, SIGN_IN_MS } from './pending-sign-in.ts';
import { chooseLanguage, type Facts, type Language } from './texts.ts';

/** What came of somebody's sign-in by an invitation. */
export type SignInOutcome =
  | {
      kind: 'connected';
      scopes: readonly string[];
      /** False: the service has not said what was allowed, and `scopes` are those that were asked for. */
      areScopesTold: boolean;
      withdrawUrl: string;
    }
  /**
   * Nothing was stored: the link cannot be used, the person has another account (`unread`: which is not read now), is not the one of the
   * account or not recognised, or it may be tried again.
   */
  | { kind: 'closed' | 'enrolled' | 'unread' | 'another' | 'unrecognised' | 'unfinished' | 'notAdmitted' | 'failed' };

type Withdrawn = 'done' | 'left' | 'givenUp' | 'ended';

export interface ConnectOptions {
  /** Where the pages are reached from outside. */
  publicUrl: string;
  study: { name: string; contact: string };
  /** The service's page on which people sign in. */
  authorizeUrl: string;
  /** What they are asked for. */
  scopes: readonly string[];
  /** The study's own text, as it is now. Throws where it cannot be read. */
  readText(): { text: string; hash: string } | undefined;
  /** Whether an invitation can be used. */
  isOpen(secret: string): Promise<boolean>;
  /** Where a browser is sent to sign in, and what proves that the answer is to that. */
  begin(): Promise<{ url: string; state: string; verifier: string }>;
  /** Stores the account of who has signed in. */
  finish(
    answer: Pick<PendingSignIn, 'secret' | 'verifier' | 'textHash' | 'language'> & { code: string; scope: string | undefined },
  ): Promise<SignInOutcome>;
  /** Tells the study what the service says that does not let somebody in: not a refusal of the person's. */
  tellNotAdmitted(secret: string, said: string): Promise<void>;
  /**
   * Whether a link to withdraw was used (`left`: and the service is not known to have taken the access back; `givenUp`: nor is it asked any
   * more), or the study has ended it all; undefined where there is no such link.
   */
  findWithdrawal(secret: string): Promise<'open' | Withdrawn | undefined>;
  /** Ends what somebody agreed to, unless the study has; undefined where there is no such link. */
  withdraw(secret: string): Promise<Withdrawn | undefined>;
  /** Milliseconds since the epoch. */
  now(): number;
  log: Log;
  /** Requests from one address in a minute. */
  requestsPerMinute?: number;
  /** How long a browser waits for the service before it is told to look again. */
  answerMs?: number;
}

/** A room full of people who sign in together behind one address. */
const REQUESTS_PER_MINUTE = 300;
const UNREADABLE =
  'nobody who opens an invitation can agree: the text of the study cannot be shown. Put the file right; up need not be started again';
const MAX_BODY_BYTES = 4_096;
const ANSWER_MS = 20_000;
const MOST_ANSWERS = 1_000;
const WITHDRAW = '/connect/withdraw/:secret';
const SECRET = /^[A-Za-z0-9_-]{43}$/;
/** Of a code; the public service's have some dozens. */
const MOST_CODE = 2_048;

/** What people would agree to cannot be shown. */
class UnreadableText extends Error {}

type WithSecret = FastifyRequest<{ Params: { secret: string } }>;

/** /connect: the pages on which people whom a study has invited sign in, and withdraw. A GET of a link changes nothing: mail scanners open links. */
export class Connect {
  readonly #options: ConnectOptions;
  readonly #facts: Facts;
  readonly #pending: PendingSignIns;
  /** By state, so that a page that is loaded again shows the same and no code is used twice. */
  readonly #answers = new Map<string, { at: number; outcome: Promise<SignInOutcome> }>();

  /** Adds the routes to a receiver. */
  constructor(receiver: FastifyInstance, options: ConnectOptions) {
    const { study, authorizeUrl, publicUrl, now } = options;
    this.#options = options;
    this.#facts = { study: study.name, contact: study.contact, host: new URL(authorizeUrl).host };
    this.#pending = new PendingSignIns(publicUrl, now);
    void receiver.register(async scope => this.#serve(scope));
  }

  async #serve(scope: FastifyInstance): Promise<void> {
    const { requestsPerMinute = REQUESTS_PER_MINUTE } = this.#options;
    await scope.register(rateLimit, { max: requestsPerMinute, timeWindow: 60_000, cache: MOST_ADDRESSES });
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit: MAX_BODY_BYTES }, (_, body, done) => done(null, body));
    scope.setErrorHandler<FastifyError>((error, request, reply) => this.#answerError(error, request, reply));
    // A HEAD of a link is answered as its GET; one of the callback would use the code up, and finds no link of that name.
    scope.get('/connect/callback', { exposeHeadRoute: false }, (request, reply) => this.#finish(request, reply));
    scope.get(WITHDRAW, (request: WithSecret, reply) => this.#askWithdrawal(request, reply));
    scope.post(WITHDRAW, (request: WithSecret, reply) => this.#withdraw(request, reply));
    scope.get('/connect/:secret', (request: WithSecret, reply) => this.#invite(request, reply));
    scope.post('/connect/:secret', (request: WithSecret, reply) => this.#begin(request, reply));
  }

  async #invite(request: WithSecret, reply: FastifyReply): Promise<FastifyReply> {
    const { secret } = request.params;
    const language = languageOf(request);
    if (!SECRET.test(secret) || !(await this.#options.isOpen(secret))) return this.#say(reply, 'closed', language);
    return send(reply, this.#pageOf(secret, language, this.#readText()));
  }

  /** @throws UnreadableText */
  #readText(): ReturnType<ConnectOptions['readText']> {
    try {
      return this.#options.readText();
    } catch (cause) {
      throw new UnreadableText(messageOf(cause), { cause });
    }
  }

  #pageOf(secret: string, language: Language, study: { text: string } | undefined, hasChanged = false): ReturnType<typeof invitationPage> {
    const { scopes, authorizeUrl } = this.#options;
    return invitationPage(language, this.#facts, { path: this.#pathOf(secret), scopes, study, hasChanged, authorizeUrl });
  }

  /** Sends who agrees to the service. */
  async #begin(request: WithSecret, reply: FastifyReply): Promise<FastifyReply> {
    const { isOpen, begin } = this.#options;
    const { secret } = request.params;
    const language = languageOf(request);
    if (isForeign(request)) return this.#say(reply, 'foreign', language);
    if (!SECRET.test(secret) || !(await isOpen(secret))) return this.#say(reply, 'closed', language);
    const study = this.#readText();
    // What people agree to is what they have seen.
    if (formOf(request).get('seen') !== this.#pageOf(secret, language, study).seen)
      return send(reply, this.#pageOf(secret, language, study, true));
    const textHash = study?.hash ?? null;
    const { url, state, verifier } = await begin();
    const cookie = this.#pending.cookieOf({ secret, state, verifier, textHash, language });
    return reply
      .code(303)
      .headers({ ...GUARDED, 'Set-Cookie': cookie, Location: url })
      .send();
  }

  /** Takes the service's answer. */
  async #finish(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const parameters = new URLSearchParams(request.url.split('?').slice(1).join('?'));
    const pending = this.#pending.find(request.headers.cookie, parameters.get('state') ?? '');
    if (!pending) return this.#say(reply, 'elsewhere', languageOf(request));
    const { language, secret } = pending;
    const refusal = findSignInRefusal(parameters);
    if (refusal?.by === 'person') return this.#say(reply, 'refused', language, secret);
    const code = parameters.get('code') ?? '';
    if (refusal) {
      await this.#once(`${pending.state} error`, async () => {
        await this.#options.tellNotAdmitted(secret, refusal.said);
        return { kind: 'notAdmitted' };
      });
      return this.#say(reply, 'notAdmitted', language, secret);
    }
    if (!code || code.length > MOST_CODE) return this.#say(reply, 'unfinished', language, secret);
    try {
      const outcome = await withTimeout(
        this.#once(pending.state, () => this.#options.finish({ ...pending, code, scope: parameters.get('scope') ?? undefined })),
        this.#options.answerMs ?? ANSWER_MS,
      );
      if (outcome.kind === 'connected') return send(reply, connectedPage(language, this.#facts, outcome));
      return this.#say(reply, outcome.kind, language, outcome.kind === 'closed' ? undefined : secret);
    } catch (error) {
      if (error instanceof TimeoutError) return this.#say(reply, 'pending', language);
      throw error;
    }
  }

  #once(key: string, work: () => Promise<SignInOutcome>): Promise<SignInOutcome> {
    const { now } = this.#options;
    const known = this.#answers.get(key);
    if (known) return known.outcome;
    for (const [state, { at }] of this.#answers) {
      if (this.#answers.size < MOST_ANSWERS && Math.abs(now() - at) < SIGN_IN_MS) break;
      this.#answers.delete(state);
    }
    const outcome = work();
    outcome.catch(error => {
      // Before the code was used: the same page may ask again.
      if (error instanceof TryLaterError) this.#answers.delete(key);
    });
    this.#answers.set(key, { at: now(), outcome });
    return outcome;
  }

  async #askWithdrawal(request: WithSecret, reply: FastifyReply): Promise<FastifyReply> {
    const { secret } = request.params;
    const language = languageOf(request);
    const state = SECRET.test(secret) ? await this.#options.findWithdrawal(secret) : undefined;
    if (state === 'open') return send(reply, withdrawalPage(language, this.#facts, this.#pathOf(`withdraw/${secret}`)));
    return this.#tellWithdrawn(reply, language, secret, state);
  }

  async #withdraw(request: WithSecret, reply: FastifyReply): Promise<FastifyReply> {
    const { secret } = request.params;
    const language = languageOf(request);
    if (isForeign(request)) return this.#say(reply, 'foreign', language);
    const withdrawn = SECRET.test(secret) ? await this.#options.withdraw(secret) : undefined;
    return this.#tellWithdrawn(reply, language, secret, withdrawn);
  }

  #tellWithdrawn(reply: FastifyReply, language: Language, secret: string, state: Withdrawn | undefined): FastifyReply {
    if (state === undefined) return this.#say(reply, 'closed', language);
    if (state === 'ended') return this.#say(reply, 'ended', language);
    const path = state === 'left' ? this.#pathOf(`withdraw/${secret}`) : undefined;
    return send(reply, withdrawnPage(language, this.#facts, { isTakenBack: state === 'done', path }));
  }

  #say(reply: FastifyReply, what: Parameters<typeof sentencePage>[0], language: Language, secret?: string): FastifyReply {
    return send(reply, sentencePage(what, language, this.#facts, secret === undefined ? undefined : this.#pathOf(secret)));
  }

  /** As a browser sees it, also behind a proxy that takes a part of it away. */
  #pathOf(rest: string): string {
    return `${new URL(this.#options.publicUrl).pathname.replace(/\/$/, '')}/connect/${rest}`;
  }

  /** No word of the request reaches the log: its address is a secret. */
  #answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const language = languageOf(request);
    if (error.statusCode === 429) return this.#say(reply, 'busy', language);
    const page = sentencePage(request.routeOptions.url === WITHDRAW ? 'notWithdrawn' : 'failed', language, this.#facts);
    if (error instanceof TryLaterError) return send(reply.header('Retry-After', 5), page);
    if (error instanceof UnreadableText) {
      this.#options.log.error({ reason: error.message }, UNREADABLE);
      return this.#say(reply, 'textAway', language);
    }
    if (error.statusCode !== undefined && error.statusCode < 500) return send(reply, { ...page, status: error.statusCode });
    // Our own sentences name no link.
    const why =
      error instanceof RingneckError ? { reason: messageOf(error) } : { error: error instanceof Error ? error.name : typeof error };
    this.#options.log.error(why, 'a page of an invitation failed');
    return send(reply, { ...page, status: 500 });
  }
}

const MOST_ADDRESSES = 10_000;

function send(reply: FastifyReply, { status, html, headers }: Page): FastifyReply {
  return reply.code(status).headers(headers).type('text/html; charset=utf-8').send(html);
}

const languageOf = ({ headers }: FastifyRequest): Language => chooseLanguage(headers['accept-language']);

/** The pages send no referrer, and so no origin: browsers tell by this header where a form comes from. */
const isForeign = ({ headers }: FastifyRequest): boolean =>
  !['same-origin', 'none', undefined].includes(headers['sec-fetch-site']?.toString());

const formOf = ({ body }: FastifyRequest): URLSearchParams => new URLSearchParams(typeof body === 'string' ? body : '');
