import { MICROS_PER_DAY } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { isAskable } from '../client/base-url.ts';
import type { RequestTimes } from '../client/client.ts';
import { ServiceError } from '../client/error.ts';
import type { Rejects, Window } from '../ledger/windows.ts';
import { daysOf, type EarlierReading, TooLarge } from '../ledger/windows.ts';
import { type Comparison, HeartRateAnswer, type Missing } from '../warehouse/heart-rate-answer.ts';
import { readNames } from '../warehouse/stored-documents.ts';
import type { RawHeartRate, Warehouse } from '../warehouse/warehouse.ts';
import { type DocumentChange, nothingWritten, type WriteResult } from '../warehouse/write-result.ts';
import { ACCEPT, type DeletionShare, isTooMany, TOO_MANY_IN_RUN } from './deletions/deletion-brake.ts';
import { findRemoved, type StoredDocument } from './deletions/deletions.ts';
import { hasTrustedRoute } from './events/document-fetches.ts';
import { withdrawGenerated } from './generated-heart-rate.ts';
import { readStored, widened } from './known-documents.ts';
import type { CollectContext, Collection, WindowResult } from './pipeline.ts';
import { tokenGuard } from './pipeline.ts';
import { ensureAnswers, momentsOfRequest, storePages, UNASKED } from './read-collection.ts';
import { noteUnannounced } from './sweeps/missed-events.ts';

export function documentCollection(resource: Resource): Collection {
  const { namedBy } = resource;
  return {
    name: resource.name,
    windowDays: resource.dated ? 90 : undefined,
    newestDay: resource.dated ? 'max(day)::VARCHAR' : undefined,
    dataType: resource.dataType,
    collect: (window, context) => collectPages(resource, window, context),
    ...(namedBy
      ? { namedBy: namedBy.resource, collectNotOffered: (window, context) => storeNamed(resource, namedBy, window.userId, context) }
      : {}),
  };
}

export const heartRateCollection: Collection = {
  name: heartRate.name,
  // Clients of the service report failures of more than 30 days. These are whole weeks, as the brake looks at them.
  windowDays: 28,
  newestDay: 'max(ts)::DATE::VARCHAR',
  dataType: undefined,
  collect: collectHeartRate,
};

/** The collections of a list of resources, heart rate last. */
export function collectionsOf(resources: readonly Resource[]): Collection[] {
  return [...resources.map(documentCollection), heartRateCollection];
}

const NOT_YET =
  'not all that is gone was removed: of some only their absence tells, and an answer that was sent before they were stored is still under way; another reading removes them';

async function collectPages(
  resource: Resource,
  { userId, startAt, endAt, earlier }: Window,
  { pipeline, token, signal, releaseWhile, acceptDeletions, share, expectsEvents, onAnswer, onStored: count, ledger }: CollectContext,
): Promise<WindowResult> {
  const days = startAt !== null && endAt !== null ? daysOf({ startAt, endAt }) : undefined;
  const changes: DocumentChange[] = [];
  const removed: StoredDocument[] = [];
  const onStored = (counts: WriteResult, documents: number) => {
    if (expectsEvents) changes.push(...counts.changes);
    count(counts, documents);
  };
  let outcome: 'complete' | 'suspicious' = 'complete';
  let reason: string | undefined;
  let removedCount = 0;
  const foundAt = pipeline.warehouse.clock.next();
  const begunAt = pipeline.now() * 1000;
  const { ids: before, known } = await readStored(pipeline, { resource, userId, days }, earlier?.pages);
  try {
    const { requests, documents, ...read } = await storePages(resource, userId, days ? widened(days) : {}, {
      known,
      pipeline,
      token,
      signal,
      releaseWhile,
      onAnswer,
      onStored,
      finish: async read => {
        const verdict = await findRemoved({
          pipeline,
          resource,
          userId,
          token,
          signal,
          releaseWhile,
          days,
          read,
          begunAt,
          before,
          acceptDeletions,
          share,
          onAnswer,
          onStored,
        });
        if (verdict.suspicious !== undefined) {
          outcome = 'suspicious';
          reason = verdict.suspicious;
          return {};
        }
        removed.push(...verdict.removed);
        return {
          removed: removed.map(({ id }) => id),
          absentFrom: verdict.absentFrom,
          ledger: ({ rejects, removed: count, pages }) => {
            removedCount = count;
            if (verdict.absentFrom && count < removed.length) {
              outcome = 'suspicious';
              reason = NOT_YET;
            }
            const { requests, documents } = read;
            return ledger({
              outcome,
              ...(reason ? { reason } : {}),
              ...momentsOfRequest(read),
              requests,
              documents,
              removed: count,
              pages,
              rejects,
            });
          },
          days,
        };
      },
    });
    if (reason) pipeline.log.warn({ account: userId, collection: resource.name, reason }, 'stored documents are missing at the service');
    return { outcome, ...(reason ? { reason } : {}), ...momentsOfRequest(read), requests, documents, removed: removedCount };
  } finally {
    // Also of a range that was read in part: what is stored is no news to the next attempt.
    if (changes.length) await noteUnannounced(pipeline, { resource, userId, foundAt, changes, removed });
  }
}

