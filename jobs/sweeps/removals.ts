import type { Resource } from '../../schema/resource.ts';
import { ServiceError } from '../../src/client/error.ts';
import type { Counts } from '../../src/warehouse/store-documents.ts';
import { qualified, quoteText } from '../../src/warehouse/tables.ts';
import { hasTrustedRoute } from '../events/document-fetches.ts';
import type { Pipeline } from '../pipeline.ts';
import { type CompleteRead, storePages } from '../store-pages.ts';
import type { DayRange } from '../windows.ts';

/** More than these many documents, and more than this share of what is stored, are not removed unless somebody says so. */
const MOST_REMOVED = 10;
const MOST_REMOVED_SHARE = 1 / 5;

/** A range that was read completely, and what confirms that a document is gone from it. */
export interface Absence {
  pipeline: Pick<Pipeline, 'client' | 'warehouse'>;
  resource: Resource;
  userId: string;
  token: string;
  signal: AbortSignal;
  /** The days whose documents the service would have sent, had it any; undefined where documents belong to no day. */
  days: DayRange | undefined;
  /** What was asked for: wider than `days`. */
  range: { from?: string; to?: string };
  read: CompleteRead;
  /** What was stored of it before the first request: while nothing of that is missing, nothing needs to be looked up. */
  before: readonly string[];
  /** Somebody says that what is missing is gone, however much it is. */
  acceptDeletions: boolean;
  onAnswer(): void;
  onStored(counts: Counts, documents: number): void;
}

/** A stored document; without a day where its kind has none. */
export interface StoredDocument {
  id: string;
  day: string | null;
}

/** The documents that are gone, or why none may be taken for gone. */
export type Verdict = { removed: StoredDocument[]; suspicious?: undefined } | { suspicious: string };

/**
 * Which stored documents the service no longer has: absent from a complete read that began after they were fetched, and confirmed.
 * Changes nothing but by what the confirmation brings.
 * @throws ServiceError when the confirmation gets no clear answer: then nothing is known to be gone
 */
export async function findRemoved(absence: Absence): Promise<Verdict> {
  const { resource, read, before, acceptDeletions, pipeline } = absence;
  if (before.every(id => read.ids.has(id))) return { removed: [] };
  const { absent, stored } = await readAbsent(absence);
  if (!absent.length) return { removed: [] };
  const hasRoute = hasTrustedRoute(pipeline.client, resource);
  if (!hasRoute && !absence.days) return { removed: [] };
  if (!acceptDeletions) {
    if (absent.length > MOST_REMOVED && absent.length > stored * MOST_REMOVED_SHARE) {
      return { suspicious: suspicionOf(`${absent.length} of ${stored} stored documents are missing from the answer`) };
    }
    if (!hasRoute && !read.documents) return { suspicious: suspicionOf(`an empty answer over ${absent.length} stored documents`) };
  }
  try {
    return await (hasRoute ? confirmByDocument(absence, absent) : confirmByReading(absence, absent));
  } catch (error) {
    throw asUnclear(error);
  }
}

/** The identifiers that are stored of a range: what is read before its first request, and not while its last page lies in memory. */
export async function readStoredIds(
  warehouse: Pipeline['warehouse'],
  { resource, userId, days }: Pick<Absence, 'resource' | 'userId' | 'days'>,
): Promise<string[]> {
  const rows = await warehouse.read(`SELECT id FROM ${qualified(resource.name)} WHERE ${whereRange(userId, days)}`);
  return rows.map(([id]) => id as string);
}

const whereRange = (userId: string, days: DayRange | undefined) =>
  `user_id = ${quoteText(userId)}${days ? ` AND day BETWEEN DATE ${quoteText(days.from)} AND DATE ${quoteText(days.to)}` : ''}`;

const suspicionOf = (what: string) => `${what}; nothing was removed: if they are gone, backfill --refresh --accept-deletions removes them`;

async function readAbsent({
  pipeline: { warehouse },
  resource,
  userId,
  days,
  read,
}: Absence): Promise<{ absent: StoredDocument[]; stored: number }> {
  const rows = await warehouse.read(
    `SELECT id, ${days ? 'day::VARCHAR' : 'NULL'}, fetched_at < make_timestamp(${read.requestedAt}::BIGINT) FROM ${qualified(resource.name)}
     WHERE ${whereRange(userId, days)} ORDER BY 1`,
  );
  const absent = rows.filter(([id, , before]) => before && !read.ids.has(id as string));
  return { absent: absent.map(([id, day]) => ({ id: id as string, day: day as string | null })), stored: rows.length };
}

async function confirmByDocument(
  { pipeline: { client, warehouse }, resource, userId, token, signal, read, onAnswer, onStored }: Absence,
  absent: readonly StoredDocument[],
): Promise<Verdict> {
  const removed: StoredDocument[] = [];
  for (const document of absent) {
    read.requests++;
    try {
      const answer = await client.document(resource, document.id, { token, signal });
      try {
        onAnswer();
        ensureIs(resource, document.id, answer.document);
        const page = { userId, resource, requestedAt: answer.requestedAt, documents: [answer.document] };
        onStored(await warehouse.storeDocuments(page), 1);
      } finally {
        answer.done();
      }
    } catch (error) {
      if (!(error instanceof ServiceError && error.kind === 'not_found')) throw error;
      onAnswer();
      removed.push(document);
    }
  }
  return { removed };
}

function ensureIs({ path }: Resource, id: string, document: unknown): void {
  if (typeof document === 'object' && document !== null && 'id' in document && document.id === id) return;
  throw new ServiceError('malformed', `/v2/usercollection/${path}/{document_id}`, 'answered with something else than the document');
}

async function confirmByReading(absence: Absence, absent: readonly StoredDocument[]): Promise<Verdict> {
  const { pipeline, resource, userId, range, token, signal, read, onAnswer, onStored, acceptDeletions } = absence;
  const again = await storePages(resource, userId, range, {
    pipeline,
    token,
    signal,
    onAnswer,
    // They came before, and were counted.
    onStored: counts => onStored(counts, 0),
  });
  read.requests += again.requests;
  const removed = absent.filter(({ id }) => !again.ids.has(id));
  if (!again.documents && !acceptDeletions) {
    return { suspicious: suspicionOf(`a second answer was empty over ${removed.length} stored documents`) };
  }
  return { removed };
}

/** A 404 that is no document's says nothing of the collection, which has just answered. */
function asUnclear(error: unknown): unknown {
  if (!(error instanceof ServiceError && error.kind === 'not_found')) return error;
  return new ServiceError('malformed', error.route, 'answered 404 where that cannot be');
}
