import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { messageOf, TryLaterError } from '../base/errors.ts';
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
  accept(event: WebhookEvent): Promise<void>;
  /** Whether this event's subscription is to end by its answer (6.1). */
  isGone?(event: WebhookEvent): boolean;
  /** Told of each event that was answered so. */
  noteGone?(event: WebhookEvent): void;
  /** Milliseconds since the epoch. */
  now(): number;
  log: Log;
}

export interface Webhook {
  refuseMethod(reply: FastifyReply): void;
  /** Refused so far, by reason. */
  refusals(): Readonly<Record<string, number>>;
  accepted(): number;
  /** Exact repetitions, answered like the first. */
  repeated(): number;
  /** Keys beyond those of 2.17, in accepted events. */
  unknownKeys(): number;
  close(): void;
}

/** Within 2 s the sender has an answer, whatever becomes of its event. */
const ANSWER_MS = 1_700;
const RETRY_AFTER_SECONDS = 5;
const MAX_BODY_BYTES = 65_536;
const MAX_CHALLENGE = 512;

/** Adds /webhook: verification by GET (6.2), events by POST (6.1). An event is answered 2xx after it was accepted, and only then. */
export function serveWebhook(receiver: FastifyInstance, options: WebhookOptions): Webhook {
  const { secrets, windowMs, now, log } = options;
  const proof = { headers: signatureHeaders(options.headerPrefix), secrets, windowMs };
  const refusals = new Refusals(log, now);
  const known = new ReplayCache({ windowMs, now });
  const underWay = new Map<string, Promise<void>>();
  let accepted = 0;
  let repeated = 0;
  let unknownKeys = 0;

  const refuse = (reply: FastifyReply, reason: Reason, because?: string) => {
    refusals.add(reason, because);
    return answerRefusal(reply, reason);
  };

  const answerRefusal = (reply: FastifyReply, reason: Reason) => {
    if (reason === 'unavailable') reply.header('Retry-After', RETRY_AFTER_SECONDS);
    if (reason === 'wrong_method') reply.header('Allow', 'GET, POST');
    return reply.code(STATUS[reason]).headers(GUARDED).send({ detail: reason });
  };

  const acceptNew = async ({ event, signature, unknownKeys: count }: ReadEvent) => {
    await options.accept(event);
    known.add(signature);
    accepted += 1;
    unknownKeys += count;
  };

  /** Accepts an event once, however often it comes and at whatever moment. */
  const acceptOnce = (read: ReadEvent): Promise<void> | undefined => {
    const first = underWay.get(read.signature);
    if (first || known.has(read.signature)) {
      repeated += 1;
      return first;
    }
    const accepting = acceptNew(read).finally(() => underWay.delete(read.signature));
    underWay.set(read.signature, accepting);
    return accepting;
  };

  void receiver.register(async scope => {
    scope.removeAllContentTypeParsers();
    // The signature is over the bytes as they came.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body));
    // An event is known by its signature, whatever it says of its content: fastify would refuse a type that it cannot read.
    scope.addHook('onRequest', (request, _, done) => {
      delete request.raw.headers['content-type'];
      done();
    });
    scope.setErrorHandler((error, _, reply) => {
      const { code, statusCode = 500 } = error as { code?: string; statusCode?: number };
      if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refuse(reply, 'too_large');
      if (statusCode < 500) return refuse(reply, 'bad_request');
      log.error({ error: error instanceof Error ? error.name : typeof error }, 'a request for the webhook failed');
      return reply.code(500).headers(GUARDED).send({ detail: 'failed' });
    });

    scope.get<{ Querystring: Record<string, unknown> }>('/webhook', { exposeHeadRoute: false }, async (request, reply) => {
      const { verification_token: token, challenge } = request.query;
      // Our own try of a wrong one is no stranger's.
      if (typeof token === 'string' && isSame(token, wrongTokenOf(options.verificationToken))) return answerRefusal(reply, 'bad_token');
      if (typeof token !== 'string' || !isSame(token, options.verificationToken)) return refuse(reply, 'bad_token');
      if (typeof challenge !== 'string' || challenge === '' || challenge.length > MAX_CHALLENGE) return refuse(reply, 'bad_challenge');
      log.debug('the service has verified our address');
      return reply.headers(GUARDED).send({ challenge });
    });

    scope.post<{ Body: Buffer | undefined }>('/webhook', { bodyLimit: MAX_BODY_BYTES }, async (request, reply) => {
      const read = readEvent(request.raw.rawHeaders, request.body ?? NOTHING, proof, now());
      if ('refused' in read) return refuse(reply, read.refused);
      if (options.isGone?.(read.event)) {
        options.noteGone?.(read.event);
        return refuse(reply, 'gone');
      }
      try {
        const accepting = acceptOnce(read);
        if (accepting) await withTimeout(accepting, ANSWER_MS);
      } catch (error) {
        return refuse(reply, 'unavailable', causeOf(error));
      }
      return reply.code(204).send();
    });
  });

  return {
    refuseMethod: reply => void refuse(reply, 'wrong_method'),
    refusals: () => refusals.counts(),
    accepted: () => accepted,
    repeated: () => repeated,
    unknownKeys: () => unknownKeys,
    close: () => refusals.tellRest(),
  };
}

const NOTHING = Buffer.alloc(0);
const GUARDED = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };

/** In constant time, whatever the lengths. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/** For the log. The message of an error that is not ours may quote the event. */
function causeOf(error: unknown): string {
  if (error instanceof TryLaterError || error instanceof TimeoutError) return messageOf(error);
  return error instanceof Error ? error.name : typeof error;
}
