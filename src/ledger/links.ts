import { createHash, timingSafeEqual } from 'node:crypto';
import { createKeptRows, number, oneOf, orNull, type Row, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

export type LinkKind = 'connect' | 'withdraw';

const LINK = {
  secretHash: text,
  kind: oneOf(['connect', 'withdraw']),
  userId: text,
  createdAt: number,
  expiresAt: orNull(number),
  problem: orNull(oneOf(['enrolled', 'another', 'unrecognised'])),
  serviceUserId: orNull(text),
};

/** A link that somebody was given. Moments are microseconds. */
export type Link = Readonly<Row<typeof LINK>>;

const toLinks = createKeptRows(LINK);

/** The links of a kind by name; those that have expired too. */
export async function listLinks(warehouse: Warehouse, kind: LinkKind): Promise<Link[]> {
  const sql =
    'SELECT secret_hash, kind, user_id, created_at, expires_at, problem, service_user_id FROM sync.links ORDER BY user_id, created_at';
  return toLinks(await warehouse.readKept('sync.links', sql)).filter(link => link.kind === kind);
}

export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

/** The link with this secret. Each one is compared, and each in constant time. */
export async function findLink(warehouse: Warehouse, kind: LinkKind, secret: string): Promise<Link | undefined> {
  const given = Buffer.from(hashOf(secret));
  let found: Link | undefined;
  for (const link of await listLinks(warehouse, kind)) {
    const known = Buffer.from(link.secretHash);
    if (known.length === given.length && timingSafeEqual(known, given)) found = link;
  }
  return found;
}

export const linkEntry = ({ secretHash, kind, userId, createdAt, expiresAt, problem, serviceUserId }: Link): LedgerEntry => ({
  table: 'sync.links',
  key: { secret_hash: secretHash },
  row: { kind, user_id: userId, created_at: createdAt, expires_at: expiresAt, problem, service_user_id: serviceUserId },
});

/** A new link by which the person of an account withdraws; it does not expire. @param at microseconds */
export const withdrawalLink = (userId: string, secret: string, at: number): Link => ({
  secretHash: hashOf(secret),
  kind: 'withdraw',
  userId,
  createdAt: at,
  expiresAt: null,
  problem: null,
  serviceUserId: null,
});

/** Takes every link to withdraw of a name away: who gets the name next is somebody else. */
export const noWithdrawalEntry = (userId: string): LedgerEntry => ({ table: 'sync.links', key: { user_id: userId, kind: 'withdraw' } });

/** Takes every invitation of a name away. */
export const noInvitationEntry = (userId: string): LedgerEntry => ({ table: 'sync.links', key: { user_id: userId, kind: 'connect' } });
