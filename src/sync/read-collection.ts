import { findDayNumber, MICROS_PER_DAY } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import type { Page, ReleaseWhile, RequestLane, RequestTimes } from '../client/client.ts';
import { ServiceError } from '../client/error.ts';
import type { DayRange, Rejects } from '../ledger/windows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import type { DocumentChange, KnownDocument, WriteResult } from '../warehouse/write-result.ts';
import { type KnownAnswer, nameAnswer } from './known-documents.ts';
import { type Pipeline, tokenGuard } from './pipeline.ts';

/** What reads documents from the service into the warehouse. */
export interface PageReading {
  pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'tokens'>;
  token: string;
  signal?: AbortSignal | undefined;
  lane?: RequestLane;
  releaseWhile?: ReleaseWhile | undefined;
  /** An answer to the same request that came before. */
  known?: KnownAnswer | undefined;
  /** Called for each answer. */
  onAnswer?(): void;
  /** Called as each page is stored. */
  onStored?(counts: WriteResult, documents: number): void;
  /** What is committed with the last of the pages: documents that are gone, entries of the ledger. Called once it has come. */
  finish?(read: CompleteRead): Promise<{
    removed?: readonly string[];
    /** The days from which they are absent, where nothing else says that they are gone. */
    absentFrom?: DayRange | undefined;
    ledger?: (stored: StoredAnswer) => readonly LedgerEntry[];
    /** The days that are settled now; undefined where documents belong to no day. */
    days?: DayRange | undefined;
  }>;
}

/** What became of all that came. */
export interface StoredAnswer {
  rejects: Rejects;
  removed: number;
  /** What the answer is known by when it comes again; undefined where it cannot be. */
  pages: string | undefined;
}

/** A range that was read to its end. */
export interface CompleteRead extends RequestTimes {
  // Of its first request: what is absent was so then.
  requests: number;
  documents: number;
  /** The identifiers of all its documents. */
  ids: ReadonlySet<string>;
}

/** Of pages that wait, unparsed, for the rest of a known answer. */
const MOST_HELD_BYTES = 16 * 1024 * 1024;

/**
 * Reads a collection to its end and stores each page while the next one is on its way. Documents that `finish` says are gone count
 * as absent at the moment of the first request, which is held until they are committed; where nothing but their absence says so, before any
 * answer that is still under way: it may bring them under another day.
 * @throws ServiceError, also where all that came is of another range; the pages that came before it are stored by then
 */