/** Reads the documents that others name one by one. */
async function storeNamed(
  resource: Resource,
  namedBy: { resource: string; field: string },
  userId: string,
  { pipeline: { client, warehouse, tokens }, token, signal, releaseWhile, hasFailed, onAnswer, onStored, ledger }: CollectContext,
): Promise<WindowResult> {
  const guard = tokenGuard(tokens, userId, token);
  const rejects: Rejects = { rejected: 0, undated: 0 };
  const result: WindowResult = { outcome: 'complete', ...UNASKED, requests: 1, documents: 0, rejects };
  for (const id of await readNamed(warehouse, namedBy, userId)) {
    try {
      const answer = await client.document(resource, id, { token, signal, releaseWhile });
      try {
        result.requests++;
        onAnswer();
        if (!result.requestedAt) Object.assign(result, momentsOfRequest(answer));
        result.documents++;
        const { requestedAt, document } = answer;
        const counts = await warehouse.storeDocuments({ userId, resource, requestedAt, documents: [document] }, { guard });
        rejects.rejected += counts.rejected;
        rejects.undated += counts.undated;
        onStored(counts, 1);
      } finally {
        answer.done();
      }
    } catch (error) {
      if (!(error instanceof ServiceError && error.kind === 'not_found')) throw error;
      if (!hasTrustedRoute(client, resource)) {
        throw new ServiceError('unavailable', error.route, 'answered 404 where it has never answered', { status: 404 });
      }
      // A document that a night names may be gone: its neighbours are still wanted.
      result.requests++;
    }
  }
  if (hasFailed(namedBy.resource))
    return { ...result, outcome: 'failed', reason: `not all of ${namedBy.resource} could be read, which names them` };
  if (!result.documents) return { ...result, outcome: 'not_offered', reason: 'the collection answers 404' };
  guard();
  await warehouse.record(ledger(result));
  return result;
}

async function readNamed(
  warehouse: Warehouse,
  { resource, field }: { resource: string; field: string },
  userId: string,
): Promise<string[]> {
  return (await readNames(warehouse, resource, field, userId)).filter(isAskable);
}

/** Exact windows, not widened; their rows are replaced once, after the last page. */
async function collectHeartRate({ userId, startAt, endAt, earlier: known }: Window, context: CollectContext): Promise<WindowResult> {
  const { warehouse, serviceClock, now, tokens } = context.pipeline;
  const guard = tokenGuard(tokens, userId, context.token);
  const from = startAt!;
  // What is measured after the request cannot be in its answer, and must not be taken for absent. The Date of an answer may be that of a cache.
  const to = Math.min(endAt!, Math.floor(Math.max(serviceClock.now(), now()) * 1000));
  const result: WindowResult = { outcome: 'complete', ...UNASKED, requests: 0, documents: 0 };
  if (from >= to) {
    await warehouse.record(context.ledger(result));
    return result;
  }
  // One that ended with its request may have had less than the range.
  const earlier = to === endAt ? known : undefined;
  let answer = await readHeartRate(from, to, context, earlier);
  result.requests = answer.requests;
  try {
    const isPlain = answer.route === heartRate.plainPath && context.pipeline.client.heartRatePath === heartRate.plainPath;
    const withdrawn = isPlain ? await withdrawGenerated(context.pipeline) : undefined;
    if (withdrawn) {
      context.onStored({ ...nothingWritten(), removed: withdrawn.removed }, 0);
      if (withdrawn.reading) context.goesOnIn(withdrawn.reading);
      warehouse.clock.releaseRead(answer.requestedAt);
      answer = await readHeartRate(from, to, context);
      result.requests += answer.requests;
    }
    let { doubt, compared } = await findDoubt({ userId, from, to, ...answer }, context, earlier);
    if (doubt !== undefined) {
      warehouse.clock.releaseRead(answer.requestedAt);
      answer = await readHeartRate(from, to, context);
      result.requests += answer.requests;
      ({ doubt, compared } = await findDoubt({ userId, from, to, ...answer }, context));
    }
    const { rows, requestedAt } = answer;
    Object.assign(result, momentsOfRequest(answer), { route: answer.route });
    // Of what lies behind the end that was asked for nothing is known, whatever a clock showed when the answer came, perhaps after a wait.
    if (to < endAt!) {
      result.readAt = Math.min(result.readAt, to);
      if (result.serviceAt !== null) result.serviceAt = Math.min(result.serviceAt, to);
    }
    refuseGenerated(answer.route, context);
    if (doubt !== undefined && !context.acceptDeletions) {
      // What is new in it may be all that there is of the last hours. Generated rows can be found again by a complete window only.
      if (answer.route !== heartRate.sandboxPath) {
        context.onStored(await warehouse.storeHeartRate({ userId, from, to, requestedAt, rows, isSuspicious: true }, { guard }), 0);
      }
      return { ...result, outcome: 'suspicious', reason: doubt };
    }
    result.documents = compared.same?.rows ?? rows.length;
    const ledger = (rowsByDay: readonly number[], counts: WriteResult) => {
      const isAllStored = to === endAt && counts.outdated + counts.rejected + counts.undated === 0;
      const pages = isAllStored ? answer.pages : undefined;
      return context.ledger({ ...result, removed: counts.removed, rowsByDay, pages, rejects: counts });
    };
    const counts = await warehouse.storeHeartRate({ userId, from, to, requestedAt, rows, compared }, { ledger, guard });
    // Rows are samples: documents are what has an identifier.
    context.onStored(counts, 0);
    return result;
  } finally {
    warehouse.clock.releaseRead(answer.requestedAt);
  }
}

