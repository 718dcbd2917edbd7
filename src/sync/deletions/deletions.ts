import { addDays, findInstant } from '../../../schema/instant.ts';
import { findDayOf, type Resource } from '../../../schema/resource.ts';
import { isAskable } from '../../client/base-url.ts';
import type { ReleaseWhile } from '../../client/client.ts';
import { ServiceError } from '../../client/error.ts';
import { noSuspicionEntry, readSuspicions, suspicionEntry } from '../../ledger/suspicions.ts';
import type { DayRange } from '../../ledger/windows.ts';
import { readFetched } from '../../warehouse/stored-documents.ts';
import type { WriteResult } from '../../warehouse/write-result.ts';
import { hasTrustedRoute } from '../events/document-fetches.ts';
import type { Pipeline } from '../pipeline.ts';
import { tokenGuard } from '../pipeline.ts';
import { type CompleteRead, partsOfRange, readCollection } from '../read-collection.ts';
import { ACCEPT, type DeletionShare, isTooMany, TOO_MANY_IN_RUN } from './deletion-brake.ts';

/** How long after the first proof the second one counts, where no document route can be asked. */
const CONFIRMS_AFTER_MICROS = 5 * 60 * 1_000_000;

/** How far about its stored day a document is looked for that only its absence would remove: for one document that is one request. */
const MOVED_DAYS = 44;
/** A moment is nowhere else. */
const movedDaysOf = ({ identifiedBy }: Resource) => (identifiedBy === undefined ? MOVED_DAYS : 0);

const FIRST_PROOF =
  'stored documents are missing from the answer; nothing was removed: a reading at least 5 minutes later removes them if it does not bring them either';

const OUTSIDE = `stored rows are missing before the first or after the last of the answer, as from one to a shorter range; ${ACCEPT}`;

const LEFT_OUT = 'left out documents that the service has: a reading at least 5 minutes later takes that for its way to list them';

/** A range that was read completely, and what confirms that a document is gone from it. */
export interface Absence {
  pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'now' | 'tokens'>;
  resource: Resource;
  userId: string;
  token: string;
  signal: AbortSignal;
  releaseWhile: ReleaseWhile;
  /** The days whose documents the service would have sent, had it any; undefined where documents belong to no day. */
  days: DayRange | undefined;
  read: CompleteRead;
  /** Before its first request was sent, in microseconds of this machine's clock. */
  begunAt: number;
  /** What was stored of it before the first request: while nothing of that is missing, nothing needs to be looked up. */
  before: readonly string[];
  /** Somebody says that what is missing is gone, however much it is. */
  acceptDeletions: boolean;
  /** What may be removed out of what the run may. */
  share: DeletionShare;
  onAnswer(): void;
  onStored(counts: WriteResult, documents: number): void;
}

/** A stored document that an answer lacks; without a day where its kind has none. */
export interface MissingDocument {
  id: string;
  day: string | null;
}

/** The documents that are gone, or why none may be taken for gone. */
export type Verdict =
  | {
      removed: MissingDocument[];
      /** The days from which they are absent, where nothing else says that they are gone. */
      absentFrom?: DayRange | undefined;
      suspicious?: undefined;
    }
  | { suspicious: string };

/**
 * Which stored documents the service no longer has: absent from a complete read that began after they were fetched, and confirmed.
 * Changes nothing but by what the confirmation brings, and by noting the first of two proofs.
 * @throws ServiceError when the confirmation gets no clear answer: then nothing is known to be gone
 */
