import { addDays } from '../../../schema/instant.ts';
import type { Page, ReleaseWhile } from '../../client/client.ts';
import type { DayRange } from '../../ledger/windows.ts';
import { type Pipeline, tokenGuard } from '../pipeline.ts';
import { ensureAnswers, LONGEST_RANGE_DAYS, momentsOfDays, momentsOfDocuments } from '../read-collection.ts';
import { type Answered, type EventInWork, type EventStep, giveWay, storeAnswer } from './event-outcome.ts';

/** A range that was read to its end. Its moment is held until what is absent from it is dealt with. */
export interface RangeRead {
  range: Partial<DayRange>;
  /** When the first of its requests was sent: what is absent was so then. */
  requestedAt: number;
  /** How many came with each of its parts. */
  parts: readonly RangePart[];
}

export interface RangePart {
  range: Partial<DayRange>;
  documents: number;
}

interface Waiting {
  event: EventInWork;
  range: Partial<DayRange>;
  resolve(step: EventStep): void;
  reject(error: unknown): void;
}

/** Events whose document one read looks for. */
interface Group {
  together: readonly [Waiting, ...Waiting[]];
  range: Partial<DayRange>;
}

/**
 * Reads ranges for events whose document cannot be asked for. One read serves all that wait for that user, token and type when it begins;
 * those that come meanwhile wait for the next, for it may have passed what they announce.
 */
export class RangeReads {
  readonly #pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'tokens'>;
  readonly #finishAbsent: (event: EventInWork, read: RangeRead) => Promise<EventStep>;
  readonly #lines = new Map<string, Waiting[]>();

  /** @param finishAbsent says what becomes of an event whose document a complete read did not bring */
  constructor(
    pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'tokens'>,
    finishAbsent: (event: EventInWork, read: RangeRead) => Promise<EventStep>,
  ) {
    this.#pipeline = pipeline;
    this.#finishAbsent = finishAbsent;
  }

  read(event: EventInWork, range: Partial<DayRange>): Promise<EventStep> {
    return new Promise((resolve, reject) => {
      const key = `${event.userId}\n${event.resource.name}\n${event.token}`;
      const waiting = { event, range, resolve, reject };
      const line = this.#lines.get(key);
      if (line) line.push(waiting);
      else {
        const opened = [waiting];
        this.#lines.set(key, opened);
        void this.#work(key, opened);
      }
    });
  }

  async #work(key: string, line: Waiting[]): Promise<void> {
    for (let group = takeTogether(line); group; group = takeTogether(line)) {
      const { together } = group;
      await this.#readOnce(group).catch(error => {
        for (const { reject } of together) reject(error);
      });
    }
    this.#lines.delete(key);
  }

  /** Each event has its outcome as soon as its document has come; what an event cannot store is its own trouble. */
  #readOnce({ together, range }: Group): Promise<void> {
    const { client, warehouse } = this.#pipeline;
    const [{ event: first }] = together;
    const absent = new Map<string, [Waiting, ...Waiting[]]>();
    for (const one of together) {
      const same = absent.get(one.event.event.object_id);
      if (same) same.push(one);
      else absent.set(one.event.event.object_id, [one]);
    }
    const parts: RangePart[] = [];
    const read: RangeRead = { range, requestedAt: 0, parts };
    // Once begun it goes on to its end, for it would begin again at its first part; a wait of more than a minute ends it all the same.
    const releaseWhile: ReleaseWhile = wait => (read.requestedAt ? wait() : giveWay(wait));
    return warehouse.clock.withRequest(async request => {
      for (const part of partsOf(range)) {
        const came: RangePart = { range: part, documents: 0 };
        parts.push(came);
        const dayStarts = new Set<number>();
        for await (const page of client.documents(first.resource, { token: first.token, ...part, lane: 'live', releaseWhile })) {
          read.requestedAt ||= page.requestedAt;
          request.beginRead(page.requestedAt);
          for (const day of momentsOfDocuments(first.resource, page.documents)) dayStarts.add(day);
          if (page.nextToken === null) ensureAnswers(page.route, dayStarts, momentsOfDays(part));
          came.documents += page.documents.length;
          await this.#storePage(page, first, absent);
        }
      }
      const left = [...absent.values()].flat();
      await Promise.all(left.map(({ event, resolve, reject }) => this.#finishAbsent(event, read).then(resolve, reject)));
    });
  }

  /** Takes out of `absent` those whose document the page has brought. */
  async #storePage(page: Page, { userId, resource, token }: EventInWork, absent: Map<string, [Waiting, ...Waiting[]]>): Promise<void> {
    const { warehouse, tokens } = this.#pipeline;
    const { requestedAt } = page;
    const found: Promise<void>[] = [];
    const documents = page.documents.splice(0).filter(document => {
      const id = idOf(document);
      const waiting = absent.get(id);
      absent.delete(id);
      if (waiting) found.push(this.#storeFor(waiting, { requestedAt, document }));
      return !waiting;
    });
    const options = { lane: 'live', guard: tokenGuard(tokens, userId, token) } as const;
    if (documents.length) await warehouse.storeDocuments({ userId, resource, requestedAt, documents }, options);
    await Promise.all(found);
  }

  async #storeFor([first, ...others]: readonly [Waiting, ...Waiting[]], answer: Answered): Promise<void> {
    const waiting = [first, ...others];
    try {
      const finished = await storeAnswer(this.#pipeline, answer, [first.event, ...others.map(({ event }) => event)]);
      for (const { resolve } of waiting) resolve({ finished });
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}

/** Days that two parts have in common: a service may leave out the last day, or file a night under the next one. */
const OVERLAP_DAYS = 2;

/** A range in parts that a backfill would ask for too. */
function* partsOf({ from, to }: Partial<DayRange>): Generator<Partial<DayRange>> {
  if (!from || !to) return yield {};
  for (let first = from; ; first = addDays(first, LONGEST_RANGE_DAYS - OVERLAP_DAYS)) {
    const last = addDays(first, LONGEST_RANGE_DAYS - 1);
    yield { from: first, to: last < to ? last : to };
    if (last >= to) return;
  }
}

/** Takes the first out of the line and all whose ranges join with its own: an old document must not make a read of years. */
function takeTogether(line: Waiting[]): Group | undefined {
  const first = line.shift();
  if (!first) return undefined;
  const together: [Waiting, ...Waiting[]] = [first];
  let { range } = first;
  for (;;) {
    const index = line.findIndex(other => findHull(range, other.range));
    const [joined] = index < 0 ? [] : line.splice(index, 1);
    if (!joined) return { together, range };
    together.push(joined);
    range = findHull(range, joined.range) ?? range;
  }
}

/** Both ranges as one; undefined when there is a gap between them. Without days it is the whole collection. */
function findHull(a: Partial<DayRange>, b: Partial<DayRange>): Partial<DayRange> | undefined {
  if (!a.from || !a.to || !b.from || !b.to) return {};
  if (a.from > b.to || b.from > a.to) return undefined;
  return { from: a.from < b.from ? a.from : b.from, to: a.to > b.to ? a.to : b.to };
}

function idOf(document: unknown): string {
  return typeof document === 'object' && document !== null && 'id' in document && typeof document.id === 'string' ? document.id : '';
}