/** What came from the sandbox path is not stored where the plain one has answered somebody meanwhile. */
function refuseGenerated(route: string, { pipeline: { client } }: CollectContext): void {
  const { sandboxPath, plainPath } = heartRate;
  if (route !== sandboxPath || client.heartRatePath !== plainPath) return;
  throw new ServiceError('unavailable', sandboxPath, `left, because ${plainPath} has answered meanwhile; to be read from there`);
}

/** Why an answer is not believed, where it is not: it lacks too much of what is stored. */
async function findDoubt(
  answer: RawHeartRate & { rows: HeartRateAnswer; route: string; pages: string | undefined },
  { pipeline: { warehouse }, share }: CollectContext,
  earlier?: EarlierReading,
): Promise<{ doubt: string | undefined; compared: Comparison }> {
  if (earlier && earlier.pages === answer.pages && earlier.route === answer.route) {
    const { requestedAt, documents: rows, rowsByDay } = earlier;
    const same = await warehouse.findSameHeartRate(answer, { requestedAt, rows, rowsByDay });
    if (same) return { doubt: undefined, compared: same };
  }
  const { weeks, compared } = await warehouse.countMissingHeartRate(answer);
  return { doubt: await doubtOf(answer, weeks, share), compared };
}

async function doubtOf(
  answer: RawHeartRate & { rows: HeartRateAnswer },
  weeks: readonly Missing[],
  share: DeletionShare,
): Promise<string | undefined> {
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
  const [missing, stored] = [sum(weeks.map(week => week.missing)), sum(weeks.map(week => week.stored))];
  const isEmpty = answer.rows.rows.within(answer.from, answer.to).length === 0;
  if (stored && isEmpty) return `two empty answers over ${stored} stored rows; ${ACCEPT}`;
  // Nothing else confirms that rows are gone: of a whole window, days could be missing before they were a fifth.
  const doubtful = [{ missing, stored }, ...weeks].find(counts => isTooMany(counts.missing, counts.stored));
  if (doubtful) return `${doubtful.missing} of ${doubtful.stored} stored rows are missing from two answers; ${ACCEPT}`;
  return (await share.take(missing, 'ts')) ? undefined : TOO_MANY_IN_RUN;
}

/** Rows of a window that are held at once, some 300 MB while they are stored. A window has about 35,000; with a row each second it would have 2.4 million. */
const MOST_ROWS = 150_000;

/** Before the pages of a reading in the ledger. To be raised when something else of the same row is stored: then each is read again. */
const STORED_AS = 'v1';

/**
 * All rows of a range. The moment of its first request is held until the caller ends it.
 * @param earlier pages that are the same as this reading's are not parsed before their rows are asked for
 */
async function readHeartRate(
  from: number,
  to: number,
  { pipeline: { client, warehouse }, token, signal, releaseWhile, onAnswer }: CollectContext,
  earlier?: EarlierReading,
): Promise<RequestTimes & { route: string; rows: HeartRateAnswer; requests: number; pages: string | undefined }> {
  const iso = (micros: number) => new Date(micros / 1000).toISOString();
  const rows = new HeartRateAnswer();
  let first = UNASKED;
  let route = '';
  let requests = 0;
  const [version, ...known] = earlier?.pages.split(' ') ?? [];
  const digests: (string | undefined)[] = [];
  try {
    const range = { from: iso(from), to: iso(to), known: version === STORED_AS ? known : [] };
    for await (const page of client.heartRate({ token, ...range, signal, releaseWhile })) {
      if (!first.requestedAt) {
        first = momentsOfRequest(page);
        route = page.route;
        warehouse.clock.leaseRead(first.requestedAt);
      }
      requests++;
      onAnswer();
      digests.push(page.digest);
      if (page.parse) rows.hold(page.parse);
      else rows.add(page.documents);
      if (!rows.isHeld && rows.length > MOST_ROWS && to - from > MICROS_PER_DAY) throw new TooLarge();
    }
    if (!rows.isHeld) {
      ensureAnswers(route, rows.rows.columns.micros, { startAt: from, endAt: to });
    }
    const pages = digests.length && !digests.includes(undefined) ? [STORED_AS, ...digests].join(' ') : undefined;
    return { ...first, route, rows, requests, pages };
  } catch (error) {
    if (first.requestedAt) warehouse.clock.releaseRead(first.requestedAt);
    throw error;
  }
}
