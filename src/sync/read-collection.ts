import { addDays, dayNumberOf, findDayNumber, MICROS_PER_DAY, type MomentRange } from '../../schema/instant.ts';
import { findDayOf, findIdOf, type Resource } from '../../schema/resource.ts';
import type { Page, ReleaseWhile, RequestLane, RequestTimes } from '../client/client.ts';
import { ServiceError } from '../client/error.ts';
import type { DayRange, Rejects } from '../ledger/windows.ts';
import type { RequestScope } from '../warehouse/request-clock.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import type { KnownDocument, WriteResult } from '../warehouse/write-result.ts';
import { type KnownAnswer, nameAnswer } from './known-documents.ts';
import { type Pipeline, tokenGuard } from './pipeline.ts';

/** How documents are read from the service into the warehouse. */
export interface ReadOptions {
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
  /** Called once the last of the pages has come. */
  finish?(read: CompleteRead): Promise<ReadEnd>;
}

/** What is committed with the last of the pages. */
export interface ReadEnd {
  /** Documents that are gone. */
  removed?: readonly string[];
  /** The days from which they are absent, where nothing else says that they are gone. */
  absentFrom?: DayRange | undefined;
  ledger?: (stored: StoredAnswer) => readonly LedgerEntry[];
  /** The days that are settled now; undefined where documents belong to no day. */
  days?: DayRange | undefined;
}

type PageToStore = Pick<Page, 'requestedAt' | 'documents'> & { known?: readonly KnownDocument[] };

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

/** How many days of documents are planned, and looked through for an event, at once: what a service leaves out of more nobody knows. */
export const LONGEST_RANGE_DAYS = 90;

/** Days that two parts have in common: a service may leave out the last day, or file a night under the next one. */
const OVERLAP_DAYS = 2;

/** A range in parts that a backfill would ask for too, from the newest on. */
export function* partsOfRange({ from, to }: Partial<DayRange>): Generator<Partial<DayRange>> {
  if (!from || !to) return yield {};
  for (let last = to; ; last = addDays(last, OVERLAP_DAYS - LONGEST_RANGE_DAYS)) {
    const first = addDays(last, 1 - LONGEST_RANGE_DAYS);
    yield { from: first > from ? first : from, to: last };
    if (first <= from) return;
  }
}

/** The last day of what is left to be read of a range, once all since this day has been. */
export const lastDayBefore = (readFrom: string): string => addDays(readFrom, OVERLAP_DAYS - 1);

/** Of pages that wait, unparsed, for the rest of a known answer. */
const MOST_HELD_BYTES = 16 * 1024 * 1024;

/**
 * Reads a collection to its end and stores each page while the next one is on its way. Documents that `finish` says are gone count
 * as absent at the moment of the first request, which is held until they are committed; where nothing but their absence says so, before any
 * answer that is still under way: it may bring them under another day.
 * @throws ServiceError, also where all that came is of another range; the pages that came before it are stored by then
 */
export function readCollection(resource: Resource, userId: string, range: Partial<DayRange>, options: ReadOptions): Promise<CompleteRead> {
  return new CollectionReading(resource, userId, range, options).read();
}

class CollectionReading {
  readonly #resource: Resource;
  readonly #userId: string;
  readonly #range: Partial<DayRange>;
  readonly #moments: MomentRange | undefined;
  readonly #options: ReadOptions;
  readonly #guard: () => void;
  readonly #ids = new Set<string>();
  readonly #read = { ...UNASKED, requests: 0, documents: 0, ids: this.#ids };
  readonly #dayStarts = new Set<number>();
  readonly #rejects: Rejects = { rejected: 0, undated: 0 };
  readonly #digests: (string | undefined)[] = [];
  readonly #came: KnownDocument[] = [];
  /** The one page that waits for its commit while another is on its way. */
  #storing: Promise<void> | undefined;

  constructor(resource: Resource, userId: string, range: Partial<DayRange>, options: ReadOptions) {
    this.#resource = resource;
    this.#userId = userId;
    this.#range = range;
    this.#moments = momentsOfDays(range);
    this.#options = options;
    this.#guard = tokenGuard(options.pipeline.tokens, userId, options.token);
  }

