import { createHmac } from 'node:crypto';
import { parseJson } from '../base/json.ts';
import { ServiceError } from './error.ts';
import type { RequestLane } from './rate-limiter.ts';
import type { OkResponse, RequestSender, RequestTimes } from './request.ts';
import type { ReleaseWhile } from './response.ts';
import type { RouteMemory } from './routes.ts';

/** One answer of a collection. */
export interface Page<Rows = never> extends RequestTimes {
  /** The path that was asked. */
  route: string;
  documents: unknown[];
  /** Null on the last page. */
  nextToken: string | null;
  /** What the page is known by, where the reading wants that and it can be: the page has documents, and its end tells the next one. */
  digest?: string | undefined;
  /** The bytes of a page that is not parsed. */
  bytes?: number | undefined;
  /** Where the page is the one that was known in its place: parses its documents, which are not in `documents` then. */
  parse?: (() => unknown[]) | undefined;
  /** What `readRows` made of the page, whose documents are not in `documents` then. */
  rows?: Rows | undefined;
}

/** The rows of a page with at least one, and its `next_token`. */
export interface PageRows<Rows> {
  rows: Rows;
  nextToken: string | null;
}

/** A collection to be read from its first page to its last. */
export interface Reading<Rows = never> {
  route: string;
  parameters: Record<string, string>;
  token: string;
  lane?: RequestLane | undefined;
  releaseWhile?: ReleaseWhile | undefined;
  /** An empty page does not show that the service has the route. */
  emptyIsDoubtful?: boolean;
  /** The digests of the pages of an earlier reading: those that are the same are not parsed. Where it is undefined there are no digests. */
  known?: readonly string[] | undefined;
  /** Reads a page from its bytes, which is quicker than parsing it; undefined of a page that is to be parsed. */
  readRows?: ((bytes: Buffer) => PageRows<Rows> | undefined) | undefined;
}

export interface PageLimits {
  maxPages: number;
  /** How many pages without a document may follow each other. */
  maxEmptyPages: number;
}

/** Which page is asked for: its token, null for the first one, and how many came before it. */
interface PagePlace {
  nextToken: string | null;
  number: number;
}

type Envelope<Rows = never> = Pick<Page<Rows>, 'documents' | 'nextToken' | 'digest' | 'bytes' | 'parse' | 'rows'>;

/** Follows pages. A page's moment ends when the consumer asks for the next page or leaves. */
export class PageReader {
  readonly #sender: RequestSender;
  readonly #routes: Pick<RouteMemory, 'hasAnswered'>;
  readonly #digestOf: Digest;
  readonly #limits: PageLimits;
  // The interface does not show whether a token goes alone or with the parameters it came from. What the service took last is tried first.
  #tokenAlone = false;

  constructor(sender: RequestSender, routes: Pick<RouteMemory, 'hasAnswered'>, digestOf: Digest, limits: PageLimits) {
    this.#sender = sender;
    this.#routes = routes;
    this.#digestOf = digestOf;
    this.#limits = limits;
  }

  async *read<Rows = never>(reading: Reading<Rows>, signal: AbortSignal): AsyncGenerator<Page<Rows>, void, undefined> {
    const seen = new Set<string>();
    let nextToken: string | null = null;
    let emptyPages = 0;
    for (let pages = 1; ; pages++) {
      const { value, done, ...moments }: OkResponse<Envelope<Rows>> = await this.#askPage(
        reading,
        { nextToken, number: pages - 1 },
        signal,
      ).catch(error => {
        throw asUnclear(error, nextToken !== null, this.#routes);
      });
      nextToken = value.nextToken;
      emptyPages = isEmpty(value) ? emptyPages + 1 : 0;
      try {
        yield { route: reading.route, ...value, ...moments };
      } finally {
        done();
      }
      if (nextToken === null) return;
      const endless = (message: string) => new ServiceError('endless', reading.route, message);
      if (seen.has(nextToken)) throw endless(`page ${pages} repeats a next_token, so its pages would never end`);
      if (pages >= this.#limits.maxPages) throw endless(`still not at an end after ${pages} pages`);
      if (emptyPages >= this.#limits.maxEmptyPages) throw endless(`${emptyPages} pages without a document followed each other`);
      seen.add(nextToken);
    }
  }

  async #askPage<Rows>(reading: Reading<Rows>, place: PagePlace, signal: AbortSignal): Promise<OkResponse<Envelope<Rows>>> {
    const { parameters } = reading;
    if (place.nextToken === null || Object.keys(parameters).length === 0) return this.#ask(reading, parameters, place, signal);
    const alone = this.#tokenAlone;
    try {
      return await this.#ask(reading, alone ? {} : parameters, place, signal);
    } catch (refusal) {
      if (!isInvalid(refusal)) throw refusal;
      try {
        const answer = await this.#ask(reading, alone ? parameters : {}, place, signal);
        this.#tokenAlone = !alone;
        return answer;
      } catch (error) {
        throw isInvalid(error) ? refusal : error;
      }
    }
  }

  #ask<Rows>(reading: Reading<Rows>, parameters: Record<string, string>, { nextToken, number }: PagePlace, signal: AbortSignal) {
    const { route, token, lane, releaseWhile, known, readRows } = reading;
    const digestOf = this.#digestOf;
    const digest = known?.[number];
    return this.#sender.send<Envelope<Rows>>(
      {
        route,
        path: withQuery(route, nextToken === null ? parameters : { ...parameters, next_token: nextToken }),
        token,
        lane,
        releaseWhile,
        secrets: nextToken === null ? [] : [nextToken],
        accept: known ? (value, bytes) => acceptDigested(value, bytes, digestOf) : acceptEnvelope,
        recognize: bytes => (digest ? recognize(bytes, digest, digestOf) : undefined) ?? readQuickly(bytes, readRows, known && digestOf),
        ...(reading.emptyIsDoubtful && { isDoubtful: isEmpty }),
      },
      signal,
    );
  }
}

