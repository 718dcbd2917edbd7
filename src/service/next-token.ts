import { createHmac, timingSafeEqual } from 'node:crypto';
import { Problem } from './problem.ts';
import type { GivenRange } from './query.ts';

/** What a page is cut from, and where the page before it ended. Days for documents, microseconds for heart rate and rows. */
export interface PageRequest<Bound, Position> {
  start?: Bound;
  end?: Bound;
  fields?: readonly string[];
  after?: Position;
  /** An answer of the newest item alone is never continued. */
  latest?: never;
}

/** Whom a token is for: it is worth nothing to another user or at another collection. */
export interface TokenOwner {
  userId: string;
  collection: string;
}

/** A part of what is signed, so that tokens of an older layout are refused. */
const LAYOUT = 1;

const invalid = (why: string) => new Problem(400, `Invalid next_token: ${why}.`);

/** The token that continues with `page`. It carries the whole query, so that it works alone. */
export function writeNextToken(key: Uint8Array, owner: TokenOwner, page: PageRequest<unknown, unknown>): string {
  const payload = Buffer.from(JSON.stringify(page)).toString('base64url');
  return `${payload}.${sign(key, owner, payload).toString('base64url')}`;
}

/** The page that a token continues with. Throws 400 when it is not ours, not this user's, or comes with parameters that differ. */
export function parseNextToken<Bound, Position>(
  key: Uint8Array,
  owner: TokenOwner,
  token: string,
  given: GivenRange<Bound>,
): PageRequest<Bound, Position> {
  const [payload = '', signature = ''] = token.split('.', 2);
  const expected = sign(key, owner, payload);
  const actual = Buffer.from(signature, 'base64url');
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) throw invalid('it is none of this user and collection');
  const page: PageRequest<Bound, Position> = JSON.parse(Buffer.from(payload, 'base64url').toString());
  for (const name of ['start', 'end', 'fields', 'latest'] as const) {
    if (given[name] !== undefined && JSON.stringify(given[name]) !== JSON.stringify(page[name]))
      throw invalid('the other parameters are not those it was issued for; send it alone or with the same ones');
  }
  return page;
}

function sign(key: Uint8Array, { userId, collection }: TokenOwner, payload: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([LAYOUT, userId, collection, payload]))
    .digest();
}
