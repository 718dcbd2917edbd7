import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { messageOf, TryLaterError } from '../base/errors.ts';
import { isSameText } from '../base/is-same-text.ts';
import type { Log } from '../base/log.ts';
import { signatureHeaders, wrongTokenOf } from '../base/signature.ts';
import { TimeoutError, withTimeout } from '../base/timeout.ts';
import { type ReadEvent, readEvent } from './read-event.ts';
import { type Reason, Refusals, STATUS } from './refusals.ts';
import { ReplayCache } from './replay-cache.ts';

export interface WebhookOptions {
  /** The word of ours that a verification must bring (6.2). */
  verificationToken: string;
  /** That of before too, while it is being replaced. */
  secrets: readonly string[];
  /** What the names of the two headers begin with. */
  headerPrefix: string;
  /** How far an event's timestamp may be from our clock, both ways; 0 = not checked. */
  windowMs: number;
  /** Resolves when the event is kept for good. Any rejection makes the sender try again. */
  accept(event: WebhookEvent, signature: string): Promise<void>;
  /** Whether this event's subscription is to end by its answer (6.1). */
  isGone?(event: WebhookEvent): boolean;
  /** Told of each event that was answered so. */
  noteGone?(event: WebhookEvent): void;
  /** Milliseconds since the epoch. */
  now(): number;
  log: Log;
}

/** Within 2 s the sender has an answer, whatever becomes of its event. */
const ANSWER_MS = 1_700;
const RETRY_AFTER_SECONDS = 5;
const MAX_BODY_BYTES = 65_536;
const MAX_CHALLENGE = 512;

/** /webhook: verification by GET (6.2), events by POST (6.1). An event is answered 2xx after it was accepted, and only then. */
export class Webhook {
  readonly #options: WebhookOptions;
  readonly #proof: { headers: ReturnType<typeof signatureHeaders>; secrets: readonly string[]; windowMs: number };
  readonly #refusals: Refusals;
  readonly #known: ReplayCache;
  readonly #underWay = new Map<string, Promise<void>>();
  #accepted = 0;
  #repeated = 0;
  #unknownKeys = 0;

  /** Adds the route to a receiver. */
  constructor(receiver: FastifyInstance, options: WebhookOptions) {
    const { headerPrefix, secrets, windowMs, now, log } = options;
    this.#options = options;
    this.#proof = { headers: signatureHeaders(headerPrefix), secrets, windowMs };
    this.#refusals = new Refusals(log, now);
    this.#known = new ReplayCache({ windowMs, now });
    void receiver.register(async scope => this.#serve(scope));
  }

  refuseMethod(reply: FastifyReply): void {
    this.#refuse(reply, 'wrong_method');
  }

  /** Refused so far, by reason. */
  refusals(): Readonly<Record<string, number>> {
    return this.#refusals.counts();
  }

  accepted(): number {
    return this.#accepted;
  }

  /** Exact repetitions, answered like the first. */
  repeated(): number {
    return this.#repeated;
  }

  /** Keys beyond those of 2.17, in accepted events. */
  unknownKeys(): number {
    return this.#unknownKeys;
  }

  close(): void {
    this.#refusals.tellRest();
  }

  #serve(scope: FastifyInstance): void {
    scope.removeAllContentTypeParsers();
    // The signature is over the bytes as they came.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body));
    // An event is known by its signature, whatever it says of its content: fastify would refuse a type that it cannot read.
    scope.addHook('onRequest', (request, _, done) => {
      delete request.raw.headers['content-type'];
      done();
    });
    scope.setErrorHandler<FastifyError>((error, _, reply) => this.#answerError(error, reply));
    scope.get<{ Querystring: Record<string, unknown> }>('/webhook', { exposeHeadRoute: false }, async ({ query }, reply) =>
      this.#verify(query, reply),
    );
    scope.post<{ Body: Buffer | undefined }>('/webhook', { bodyLimit: MAX_BODY_BYTES }, ({ raw, body }, reply) =>
      this.#receive(raw.rawHeaders, body ?? NOTHING, reply),
    );
  }

  #verify({ verification_token: token, challenge }: Record<string, unknown>, reply: FastifyReply): FastifyReply {
    const { verificationToken, log } = this.#options;
    // Our own try of a wrong one is no stranger's.
    if (typeof token === 'string' && isSameText(token, wrongTokenOf(verificationToken))) return answerRefusal(reply, 'bad_token');
    if (typeof token !== 'string' || !isSameText(token, verificationToken)) return this.#refuse(reply, 'bad_token');
    if (typeof challenge !== 'string' || challenge === '' || challenge.length > MAX_CHALLENGE) return this.#refuse(reply, 'bad_challenge');
    log.debug('the service has verified our address');
    return reply.headers(GUARDED).send({ challenge });
  }

  async #receive(rawHeaders: readonly string[], body: Buffer, reply: FastifyReply): Promise<FastifyReply> {
    const { isGone, noteGone, now } = this.#options;
    const read = readEvent(rawHeaders, body, this.#proof, now());
    if ('refused' in read) return this.#refuse(reply, read.refused);
    if (isGone?.(read.event)) {
      noteGone?.(read.event);
      return this.#refuse(reply, 'gone');
    }
    try {
      const accepting = this.#acceptOnce(read);
      if (accepting) await withTimeout(accepting, ANSWER_MS);
    } catch (error) {
      return this.#refuse(reply, 'unavailable', causeOf(error));
    }
    return reply.code(204).send();
  }

  /** Accepts an event once, however often it comes and at whatever moment. */
  #acceptOnce(read: ReadEvent): Promise<void> | undefined {
    const { signature } = read;
    const first = this.#underWay.get(signature);
    if (first || this.#known.has(signature)) {
      this.#repeated += 1;
      return first;
    }
    const accepting = this.#acceptNew(read).finally(() => this.#underWay.delete(signature));
    this.#underWay.set(signature, accepting);
    return accepting;
  }

  async #acceptNew({ event, signature, unknownKeys }: ReadEvent): Promise<void> {
    await this.#options.accept(event, signature);
    this.#known.add(signature);
    this.#accepted += 1;
    this.#unknownKeys += unknownKeys;
  }

  #refuse(reply: FastifyReply, reason: Reason, because?: string): FastifyReply {
    this.#refusals.add(reason, because);
    return answerRefusal(reply, reason);
  }

  #answerError(error: FastifyError, reply: FastifyReply): FastifyReply {
    const { code, statusCode = 500 } = error;
    if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return this.#refuse(reply, 'too_large');
    if (statusCode < 500) return this.#refuse(reply, 'bad_request');
    this.#options.log.error({ error: error instanceof Error ? error.name : typeof error }, 'a request for the webhook failed');
    return reply.code(500).headers(GUARDED).send({ detail: 'failed' });
  }
}

function answerRefusal(reply: FastifyReply, reason: Reason): FastifyReply {
  if (reason === 'unavailable') reply.header('Retry-After', RETRY_AFTER_SECONDS);
  if (reason === 'wrong_method') reply.header('Allow', 'GET, POST');
  return reply.code(STATUS[reason]).headers(GUARDED).send({ detail: reason });
}

const NOTHING = Buffer.alloc(0);
const GUARDED = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };

/** For the log. The message of an error that is not ours may quote the event. */
function causeOf(error: unknown): string {
  if (error instanceof TryLaterError || error instanceof TimeoutError) return messageOf(error);
  return error instanceof Error ? error.name : typeof error;
}
