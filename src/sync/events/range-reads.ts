import type { Page, ReleaseWhile } from '../../client/client.ts';
import type { DayRange } from '../../ledger/windows.ts';
import { type Pipeline, tokenGuard } from '../pipeline.ts';
import { ensureAnswers, momentsOfDays, momentsOfDocuments, partsOfRange } from '../read-collection.ts';
import { decide } from '../verdicts/outcome.ts';
import { type Answered, type EventInWork, type EventStep, giveWay, storeAnswer, type Tries } from './event-outcome.ts';

/** An event's range that was read to its end. Its moment is held until what is absent from it is dealt with. */
export interface RangeRead {
  range: Partial<DayRange>;
  /** When the first of its requests was sent: what is absent was so then. */
  requestedAt: number;
  /** How many came with each of the parts that it was read in. */
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
    for (let group = takeTogether(line); group; group = takeTogether(line)) await this.#readOnce(group);
    this.#lines.delete(key);
  }

  /**
   * Each event has its outcome as soon as its document has come, or its own days have been read; what an event cannot store is its own
   * trouble. Where the service asks to wait for long, the days that were read are not read again.
   */
  async #readOnce({ together, range }: Group): Promise<void> {
    const absent = new Map<string, Waiting[]>();
    for (const one of together) {
      const { object_id: id } = one.event.event;
      absent.set(id, [...(absent.get(id) ?? []), one]);
    }
    const parts: RangePart[] = [];
    try {
      await this.#readParts(together[0].event, range, absent, parts);
    } catch (error) {
      const decision = decide(error, 0);
      const reached = parts.at(-1)?.range.from;
      for (const { event, range, resolve, reject } of [...absent.values()].flat()) {
        const isBegun = reached !== undefined && range.to !== undefined && reached <= range.to;
        if (decision.do === 'wait' && isBegun) resolve({ again: decision.ms, tries: noteReached(event.tries, reached) });
        else reject(error);
      }
    }
  }

  /** @param absent those whose document has not come and whose days have not all been read */
  #readParts(first: EventInWork, range: Partial<DayRange>, absent: Map<string, Waiting[]>, parts: RangePart[]): Promise<void> {
    const { client, warehouse } = this.#pipeline;
    const { resource, token } = first;
    let requestedAt = 0;
    // Once begun it waits where it is, but for a minute at the most.
    const releaseWhile: ReleaseWhile = wait => (requestedAt ? wait() : giveWay(wait));
    return warehouse.clock.withRequest(async request => {
      for (const part of partsOfRange(range)) {
        if (!absent.size) return;
        const came: RangePart = { range: part, documents: 0 };
        const dayStarts = new Set<number>();
        for await (const page of client.documents(resource, { token, ...part, lane: 'live', releaseWhile })) {
          requestedAt ||= page.requestedAt;
          request.beginRead(page.requestedAt);
          for (const day of momentsOfDocuments(resource, page.documents)) dayStarts.add(day);
          if (page.nextToken === null) ensureAnswers(page.route, dayStarts, momentsOfDays(part));
          came.documents += page.documents.length;
          await this.#storePage(page, first, absent);
        }
        parts.push(came);
        const read = takeRead(absent, part);
        await Promise.all(
          read.map(({ event, range, resolve, reject }) =>
            this.#finishAbsent(event, { range, requestedAt, parts: parts.filter(one => overlaps(one.range, range)) }).then(resolve, reject),
          ),
        );
      }
    });
  }

  /** Takes out of `absent` those whose document the page has brought. */
  async #storePage(page: Page, { userId, resource, token }: EventInWork, absent: Map<string, Waiting[]>): Promise<void> {
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

  async #storeFor(waiting: readonly Waiting[], answer: Answered): Promise<void> {
    const [first, ...others] = waiting;
    if (!first) return;
    try {
      const finished = await storeAnswer(this.#pipeline, answer, [first.event, ...others.map(({ event }) => event)]);
      for (const { resolve } of waiting) resolve({ finished });
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}

/** What was read before counts: the days about its document are read twice, with those of others. */
const noteReached = (tries: Tries, reached: string): Tries => ({
  ...tries,
  readFrom: tries.readFrom !== undefined && tries.readFrom < reached ? tries.readFrom : reached,
});

/** Takes out those whose days have all been read; parts are read from the newest on. */
function takeRead(absent: Map<string, Waiting[]>, { from }: Partial<DayRange>): Waiting[] {
  const isRead = ({ range }: Waiting) => !from || !range.from || range.from >= from;
  const all = [...absent];
  absent.clear();
  for (const [id, waiting] of all) {
    const left = waiting.filter(one => !isRead(one));
    if (left.length) absent.set(id, left);
  }
  return all.flatMap(([, waiting]) => waiting.filter(isRead));
}

/**
 * Takes the first out of the line and all whose ranges join with its own: an old document must not make a read of years. One that has failed
 * is read for its own days alone: it may have been the days of others that the service did not answer for.
 */
function takeTogether(line: Waiting[]): Group | undefined {
  const first = line.shift();
  if (!first) return undefined;
  const together: [Waiting, ...Waiting[]] = [first];
  let { range } = first;
  for (;;) {
    const index = line.findIndex(other => mayJoin(first, other) && findHull(range, other.range));
    const [joined] = index < 0 ? [] : line.splice(index, 1);
    if (!joined) return { together, range };
    together.push(joined);
    range = findHull(range, joined.range) ?? range;
  }
}

const mayJoin = (one: Waiting, other: Waiting) =>
  (!one.event.tries.failures && !other.event.tries.failures) || (one.range.from === other.range.from && one.range.to === other.range.to);

const overlaps = (a: Partial<DayRange>, b: Partial<DayRange>) => !a.from || !a.to || !b.from || !b.to || (a.from <= b.to && b.from <= a.to);

/** Both ranges as one; undefined when there is a gap between them. Without days it is the whole collection. */
function findHull(a: Partial<DayRange>, b: Partial<DayRange>): Partial<DayRange> | undefined {
  if (!a.from || !a.to || !b.from || !b.to) return {};
  if (!overlaps(a, b)) return undefined;
  return { from: a.from < b.from ? a.from : b.from, to: a.to > b.to ? a.to : b.to };
}

function idOf(document: unknown): string {
  return typeof document === 'object' && document !== null && 'id' in document && typeof document.id === 'string' ? document.id : '';
}