export async function storePages(
  resource: Resource,
  userId: string,
  range: { from?: string; to?: string },
  { pipeline: { client, warehouse, tokens }, token, signal, lane = 'bulk', releaseWhile, known, onAnswer, onStored, finish }: PageReading,
): Promise<CompleteRead & { changes: DocumentChange[] }> {
  const guard = tokenGuard(tokens, userId, token);
  const ids = new Set<string>();
  const dayStarts = new Set<number>();
  const moments = momentsOfDays(range);
  const rejects: Rejects = { rejected: 0, undated: 0 };
  const read = { ...UNASKED, requests: 0, documents: 0, ids };
  const changes: DocumentChange[] = [];
  const digests: (string | undefined)[] = [];
  const came: KnownDocument[] = [];
  type End = Awaited<ReturnType<NonNullable<typeof finish>>>;
  type Answer = Pick<Page, 'requestedAt' | 'documents'> & { known?: readonly KnownDocument[] };
  // The documents are taken out of the page, and no frame that waits for their commit has them: as they came they are large.
  const store = (page: Answer, end: End, isLast: boolean) => {
    const { removed, absentFrom, days } = end;
    const ledger = isLast ? end.ledger : undefined;
    return warehouse.storeDocuments(
      {
        userId,
        resource,
        requestedAt: page.requestedAt,
        documents: page.documents.splice(0),
        known: page.known,
        range: moments,
        ...(removed && isLast ? { removed, absentFrom } : {}),
        ...(ledger ? { completes: { since: read.requestedAt, days } } : {}),
      },
      {
        lane,
        guard,
        ...(ledger && {
          ledger: counts => {
            if (counts.differing) return [];
            const pages = nameAnswer(client, digests, [...came, ...counts.came], read.documents);
            return ledger({ rejects: sum(rejects, counts), removed: counts.removed, pages });
          },
        }),
      },
    );
  };
  const note = (counts: WriteResult, documents: number) => {
    Object.assign(rejects, sum(rejects, counts));
    changes.push(...counts.changes);
    for (const document of counts.came) came.push(document);
    onStored?.(counts, documents);
  };
  const findEnd = async (): Promise<End> => (finish ? await finish(read) : {});
  /** What the end says is gone, after what the last page brought. */
  const remove = async (end: End) => {
    if (!end.removed?.length) return;
    const requestedAt = end.absentFrom ? Math.min(read.requestedAt, warehouse.clock.oldestAnswer() - 1) : read.requestedAt;
    note(await store({ requestedAt, documents: [] }, end, true), 0);
  };
  let storing: Promise<void> | undefined;
  const take = async (page: Page) => {
    if (page.parse) page.documents = page.parse();
    const count = page.documents.length;
    read.documents += count;
    for (const document of page.documents) {
      if (hasId(document)) ids.add(document.id);
    }
    for (const day of momentsOfDocuments(page.documents)) dayStarts.add(day);
    if (page.nextToken === null) ensureAnswers(page.route, dayStarts, moments);
    // One page at most waits for its commit while another is on its way.
    await storing;
    if (page.nextToken !== null) {
      storing = store(page, {}, false).then(counts => note(counts, count));
      // Heard of when the next page has come, or at the end.
      storing.catch(() => undefined);
      return;
    }
    // What a last page brought is good, whatever may be said of what it did not bring.
    const end = await findEnd().catch(async error => {
      note(await store(page, {}, false), count);
      throw error;
    });
    note(await store(page, end, !end.removed?.length), count);
    await remove(end);
  };
  /** Whether the answer is the one that came before, and what it brought is still what is stored. */
  const takeKnown = async ({ documents }: KnownAnswer): Promise<boolean> => {
    read.documents = documents.length;
    for (const { id } of documents) ids.add(id);
    const end = await findEnd();
    // Which of them came with which page is not known: none of them was sent before the first.
    const counts = await store({ requestedAt: read.requestedAt, documents: [], known: documents }, end, !end.removed?.length);
    if (counts.differing) {
      read.documents = 0;
      ids.clear();
      return false;
    }
    note(counts, documents.length);
    await remove(end);
    return true;
  };
  /** Pages that came before, while none of another kind has come. */
  const waiting: Page[] = [];
  let held = 0;
  try {
    for await (const page of client.documents(resource, { token, ...range, lane, releaseWhile, signal, known: known?.pages ?? [] })) {
      if (!read.requestedAt) {
        Object.assign(read, momentsOfRequest(page));
        warehouse.clock.leaseRead(page.requestedAt);
      }
      read.requests++;
      onAnswer?.();
      digests.push(page.digest);
      warehouse.clock.leaseAgain(page.requestedAt);
      waiting.push(page);
      held += page.bytes ?? 0;
      if (known && held <= MOST_HELD_BYTES && waiting.length === read.requests && waiting.every(({ parse }) => parse)) {
        if (page.nextToken !== null) continue;
        if (await takeKnown(known)) continue;
      }
      while (waiting.length) {
        await take(waiting[0]!);
        warehouse.clock.release(waiting.shift()!.requestedAt);
      }
    }
    return { ...read, changes };
  } finally {
    await storing?.catch(() => undefined);
    for (const { requestedAt } of waiting) warehouse.clock.release(requestedAt);
    if (read.requestedAt) warehouse.clock.releaseRead(read.requestedAt);
  }
}

export const UNASKED: RequestTimes = { requestedAt: 0, readAt: 0, serviceAt: null };

/** The moments of a page or document, without what it brought. */
export const momentsOfRequest = ({ requestedAt, readAt, serviceAt }: RequestTimes): RequestTimes => ({
  requestedAt,
  readAt,
  serviceAt,
});

const sum = (a: Rejects, b: Rejects): Rejects => ({ rejected: a.rejected + b.rejected, undated: a.undated + b.undated });

const hasId = (document: unknown): document is { id: string } =>
  typeof document === 'object' && document !== null && 'id' in document && typeof document.id === 'string';

/** Microseconds, `endAt` excluded. */
export interface MomentRange {
  startAt: number;
  endAt: number;
}

/** How far beside its range an answer may lie: a night may be filed under the next day, and the days of another zone begin elsewhere. */
const BESIDE = MICROS_PER_DAY;

/**
 * @param moments of what came, as far as it tells them
 * @throws ServiceError where most of them lie elsewhere: that answers another question, as a cache does that ignores the query. A few may
 * lie within all the same, because the ranges of neighbouring questions overlap
 */
export function ensureAnswers(route: string, moments: Iterable<number>, range: MomentRange | undefined): void {
  if (!range) return;
  let within = 0;
  let elsewhere = 0;
  for (const moment of moments) {
    if (moment >= range.startAt - BESIDE && moment < range.endAt + BESIDE) within++;
    else elsewhere++;
  }
  if (elsewhere > within) throw new ServiceError('malformed', route, 'answered another range than the one that was asked for');
}

/** The range of days; undefined where they have no end. */
export const momentsOfDays = ({ from, to }: Partial<DayRange>): MomentRange | undefined =>
  from === undefined || to === undefined
    ? undefined
    : { startAt: findDayNumber(from)! * MICROS_PER_DAY, endAt: (findDayNumber(to)! + 1) * MICROS_PER_DAY };

/** When the days of these documents begin. */
export function* momentsOfDocuments(documents: Iterable<unknown>): Generator<number> {
  for (const document of documents) {
    const day = typeof document === 'object' && document !== null && 'day' in document ? document.day : undefined;
    const number = typeof day === 'string' ? findDayNumber(day) : undefined;
    if (number !== undefined) yield number * MICROS_PER_DAY;
  }
}