export async function findRemoved(absence: Absence): Promise<Verdict> {
  const { resource, days, read, before, acceptDeletions, share } = absence;
  await forgetUnlisted(absence);
  if (before.every(id => read.ids.has(id))) return { removed: [] };
  const { absent, stored } = await readAbsent(absence);
  if (!absent.length) return { removed: [] };
  const { named, unnamed } = await splitByRoute(absence, absent);
  const candidates = named.length + unnamed.length;
  if (!candidates) return { removed: [] };
  if (!acceptDeletions) {
    if (isTooMany(candidates, stored)) {
      return { suspicious: `${candidates} of ${stored} stored documents are missing from the answer; ${ACCEPT}` };
    }
    if (resource.identifiedBy !== undefined && reachBeyond(unnamed, read)) return { suspicious: OUTSIDE };
    if (unnamed.length && !read.documents) return { suspicious: `an empty answer over ${unnamed.length} stored documents; ${ACCEPT}` };
    if (unnamed.length && !(await isSecondProof(absence, unnamed))) return { suspicious: FIRST_PROOF };
    if (!(await share.take(candidates, days && resource.dayField))) return { suspicious: TOO_MANY_IN_RUN };
  }
  try {
    const removed = named.length ? await confirmByDocument(absence, named) : [];
    if (unnamed.length) removed.push(...(await confirmByReading(absence, unnamed)));
    share.keep(removed.length);
    return { removed, absentFrom: unnamed.length ? days : undefined };
  } catch (error) {
    throw asUnclear(error);
  }
}

/** What is listed again was left out by mistake, when it was. */
async function forgetUnlisted({ pipeline: { warehouse }, resource, userId, read }: Absence): Promise<void> {
  const place = { userId, collection: resource.name, kind: 'unlisted' as const };
  const listed = [...(await readSuspicions(warehouse, place)).keys()].filter(id => read.ids.has(id));
  await warehouse.record(listed.map(objectId => noSuspicionEntry({ ...place, objectId })));
}

interface Absent {
  /** Those that a document route tells of one by one. */
  named: MissingDocument[];
  /** Those of which only their absence tells; none where documents belong to no day. */
  unnamed: MissingDocument[];
}

async function splitByRoute(absence: Absence, absent: readonly MissingDocument[]): Promise<Absent> {
  const { pipeline, resource, days } = absence;
  const askable = resource.identifiedBy === undefined ? absent.filter(({ id }) => isAskable(id)) : [];
  const hasRoute = askable.length > 0 && (hasTrustedRoute(pipeline.client, resource) || (await tryRoute(absence)));
  const named = hasRoute ? askable : [];
  return { named, unnamed: days ? absent.filter(document => !named.includes(document)) : [] };
}

/** Whether the service has the document route, as a document that has just come shows: by it those that are missing can be asked for. */
async function tryRoute({ pipeline: { client }, resource, token, signal, releaseWhile, read, onAnswer }: Absence): Promise<boolean> {
  const present = [...read.ids].find(isAskable);
  if (present === undefined) return false;
  read.requests++;
  try {
    await client.document(resource, present, { token, signal, releaseWhile }, () => undefined);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === 'stopped') throw error;
  }
  onAnswer();
  return client.hasDocumentRoute(resource);
}

/** Whether each was so some minutes ago already; what was not is noted, for a later reading. */
async function isSecondProof(
  { pipeline: { warehouse, now }, resource, userId, begunAt, read, days }: Absence,
  absent: readonly MissingDocument[],
  kind: 'missing' | 'unlisted' = 'missing',
): Promise<boolean> {
  const place = { userId, collection: resource.name, kind };
  const known = await readSuspicions(warehouse, place);
  const nowMicros = now() * 1000;
  const isKnown = ({ id }: MissingDocument) => (known.get(id) ?? Number.POSITIVE_INFINITY) <= nowMicros;
  const unknown = absent.filter(document => !isKnown(document));
  const ids = unknown.map(({ id }) => id);
  // By the writer: its document may come while this waits for its turn.
  if (kind === 'missing' && ids.length) {
    const { requestedAt } = read;
    const missing = { ids, seenAt: nowMicros };
    await warehouse.storeDocuments({ userId, resource, requestedAt, documents: [], missing, absentFrom: days });
  } else await warehouse.record(ids.map(objectId => suspicionEntry({ ...place, objectId }, nowMicros)));
  return !unknown.length && absent.every(({ id }) => (known.get(id) ?? nowMicros) + CONFIRMS_AFTER_MICROS <= begunAt);
}

