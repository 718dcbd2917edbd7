/** What went wrong, sorted by what the caller does next. */
export type ServiceErrorKind =
  /** 401: the token is dead, or lacks the scope of this one collection (`probe` tells them apart). */
  | 'unauthorized'
  /** 403: the membership has lapsed, or a permission is missing. */
  | 'forbidden'
  /** 404. */
  | 'not_found'
  /** 429, for longer than a request may wait in place. */
  | 'rate_limited'
  /** Any other 4xx: asking the same again gives the same. */
  | 'invalid_request'
  /** 5xx, a connection that is refused or reset, no answer in time. */
  | 'unavailable'
  /** An answer that is not what the interface promises: not JSON, cut off, HTML, another envelope, too large. */
  | 'malformed'
  /** Pages that repeat a token or never end. */
  | 'endless'
  /** 3xx: not followed, so that no token is sent to another address. */
  | 'redirected'
  /** Our own signal, or `close()`. */
  | 'stopped';

export interface ServiceErrorDetails {
  status?: number | undefined;
  retryAfterMs?: number | undefined;
  ofService?: boolean | undefined;
  field?: string | undefined;
  detail?: string | undefined;
}

/** A request to the service that came to nothing. The text holds no token, no query and no word of the service's. */
export class ServiceError extends Error {
  readonly kind: ServiceErrorKind;
  /** The path, with `{document_id}` for an id; before it the method, where that is not GET. */
  readonly route: string;
  declare readonly status?: number;
  /** How long the service wants to be left alone. */
  declare readonly retryAfterMs?: number;
  /** Whether the answer was one of the service (`{detail}`), not that of something on the way. */
  readonly ofService: boolean;
  /** The part of the request that a validation error speaks of: the last of its `loc`. */
  declare readonly field?: string;
  /** Private, so that no log that writes all properties of an error has it. */
  readonly #detail: string | undefined;

  constructor(kind: ServiceErrorKind, route: string, message: string, details: ServiceErrorDetails = {}) {
    super(`${route.startsWith('/') ? 'GET ' : ''}${route}: ${message}`);
    this.name = 'ServiceError';
    this.kind = kind;
    this.route = route;
    this.ofService = details.ofService ?? false;
    this.#detail = details.detail;
    if (details.status !== undefined) this.status = details.status;
    if (details.field !== undefined) this.field = details.field;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
  }

  /** The service's own sentence: for whoever asked. It may tell of a person, and is neither stored nor logged. */
  get detail(): string | undefined {
    return this.#detail;
  }
}