/** A path with its query; `+` becomes `%2B`, as 4.3 demands. */
function withQuery(path: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(parameters).toString();
  return query ? `${path}?${query}` : path;
}

/** The envelope of 2.16. A missing, null or empty `next_token` means the last page. */
function acceptEnvelope(value: unknown): Envelope | undefined {
  if (typeof value !== 'object' || value === null || !('data' in value) || !Array.isArray(value.data)) return undefined;
  const documents: unknown[] = value.data;
  const nextToken = 'next_token' in value ? value.next_token : null;
  if (nextToken === undefined || nextToken === null || nextToken === '') return { documents, nextToken: null };
  return typeof nextToken === 'string' ? { documents, nextToken } : undefined;
}

/** The same, with what tells it from other answers. */
function acceptDigested(value: unknown, bytes: Buffer, digestOf: Digest): Envelope | undefined {
  const envelope = acceptEnvelope(value);
  const isTellable = envelope?.documents.length && findLastToken(bytes) === envelope.nextToken;
  return isTellable ? { ...envelope, digest: digestOf(bytes) } : envelope;
}

/** An answer that need not be parsed, for its rows could be read from its bytes. */
function readQuickly<Rows>(bytes: Buffer, readRows: Reading<Rows>['readRows'], digestOf: Digest | undefined): Envelope<Rows> | undefined {
  const page = readRows?.(bytes);
  if (!page) return undefined;
  const isTellable = digestOf && findLastToken(bytes) === page.nextToken;
  return { documents: [], ...page, ...(isTellable && { digest: digestOf(bytes) }) };
}

const isEmpty = ({ documents, parse, rows }: Envelope<unknown>) => !documents.length && !parse && !rows;

/** An answer that was accepted before: these bytes then had documents, and the end that tells the next page. */
function recognize(bytes: Buffer, digest: string, digestOf: Digest): Envelope | undefined {
  const nextToken = digestOf(bytes) === digest ? findLastToken(bytes) : undefined;
  if (nextToken === undefined) return undefined;
  const parse = () => acceptEnvelope(parseJson(bytes.toString()))?.documents ?? [];
  return { documents: [], nextToken, digest, bytes: bytes.length, parse };
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

/** How far before its end an answer names the next page, where that can be read without parsing the whole. */
const TAIL_BYTES = 4096;

/** Tells an answer from all others, in 96 bits; of what was in it, only to who has the key. */
export type Digest = (bytes: Buffer) => string;

/** @param findKey is called when the first answer is to be told from others */
export function createDigest(findKey: () => string): Digest {
  let key: string | undefined;
  return bytes => {
    key ??= findKey();
    return createHmac('sha1', key).update(bytes).digest('base64').slice(0, 16);
  };
}

/** The `next_token` of an envelope whose last member that is; undefined of any other. Of bytes that are no JSON it says nothing. */
export function findLastToken(bytes: Buffer): string | null | undefined {
  const tail = bytes.subarray(-TAIL_BYTES).toString();
  const at = tail.lastIndexOf('"next_token"');
  if (at < 0) return undefined;
  try {
    const { next_token: token, ...others }: Record<string, unknown> = JSON.parse(`{${tail.slice(at)}`);
    return Object.keys(others).length === 0 && (token === null || typeof token === 'string') ? token : undefined;
  } catch {
    return undefined;
  }
}