async function readAbsent({
  pipeline: { warehouse },
  resource,
  userId,
  days,
  read,
}: Absence): Promise<{ absent: MissingDocument[]; stored: number }> {
  const rows = await readFetched(warehouse, resource, userId, { days, before: read.requestedAt });
  const absent = rows.filter(({ id, isBefore }) => isBefore && !read.ids.has(id));
  return { absent: absent.map(({ id, day }) => ({ id, day })), stored: rows.length };
}

/**
 * Whether rows are missing before the first or after the last of an answer: one to another range, as the last hours alone, lies within the
 * range that was asked for, and a second reading gets the same.
 */
function reachBeyond(absent: readonly MissingDocument[], { ids }: CompleteRead): boolean {
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const id of ids) {
    first = Math.min(first, momentOf(id));
    last = Math.max(last, momentOf(id));
  }
  return ids.size > 0 && absent.some(({ id }) => momentOf(id) < first || momentOf(id) > last);
}

/** Of a row, whose identifier it is. */
const momentOf = (id: string): number => findInstant(id)?.micros ?? Number.NaN;

async function confirmByDocument(absence: Absence, absent: readonly MissingDocument[]): Promise<MissingDocument[]> {
  const { pipeline, resource, userId, token, signal, releaseWhile, days, read, acceptDeletions, onAnswer, onStored } = absence;
  const { client, warehouse } = pipeline;
  const removed: MissingDocument[] = [];
  const leftOut: MissingDocument[] = [];
  for (const document of absent) {
    read.requests++;
    try {
      await client.document(resource, document.id, { token, signal, releaseWhile }, async answer => {
        onAnswer();
        ensureIs(resource, document.id, answer.document);
        const page = { userId, resource, requestedAt: answer.requestedAt, documents: [answer.document] };
        onStored(await warehouse.storeDocuments(page, { guard: tokenGuard(pipeline.tokens, userId, token) }), 1);
        if (isWithin(findDayOf(resource, answer.document), days)) leftOut.push(document);
      });
    } catch (error) {
      if (!(error instanceof ServiceError && error.kind === 'not_found')) throw error;
      onAnswer();
      removed.push(document);
    }
  }
  // What else the answer left out nobody knows: a day of which it brought nothing need not be empty. But a service may never list them.
  if (leftOut.length && !acceptDeletions && !(await isSecondProof(absence, leftOut, 'unlisted'))) {
    throw new ServiceError('malformed', `/v2/usercollection/${resource.path}`, LEFT_OUT);
  }
  return removed;
}

const isWithin = (day: string | undefined, days: DayRange | undefined): boolean =>
  days !== undefined && day !== undefined && day >= days.from && day <= days.to;

function ensureIs({ path }: Resource, id: string, document: unknown): void {
  if (typeof document === 'object' && document !== null && 'id' in document && document.id === id) return;
  throw new ServiceError('malformed', `/v2/usercollection/${path}/{document_id}`, 'answered with something else than the document');
}

/** What another answer brings is not gone: it was left out before, or it is not far about its stored day now. */
async function confirmByReading(absence: Absence, absent: readonly MissingDocument[]): Promise<MissingDocument[]> {
  const { pipeline, resource, userId, token, signal, releaseWhile, read, onAnswer, onStored } = absence;
  const days = absent.flatMap(({ day }) => day ?? []).sort();
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return [];
  const options = {
    pipeline,
    token,
    signal,
    releaseWhile,
    onAnswer,
    // Most of them came before, and were counted.
    onStored: (counts: WriteResult) => onStored(counts, counts.stored),
  };
  let left = [...absent];
  const moved = movedDaysOf(resource);
  for (const part of partsOfRange({ from: addDays(first, -moved), to: addDays(last, moved) })) {
    const again = await readCollection(resource, userId, part, options);
    read.requests += again.requests;
    left = left.filter(({ id }) => !again.ids.has(id));
  }
  return left;
}

/** A 404 that is no document's says nothing of the collection, which has just answered. */
function asUnclear(error: unknown): unknown {
  if (!(error instanceof ServiceError && error.kind === 'not_found')) return error;
  return new ServiceError('malformed', error.route, 'answered 404 where that cannot be');
}
