import { parseJson } from '../base/json.ts';
import { ServiceError, type ServiceErrorKind } from './error.ts';
import type { RequestLane, Tier } from './rate-limiter.ts';
import { findRefusal, namesExpiry, type Refusal } from './refusal.ts';
import { findAgeS, findHeader, findRetryAfterMs, parseRateLimitMs } from './retry-after.ts';
import type { ServiceResponse } from './transport.ts';

/**
 * Does a wait for a limit or after a fault, while others have the place of whoever asks; resolves when that has its place again.
 * Undefined, and nothing is waited for, where too many wait already: the request then gives way.
 */
export type ReleaseWhile = (wait: () => Promise<void>) => Promise<void> | undefined;

/** One thing to ask for. */
export interface ServiceRequest<T> {
  /** The path, with `{document_id}` for an id: what errors and the memory of routes name. */
  route: string;
  /** The path and query that is sent. */
  path: string;
  token: string;
  /** Bulk unless said otherwise. */
  lane?: RequestLane | undefined;
  /** Where whoever asks has a place that others need. */
  releaseWhile?: ReleaseWhile | undefined;
  /** Called as each attempt is sent, before its moment. */
  onSend?: (() => void) | undefined;
  /** Texts besides the token that no error may repeat. */
  secrets?: string[];
  /** Takes the parsed body and the bytes that it was, or undefined when it is not what this route promises. */
  accept(value: unknown, bytes: Buffer): T | undefined;
  /** Takes the bytes of a 200 that are known from before and need not be parsed; undefined where they are others. */
  recognize?(bytes: Buffer): T | undefined;
  /** Takes every status of success; without it 200 alone: 202, 203 and 206 are no whole answer of the service to a read. */
  takesAnySuccess?: boolean;
  /** Whether a good answer is none that shows that the service has the route. */
  isDoubtful?(value: T): boolean;
}

export interface FailedResponse {
  error: ServiceError;
  /** Whether the same may be asked again after a while. */
  again: boolean;
  /** The limit that a 429 closes. */
  tier?: Tier;
}

/** What is this old already when it comes says nothing of now: it would count as newer than what was stored since. */
const OLDEST_S = 60;

/**
 * Each costs memory before anything is known of it: a few bytes for who sends it, some hundred here. A month of heart rate has 40,000, and a
 * window that is answered with too much is asked for in parts.
 */
const MOST_OBJECTS = 250_000;

/** An answer of so few bytes may hold what it likes. */
const SMALL_BYTES = 1_048_576;

function holdsTooMany(bytes: Buffer): boolean {
  if (bytes.length <= SMALL_BYTES) return false;
  let count = 0;
  for (const byte of bytes) if (byte === 0x7b || byte === 0x5b) count++;
  return count > MOST_OBJECTS;
}

/** What an answer means: what was asked for, or a failure. */
export function readResponse<T>(request: ServiceRequest<T>, response: ServiceResponse, now: number): { value: T } | FailedResponse {
  const ageS = findAgeS(response.headers);
  if (ageS > OLDEST_S) {
    const message = `answered ${response.status} from a cache on the way, ${ageS} s old`;
    return { error: new ServiceError('unavailable', request.route, message, { status: response.status }), again: true };
  }
  if (response.status >= 200 && response.status < 300) return readBody(request, response);
  return readStatus(request, response, now);
}

function readBody<T>(request: ServiceRequest<T>, response: ServiceResponse): { value: T } | FailedResponse {
  const { status, bytes } = response;
  const known = status === 200 ? request.recognize?.(bytes) : undefined;
  if (known !== undefined) return { value: known };
  const malformed = (message: string): FailedResponse => ({
    error: new ServiceError('malformed', request.route, message, { status }),
    again: true,
  });
  if (status !== 200 && !request.takesAnySuccess) return malformed(`answered ${status}, which is no answer to a read`);
  if (holdsTooMany(bytes)) {
    const message = `answered with more than ${MOST_OBJECTS.toLocaleString('en')} objects and lists at once`;
    return { error: new ServiceError('too_large', request.route, message, { status }), again: false };
  }
  const { body } = response;
  let parsed: unknown;
  try {
    parsed = parseJson(body);
  } catch {
    // The message of the SyntaxError quotes the body, and so the health of somebody.
    if (/^\s*</.test(body)) return malformed(`answered ${status} with a page of HTML instead of JSON`);
    return malformed(`answered ${status} with ${body.length} characters that are not JSON`);
  }
  const value = request.accept(parsed, bytes);
  return value === undefined ? malformed(`answered ${status} with JSON of another shape than the interface promises`) : { value };
}

/** Only the service's own refusal is a verdict. What else comes of a status tells of the way to it, and is asked again. */
function readStatus(request: ServiceRequest<unknown>, response: ServiceResponse, now: number): FailedResponse {
  const { status, headers } = response;
  if (status < 400) {
    const message = `answered ${status}, a redirect, which is not followed: RINGNECK_SERVICE_URL should be the final address`;
    return { error: new ServiceError('redirected', request.route, message, { status }), again: false };
  }
  const refusal = status < 500 ? findRefusal(response) : undefined;
  const detail = refusal && sentenceOf(request, refusal);
  const message = `answered ${status}`;
  const asksToWait = findHeader(headers, 'retry-after') !== undefined;
  if (status === 429 && (refusal || asksToWait)) {
    const error = new ServiceError('rate_limited', request.route, message, {
      status,
      detail,
      retryAfterMs: parseRateLimitMs(headers, now),
    });
    return { error, again: true, tier: /^app/i.test(findHeader(headers, 'x-ratelimit-tier') ?? '') ? 'application' : 'token' };
  }
  // Request Timeout: the service gave up on this connection, not on the request.
  if (refusal && status !== 408) {
    const { field, exists } = refusal;
    const details = { status, detail, field, exists, expired: namesExpiry(response, refusal) };
    return { error: new ServiceError(kindOf(status), request.route, message, details), again: false };
  }
  const foreign = status < 500 && status !== 408 ? `, ${FOREIGN}` : '';
  const retryAfterMs = status === 503 ? findRetryAfterMs(headers, now) : undefined;
  return { error: new ServiceError('unavailable', request.route, message + foreign, { status, retryAfterMs }), again: status !== 501 };
}

const FOREIGN = 'but not in the form of the service (a proxy or firewall on the way, or a wrong RINGNECK_SERVICE_URL)';

function kindOf(status: number): ServiceErrorKind {
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'not_found';
    default:
      return 'invalid_request';
  }
}

/** The service's own sentence, in one short line. */
function sentenceOf(request: ServiceRequest<unknown>, { sentence }: Refusal): string | undefined {
  let text = sentence;
  if (text === undefined) return undefined;
  for (const secret of [request.token, ...(request.secrets ?? [])]) {
    for (const form of [secret, encodeURIComponent(secret)]) if (form) text = text.replaceAll(form, '…');
  }
  return text
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 200);
}
