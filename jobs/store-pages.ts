import type { Resource } from '../schema/resource.ts';
import type { Aside, Page, RequestLane, RequestMoments } from '../src/client/client.ts';
import type { LedgerEntry } from '../src/warehouse/literals.ts';
import type { Counts, DocumentChange } from '../src/warehouse/store-documents.ts';
import { ensureAnswers, momentsOfDays, momentsOfDocuments } from './answered-range.ts';
import type { Pipeline } from './pipeline.ts';
import type { DayRange, Rejects } from './windows.ts';

/** What reads documents from the service into the warehouse. */
export interface PageReading {
  pipeline: Pick<Pipeline, 'client' | 'warehouse'>;
  token: string;
  signal?: AbortSignal | undefined;
  lane?: RequestLane;
  aside?: Aside | undefined;
  /** Called for each answer. */
  onAnswer?(): void;
  /** Called as each page is stored. */
  onStored?(counts: Counts, documents: number): void;
  /** What is committed with the last of the pages: documents that are gone, entries of the ledger. Called once it has come. */
  finish?(read: CompleteRead): Promise<{
    removed?: readonly string[];
    /** The days from which they are absent, where nothing else says that they are gone. */
    absentFrom?: DayRange | undefined;
    ledger?: (rejects: Rejects, removed: number) => readonly LedgerEntry[];
    /** The days that are settled now; undefined where documents belong to no day. */
    days?: DayRange | undefined;
  }>;
}

/** A range that was read to its end. */
export interface CompleteRead extends RequestMoments {
  // Of its first request: what is absent was so then.
  requests: number;
  documents: number;
  /** The identifiers of all its documents. */
  ids: ReadonlySet<string>;
}

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
  { pipeline: { client, warehouse }, token, signal, lane = 'bulk', aside, onAnswer, onStored, finish }: PageReading,
): Promise<CompleteRead & { changes: DocumentChange[] }> {
  const ids = new Set<string>();
  const dayStarts = new Set<number>();
  const moments = momentsOfDays(range);
  const rejects: Rejects = { rejected: 0, undated: 0 };
  const read = { ...UNASKED, requests: 0, documents: 0, ids };
  const changes: DocumentChange[] = [];
  // The documents are taken out of the page, and no frame that waits for their commit has them: as they came they are large.
  const store = (page: Pick<Page, 'requestedAt' | 'documents'>, end: Awaited<ReturnType<NonNullable<typeof finish>>>, isLast: boolean) => {
    const { ledger, removed, absentFrom, days } = end;
    return warehouse.storeDocuments(
      {
        userId,
        resource,
        requestedAt: page.requestedAt,
        documents: page.documents.splice(0),
        range: moments,
        ...(removed && isLast ? { removed, absentFrom } : {}),
        ...(ledger && isLast ? { completes: { since: read.requestedAt, days } } : {}),
      },
      { lane, ...(ledger && isLast ? { ledger: counts => ledger(sum(rejects, counts), counts.removed) } : {}) },
    );
  };
  const note = (counts: Counts, documents: number) => {
    Object.assign(rejects, sum(rejects, counts));
    changes.push(...counts.changes);
    onStored?.(counts, documents);
  };
  let storing: Promise<void> | undefined;
  try {
    for await (const page of client.documents(resource, { token, ...range, lane, aside, signal })) {
      if (!read.requestedAt) {
        Object.assign(read, momentsOfRequest(page));
        warehouse.moments.holdRead(page.requestedAt);
      }
      read.requests++;
      onAnswer?.();
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
        continue;
      }
      // What a last page brought is good, whatever may be said of what it did not bring.
      const end = finish
        ? await finish(read).catch(async error => {
            note(await store(page, {}, false), count);
            throw error;
          })
        : {};
      note(await store(page, end, !end.removed?.length), count);
      if (end.removed?.length) {
        const requestedAt = end.absentFrom ? Math.min(read.requestedAt, warehouse.moments.oldestAnswer() - 1) : read.requestedAt;
        note(await store({ requestedAt, documents: [] }, end, true), 0);
      }
    }
    return { ...read, changes };
  } finally {
    await storing?.catch(() => undefined);
    if (read.requestedAt) warehouse.moments.endRead(read.requestedAt);
  }
}

export const UNASKED: RequestMoments = { requestedAt: 0, readAt: 0, serviceAt: null };

/** The moments of a page or document, without what it brought. */
export const momentsOfRequest = ({ requestedAt, readAt, serviceAt }: RequestMoments): RequestMoments => ({
  requestedAt,
  readAt,
  serviceAt,
});

const sum = (a: Rejects, b: Rejects): Rejects => ({ rejected: a.rejected + b.rejected, undated: a.undated + b.undated });

const hasId = (document: unknown): document is { id: string } =>
  typeof document === 'object' && document !== null && 'id' in document && typeof document.id === 'string';
