import type { Aside } from './answer.ts';
import { ServiceError } from './error.ts';
import type { RequestLane } from './gate.ts';
import type { Ask, Good, RequestClock, RequestMoments } from './request.ts';
import type { RouteMemory } from './routes.ts';

/** One answer of a collection. */
export interface Page extends RequestMoments {
  /** The path that was asked. */
  route: string;
  documents: unknown[];
  /** Null on the last page. */
  nextToken: string | null;
}

/** A collection to be read from its first page to its last. */
export interface Reading {
  route: string;
  parameters: Record<string, string>;
  token: string;
  lane?: RequestLane | undefined;
  aside?: Aside | undefined;
  /** An empty page does not show that the service has the route. */
  emptyIsDoubtful?: boolean;
}

export interface PageLimits {
  maxPages: number;
  /** How many pages without a document may follow each other. */
  maxEmptyPages: number;
}

export type ReadPages = (reading: Reading, signal: AbortSignal) => AsyncGenerator<Page, void, undefined>;

interface Envelope {
  documents: unknown[];
  nextToken: string | null;
}

/** Follows pages. A page's moment ends when the consumer asks for the next page or leaves. */
export function createReadPages(ask: Ask, clock: RequestClock, routes: Pick<RouteMemory, 'hasAnswered'>, limits: PageLimits): ReadPages {
  // The interface does not show whether a token goes alone or with the parameters it came from. What the service took last is tried first.
  let tokenAlone = false;

  const askWith = (reading: Reading, parameters: Record<string, string>, nextToken: string | null, signal: AbortSignal) =>
    ask<Envelope>(
      {
        route: reading.route,
        path: withQuery(reading.route, nextToken === null ? parameters : { ...parameters, next_token: nextToken }),
        token: reading.token,
        lane: reading.lane,
        aside: reading.aside,
        secrets: nextToken === null ? [] : [nextToken],
        accept: acceptEnvelope,
        ...(reading.emptyIsDoubtful && { isDoubtful: ({ documents }: Envelope) => !documents.length }),
      },
      signal,
    );

  async function askPage(reading: Reading, nextToken: string | null, signal: AbortSignal): Promise<Good<Envelope>> {
    const { parameters } = reading;
    if (nextToken === null || Object.keys(parameters).length === 0) return askWith(reading, parameters, nextToken, signal);
    const alone = tokenAlone;
    try {
      return await askWith(reading, alone ? {} : parameters, nextToken, signal);
    } catch (refusal) {
      if (!isInvalid(refusal)) throw refusal;
      try {
        const answer = await askWith(reading, alone ? parameters : {}, nextToken, signal);
        tokenAlone = !alone;
        return answer;
      } catch (error) {
        throw isInvalid(error) ? refusal : error;
      }
    }
  }

  return async function* (reading, signal) {
    const seen = new Set<string>();
    let nextToken: string | null = null;
    let emptyPages = 0;
    for (let pages = 1; ; pages++) {
      const { value, ...moments }: Good<Envelope> = await askPage(reading, nextToken, signal).catch(error => {
        throw asUnclear(error, nextToken !== null, routes);
      });
      nextToken = value.nextToken;
      emptyPages = value.documents.length > 0 ? 0 : emptyPages + 1;
      try {
        yield { route: reading.route, documents: value.documents, ...moments, nextToken };
      } finally {
        clock.end(moments.requestedAt);
      }
      if (nextToken === null) return;
      const endless = (message: string) => new ServiceError('endless', reading.route, message);
      if (seen.has(nextToken)) throw endless(`page ${pages} repeats a next_token, so its pages would never end`);
      if (pages >= limits.maxPages) throw endless(`still not at an end after ${pages} pages`);
      if (emptyPages >= limits.maxEmptyPages) throw endless(`${emptyPages} pages without a document followed each other`);
      seen.add(nextToken);
    }
  };
}

/** A path with its query; `+` becomes `%2B`, as 4.3 demands. */
export function withQuery(path: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(parameters).toString();
  return query ? `${path}?${query}` : path;
}

/** The envelope of 2.16. A missing, null or empty `next_token` means the last page. */
function acceptEnvelope(value: unknown): Envelope | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { data, next_token: nextToken } = value as { data?: unknown; next_token?: unknown };
  if (!Array.isArray(data)) return undefined;
  if (nextToken === undefined || nextToken === null || nextToken === '') return { documents: data, nextToken: null };
  return typeof nextToken === 'string' ? { documents: data, nextToken } : undefined;
}

function isInvalid(error: unknown): boolean {
  return error instanceof ServiceError && error.kind === 'invalid_request' && (error.status === 400 || error.status === 422);
}

/** 4.2 lists no 404 for a collection: it may say that the service has none, but not once it has answered. */
function asUnclear(error: unknown, isLater: boolean, routes: Pick<RouteMemory, 'hasAnswered'>): unknown {
  if (!(error instanceof ServiceError) || error.kind !== 'not_found') return error;
  if (!isLater && !routes.hasAnswered(`GET ${error.route}`)) return error;
  const where = isLater ? 'after its first page' : 'where it has answered before';
  return new ServiceError('unavailable', error.route, `answered 404 ${where}`, { status: 404 });
}