  read(): Promise<CompleteRead> {
    return this.#options.pipeline.warehouse.clock.withRequest(async request => {
      try {
        await this.#readPages(request);
        return this.#read;
      } finally {
        await this.#storing?.catch(() => undefined);
      }
    });
  }

  async #readPages(request: RequestScope): Promise<void> {
    const { pipeline, token, signal, lane = 'bulk', releaseWhile, known, onAnswer } = this.#options;
    const query = { token, ...this.#range, lane, releaseWhile, signal, known: known?.pages ?? [] };
    /** Pages that came before, while none of another kind has come. */
    const waiting: Page[] = [];
    let heldBytes = 0;
    for await (const page of pipeline.client.documents(this.#resource, query)) {
      if (!this.#read.requests) Object.assign(this.#read, momentsOfRequest(page));
      request.beginRead(page.requestedAt);
      this.#read.requests++;
      onAnswer?.();
      this.#digests.push(page.digest);
      request.keep(page.requestedAt);
      waiting.push(page);
      heldBytes += page.bytes ?? 0;
      if (known && heldBytes <= MOST_HELD_BYTES && waiting.length === this.#read.requests && waiting.every(({ parse }) => parse)) {
        if (page.nextToken !== null || (await this.#takeKnown(known))) continue;
      }
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        await this.#take(next);
        request.drop(next.requestedAt);
      }
    }
  }

  /** Whether the answer is the one that came before, and what it brought is still what is stored. */
  async #takeKnown({ documents }: KnownAnswer): Promise<boolean> {
    this.#read.documents = documents.length;
    for (const { id } of documents) this.#ids.add(id);
    const end = await this.#findEnd();
    // Which of them came with which page is not known: none of them was sent before the first.
    const counts = await this.#store({ requestedAt: this.#read.requestedAt, documents: [], known: documents }, end, !end.removed?.length);
    if (counts.differing) {
      this.#read.documents = 0;
      this.#ids.clear();
      return false;
    }
    this.#note(counts, documents.length);
    await this.#remove(end);
    return true;
  }

  async #take(page: Page): Promise<void> {
    if (page.parse) page.documents = page.parse();
    const count = page.documents.length;
    this.#read.documents += count;
    for (const document of page.documents) {
      const id = findIdOf(this.#resource, document);
      if (id !== undefined) this.#ids.add(id);
    }
    for (const day of momentsOfDocuments(this.#resource, page.documents)) this.#dayStarts.add(day);
    if (page.nextToken === null) ensureAnswers(page.route, this.#dayStarts, this.#moments);
    await this.#storing;
    if (page.nextToken !== null) {
      this.#storing = this.#store(page).then(counts => this.#note(counts, count));
      // Heard of when the next page has come, or at the end.
      this.#storing.catch(() => undefined);
      return;
    }
    // What a last page brought is good, whatever may be said of what it did not bring.
    const end = await this.#findEnd().catch(async error => {
      this.#note(await this.#store(page), count);
      throw error;
    });
    this.#note(await this.#store(page, end, !end.removed?.length), count);
    await this.#remove(end);
  }

  async #findEnd(): Promise<ReadEnd> {
    return (await this.#options.finish?.(this.#read)) ?? {};
  }

  /** What the end says is gone, after what the last page brought. */
  async #remove(end: ReadEnd): Promise<void> {
    if (!end.removed?.length) return;
    this.#note(await this.#store({ requestedAt: this.#read.requestedAt, documents: [] }, end, true), 0);
  }

  /**
   * The documents are taken out of the page, and no frame that waits for their commit has them: as they came they are large.
   * @param isLast nothing of the reading comes after it
   */
  #store(page: PageToStore, end: ReadEnd = {}, isLast = false): Promise<WriteResult> {
    const { pipeline, lane = 'bulk' } = this.#options;
    const { removed, absentFrom, days } = end;
    const ledger = isLast ? end.ledger : undefined;
    return pipeline.warehouse.storeDocuments(
      {
        userId: this.#userId,
        resource: this.#resource,
        requestedAt: page.requestedAt,
        documents: page.documents.splice(0),
        known: page.known,
        range: this.#moments,
        ...(removed && isLast ? { removed, absentFrom } : {}),
        ...(ledger ? { completes: { since: this.#read.requestedAt, days } } : {}),
      },
      { lane, guard: this.#guard, ...(ledger && { ledger: counts => this.#entriesOf(ledger, counts) }) },
    );
  }

  #entriesOf(ledger: NonNullable<ReadEnd['ledger']>, counts: WriteResult): readonly LedgerEntry[] {
    if (counts.differing) return [];
    const pages = nameAnswer(this.#options.pipeline.client, this.#digests, [...this.#came, ...counts.came], this.#read.documents);
    return ledger({ rejects: sum(this.#rejects, counts), removed: counts.removed, pages });
  }

  #note(counts: WriteResult, documents: number): void {
    Object.assign(this.#rejects, sum(this.#rejects, counts));
    for (const document of counts.came) this.#came.push(document);
    this.#options.onStored?.(counts, documents);
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
    : { startAt: dayNumberOf(from) * MICROS_PER_DAY, endAt: (dayNumberOf(to) + 1) * MICROS_PER_DAY };

/** When the days of these documents begin. */
export function* momentsOfDocuments(
  resource: Pick<Resource, 'dayField' | 'identifiedBy'>,
  documents: Iterable<unknown>,
): Generator<number> {
  for (const document of documents) {
    const number = findDayNumber(findDayOf(resource, document) ?? '');
    if (number !== undefined) yield number * MICROS_PER_DAY;
  }
}
