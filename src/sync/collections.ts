import type { Resource } from '../../schema/resource.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { personalInfo } from '../../schema/resources/personal-info.ts';
import { isAskable } from '../client/base-url.ts';
import { ServiceError } from '../client/error.ts';
import { type DayRange, daysOf, type EarlierReading, type Rejects, rangeOf, WIDENED_DAYS, type Window } from '../ledger/windows.ts';
import { quoteName } from '../warehouse/sql.ts';
import { readNames } from '../warehouse/stored-documents.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { DocumentChange, WriteResult } from '../warehouse/write-result.ts';
import { findRemoved, type MissingDocument } from './deletions/deletions.ts';
import { hasTrustedRoute } from './events/document-fetches.ts';
import { readStored, widened } from './known-documents.ts';
import { type CollectContext, type Collection, tokenGuard, type WindowResult } from './pipeline.ts';
import {
  type CompleteRead,
  LONGEST_RANGE_DAYS,
  momentsOfRequest,
  type ReadEnd,
  readCollection,
  type StoredAnswer,
  UNASKED,
} from './read-collection.ts';
import { readHeartRate } from './read-heart-rate.ts';
import { readPersonalInfo } from './read-personal-info.ts';
import { noteUnannounced } from './sweeps/missed-events.ts';

function documentCollection(resource: Resource): Collection {
  const { namedBy } = resource;
  return {
    name: resource.name,
    windowDays: windowDaysOf(resource),
    newestDay: resource.dated ? `max(${quoteName(resource.dayField)})::VARCHAR` : undefined,
    dayColumn: resource.dated ? resource.dayField : undefined,
    endColumn: resource.endsAt,
    dataType: resource.dataType,
    scope: resource.scope,
    collect: (window, context) => new DocumentWindow(resource, window, context).collect(window.earlier),
    ...(namedBy
      ? { namedBy: namedBy.resource, collectNotOffered: (window, context) => storeNamed(resource, namedBy, window.userId, context) }
      : {}),
  };
}

/** Of moments clients of the service report failures of more than 30 days: so many are asked for with those on each side. */
const LONGEST_MOMENTS_DAYS = 30 - 2 * WIDENED_DAYS;

function windowDaysOf({ dated, identifiedBy }: Resource): number | undefined {
  if (!dated) return undefined;
  return identifiedBy === undefined ? LONGEST_RANGE_DAYS : LONGEST_MOMENTS_DAYS;
}

export const heartRateCollection: Collection = {
  name: heartRate.name,
  // At most 30 days, as of all moments. These are whole weeks, as the brake looks at them.
  windowDays: 28,
  newestDay: 'max(ts)::DATE::VARCHAR',
  dayColumn: undefined,
  dataType: undefined,
  scope: heartRate.scope,
  collect: readHeartRate,
};

const personalInfoCollection: Collection = {
  name: personalInfo.name,
  scope: personalInfo.scope,
  windowDays: undefined,
  newestDay: undefined,
  dayColumn: undefined,
  dataType: undefined,
  collect: readPersonalInfo,
};

/** The collections of a list of resources, then heart rate, and who the person is where that may be kept. */
export function collectionsOf(resources: readonly Resource[], keepsPersonalInfo = false): Collection[] {
  return [...resources.map(documentCollection), heartRateCollection, ...(keepsPersonalInfo ? [personalInfoCollection] : [])];
}

/** Reads a window of documents: what the service has is stored, and what it has no more is removed. */
class DocumentWindow {
  readonly #resource: Resource;
  readonly #userId: string;
  readonly #days: DayRange | undefined;
  readonly #context: CollectContext;
  readonly #changes: DocumentChange[] = [];
  #removed: readonly MissingDocument[] = [];
  #removedCount = 0;
  #doubt: string | undefined;

  constructor(resource: Resource, window: Window, context: CollectContext) {
    const range = rangeOf(window);
    this.#resource = resource;
    this.#userId = window.userId;
    this.#days = range && daysOf(range);
    this.#context = context;
  }

  async collect(earlier: EarlierReading | undefined): Promise<WindowResult> {
    const { pipeline, token, signal, releaseWhile, onAnswer } = this.#context;
    const [resource, userId, days] = [this.#resource, this.#userId, this.#days];
    const foundAt = pipeline.warehouse.clock.next();
    const begunAt = pipeline.now() * 1000;
    const { ids: before, known } = await readStored(pipeline, { resource, userId, days }, earlier?.pages);
    try {
      const read = await readCollection(resource, userId, days ? widened(days) : {}, {
        known,
        pipeline,
        token,
        signal,
        releaseWhile,
        onAnswer,
        onStored: this.#onStored,
        finish: read => this.#finish(read, before, begunAt),
      });
      const reason = this.#doubt;
      if (reason) pipeline.log.warn({ account: userId, collection: resource.name, reason }, 'stored documents are missing at the service');
      return this.#resultOf(read);
    } finally {
      const found = { resource, userId, foundAt, changes: this.#changes, removed: this.#removed };
      // Also of a range that was read in part: what is stored is no news to the next attempt.
      if (this.#changes.length) await noteUnannounced(pipeline, found);
    }
  }

  readonly #onStored = (counts: WriteResult, documents: number): void => {
    const { expectsEvents, onStored } = this.#context;
    if (expectsEvents) this.#changes.push(...counts.changes);
    onStored(counts, documents);
  };

  /** What is gone once all has come, and the window's row in the ledger; neither where that is not believed. */
  async #finish(read: CompleteRead, before: readonly string[], begunAt: number): Promise<ReadEnd> {
    const [resource, userId, days] = [this.#resource, this.#userId, this.#days];
    const verdict = await findRemoved({ ...this.#context, resource, userId, days, read, begunAt, before, onStored: this.#onStored });
    if (verdict.suspicious !== undefined) {
      this.#doubt = verdict.suspicious;
      return {};
    }
    const { removed, absentFrom } = verdict;
    this.#removed = removed;
    const ledger = ({ rejects, removed: count, pages }: StoredAnswer) => {
      this.#removedCount = count;
      return this.#context.ledger({ ...this.#resultOf(read), pages, rejects });
    };
    return { removed: removed.map(({ id }) => id), absentFrom, ledger, days };
  }

  #resultOf(read: CompleteRead): WindowResult {
    const { requests, documents } = read;
    const outcome = this.#doubt ? { outcome: 'suspicious' as const, reason: this.#doubt } : { outcome: 'complete' as const };
    return { ...outcome, ...momentsOfRequest(read), requests, documents, removed: this.#removedCount };
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
      await client.document(resource, id, { token, signal, releaseWhile }, async answer => {
        result.requests++;
        onAnswer();
        if (!result.requestedAt) Object.assign(result, momentsOfRequest(answer));
        result.documents++;
        const { requestedAt, document } = answer;
        const counts = await warehouse.storeDocuments({ userId, resource, requestedAt, documents: [document] }, { guard });
        rejects.rejected += counts.rejected;
        rejects.undated += counts.undated;
        onStored(counts, 1);
      });
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
