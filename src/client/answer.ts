import { parseJson } from '../json.ts';
import { ServiceError, type ServiceErrorKind } from './error.ts';
import type { RequestLane, Tier } from './gate.ts';
import { findHeader, findRetryAfterMs, parseRateLimitMs } from './retry-after.ts';
import type { Answer } from './transport.ts';

/** One thing to ask for. */
export interface Question<T> {
  /** The path, with `{document_id}` for an id: what errors and the memory of routes name. */
  route: string;
  /** The path and query that is sent. */
  path: string;
  token: string;
  /** Bulk unless said otherwise. */
  lane?: RequestLane | undefined;
  /** Called as each attempt is sent, before its moment. */
  onSend?: (() => void) | undefined;
  /** Texts besides the token that no error may repeat. */
  secrets?: string[];
  /** Takes the parsed body, or undefined when it is not what this route promises. */
  accept(value: unknown): T | undefined;
}

export interface Failure {
  error: ServiceError;
  /** Whether the same may be asked again after a while. */
  again: boolean;
  /** The gate that a 429 closes. */
  tier?: Tier;
}

/** What an answer means: what was asked for, or a failure. */
export function readAnswer<T>(question: Question<T>, answer: Answer, now: number): { value: T } | Failure {
  if (answer.status >= 200 && answer.status < 300) return readBody(question, answer);
  return readStatus(question, answer, now);
}

function readBody<T>(question: Question<T>, { status, body }: Answer): { value: T } | Failure {
  const malformed = (message: string): Failure => ({
    error: new ServiceError('malformed', question.route, message, { status }),
    again: true,
  });
  let parsed: unknown;
  try {
    parsed = parseJson(body);
  } catch {
    // The message of the SyntaxError quotes the body, and so the health of somebody.
    if (/^\s*</.test(body)) return malformed(`answered ${status} with a page of HTML instead of JSON`);
    return malformed(`answered ${status} with ${body.length} characters that are not JSON`);
  }
  const value = question.accept(parsed);
  return value === undefined ? malformed(`answered ${status} with JSON of another shape than the interface promises`) : { value };
}

function readStatus(question: Question<unknown>, answer: Answer, now: number): Failure {
  const { status, headers } = answer;
  const kind = kindOf(status);
  if (kind === 'redirected') {
    const message = `answered ${status}, a redirect, which is not followed: RINGNECK_SERVICE_URL should be the final address`;
    return { error: new ServiceError(kind, question.route, message, { status }), again: false };
  }
  const detail = status < 500 ? findDetail(question, answer.body) : undefined;
  const message = `answered ${status}`;
  if (kind === 'rate_limited') {
    const error = new ServiceError(kind, question.route, message, { status, detail, retryAfterMs: parseRateLimitMs(headers, now) });
    return { error, again: true, tier: /^app/i.test(findHeader(headers, 'x-ratelimit-tier') ?? '') ? 'application' : 'token' };
  }
  const retryAfterMs = kind === 'unavailable' ? findRetryAfterMs(headers, now) : undefined;
  return {
    // A proxy's 404 is a page: only the service says in JSON why.
    error: new ServiceError(kind, question.route, message, {
      status,
      retryAfterMs,
      ofService: detail !== undefined,
      field: findField(answer.body),
      detail,
    }),
    again: kind === 'unavailable' && status !== 501,
  };
}

function kindOf(status: number): ServiceErrorKind {
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'not_found';
    // Request Timeout: the service gave up on this connection, not on the request.
    case 408:
      return 'unavailable';
    case 429:
      return 'rate_limited';
  }
  if (status < 400) return 'redirected';
  return status < 500 ? 'invalid_request' : 'unavailable';
}

/** What the first entry of a validation error speaks of. */
function findField(body: string): string | undefined {
  let field: unknown;
  try {
    field = (JSON.parse(body) as { detail?: { loc?: unknown[] }[] } | null)?.detail?.[0]?.loc?.at(-1);
  } catch {
    return undefined;
  }
  return typeof field === 'string' ? field.slice(0, 64) : undefined;
}

/** The service's own sentence, in one short line: `detail` as text, or the first entry of a validation error. */
function findDetail(question: Question<unknown>, body: string): string | undefined {
  let detail: unknown;
  try {
    detail = (JSON.parse(body) as { detail?: unknown } | null)?.detail;
  } catch {
    return undefined;
  }
  if (Array.isArray(detail)) {
    const { loc, msg } = (detail[0] ?? {}) as { loc?: unknown; msg?: unknown };
    if (typeof msg !== 'string') return undefined;
    detail = Array.isArray(loc) ? `${loc.join('.')}: ${msg}` : msg;
  }
  if (typeof detail !== 'string') return undefined;
  let text = detail;
  for (const secret of [question.token, ...(question.secrets ?? [])]) {
    for (const form of [secret, encodeURIComponent(secret)]) if (form) text = text.replaceAll(form, '…');
  }
  return text
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 200);
}
