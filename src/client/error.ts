/**
 * What went wrong, sorted by what the caller does next. The first four are the service's own word: a 4xx in its own form (`findRefusal`).
 */
export type ServiceErrorKind =
  /** 401: the token is dead, or lacks the scope of this one collection (`probe` tells them apart). */
  | 'unauthorized'
  /** 403: the membership has lapsed, or a permission is missing. */
  | 'forbidden'
  /** 404. */
  | 'not_found'
  /** Any other 4xx: asking the same again gives the same. */
  | 'invalid_request'
  /** 429, for longer than a request may wait in place; of any form where it says for how long. */
  | 'rate_limited'
  /** 5xx, a 4xx in a foreign form, a connection that is refused or reset, no answer in time: it proves nothing. */
  | 'unavailable'
  /** An answer that is not what the interface promises: not JSON, cut off, HTML, another envelope. */
  | 'malformed'
  /** An answer of more bytes than are taken. */
  | 'too_large'
  /** Pages that repeat a token or never end. */
  | 'endless'
  /** 3xx: not followed, so that no token is sent to another address. */
  | 'redirected'
  /** Our own signal, or `close()`. */
  | 'stopped';

export interface ServiceErrorDetails {
  status?: number | undefined;
  retryAfterMs?: number | undefined;
  field?: string | undefined;
  detail?: string | undefined;
  exists?: boolean | undefined;
  expired?: boolean | undefined;
}

/** A request to the service that came to nothing. The text holds no token, no query and no word of the service's. */
export class ServiceError extends Error {
  readonly kind: ServiceErrorKind;
  /** The path, with `{document_id}` for an id; before it the method, where that is not GET. */
  readonly route: string;
  declare readonly status?: number;
  /** How long the service wants to be left alone. */
  declare readonly retryAfterMs?: number;
  /** The part of the request that a validation error speaks of: the last of its `loc`. */
  declare readonly field?: string;
  /** The service says that what was to be made is there already. */
  declare readonly exists?: true;
  /** The service says that the token has expired. */
  declare readonly expired?: true;
  /** Private, so that no log that writes all properties of an error has it. */
  readonly #detail: string | undefined;

  constructor(kind: ServiceErrorKind, route: string, message: string, details: ServiceErrorDetails = {}) {
    super(`${route.startsWith('/') ? 'GET ' : ''}${route}: ${message}`);
    this.name = 'ServiceError';
    this.kind = kind;
    this.route = route;
    this.#detail = details.detail;
    if (details.status !== undefined) this.status = details.status;
    if (details.field !== undefined) this.field = details.field;
    if (details.exists) this.exists = true;
    if (details.expired) this.expired = true;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
  }

  /** The service's own sentence: for whoever asked. It may tell of a person, and is neither stored nor logged. */
  get detail(): string | undefined {
    return this.#detail;
  }
}

const VERDICTS: ReadonlySet<ServiceErrorKind> = new Set(['unauthorized', 'forbidden', 'not_found', 'invalid_request']);

/** Whether an error is what the service itself says, and not what became of the request on its way. */
export const isVerdict = ({ kind }: ServiceError): boolean => VERDICTS.has(kind);
