import type { ReleaseWhile } from '../../client/client.ts';
import type { DayRange } from '../../ledger/windows.ts';
import type { Pipeline } from '../pipeline.ts';
import { tokenGuard } from '../pipeline.ts';
import { ensureAnswers, momentsOfDays, momentsOfDocuments } from '../read-collection.ts';
import { type EventInWork, giveWay, type Step, storeAnswer } from './event-outcome.ts';

/** A range that was read to its end. Its moment is held until what is absent from it is dealt with. */
export interface RangeRead {
  range: Partial<DayRange>;
  /** When the first of its requests was sent: what is absent was so then. */
  requestedAt: number;
  documents: number;
}

interface Waiting {
  event: EventInWork;
  range: Partial<DayRange>;
  resolve(step: Step): void;
  reject(error: unknown): void;
}

/**
 * Reads ranges for events whose document cannot be asked for. One read serves all that wait for that user, token and type when it begins;
 * those that come meanwhile wait for the next, for it may have passed what they announce.
 * @param finishAbsent says what becomes of an event whose document a complete read did not bring
 */
export function createRangeReads(
  pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'tokens'>,
  finishAbsent: (event: EventInWork, read: RangeRead) => Promise<Step>,
): (event: EventInWork, range: Partial<DayRange>) => Promise<Step> {
  const { client, warehouse, tokens } = pipeline;
  const lines = new Map<string, Waiting[]>();

  async function work(key: string, line: Waiting[]): Promise<void> {
    while (line.length) {
      const { together, range } = takeTogether(line);
      await readOnce(together, range).catch(error => {
        for (const { reject } of together) reject(error);
      });
    }
    lines.delete(key);
  }

  /** Each event is settled as soon as its document has come; what an event cannot store is its own trouble. */
  async function readOnce(together: readonly Waiting[], range: Partial<DayRange>): Promise<void> {
    const { userId, resource, token } = together[0]!.event;
    const absent = new Map<string, Waiting[]>();
    for (const one of together) {
      const id = one.event.event.object_id;
      absent.set(id, [...(absent.get(id) ?? []), one]);
    }
    const read: RangeRead = { range, requestedAt: 0, documents: 0 };
    // Once begun it goes on to its end: where few are answered at a time it would begin again for ever.
    const releaseWhile: ReleaseWhile = wait => (read.requestedAt ? wait() : giveWay(wait));
    try {
      const dayStarts = new Set<number>();
      for await (const page of client.documents(resource, { token, ...range, lane: 'live', releaseWhile })) {
        if (!read.requestedAt) {
          read.requestedAt = page.requestedAt;
          warehouse.clock.leaseRead(page.requestedAt);
        }
        for (const day of momentsOfDocuments(page.documents)) dayStarts.add(day);
        if (page.nextToken === null) ensureAnswers(page.route, dayStarts, momentsOfDays(range));
        const { requestedAt } = page;
        read.documents += page.documents.length;
        const found: Promise<void>[] = [];
        const rest = page.documents.splice(0).filter(document => {
          const id = idOf(document);
          const waiting = absent.get(id);
          absent.delete(id);
          if (waiting) found.push(storeFor(waiting, { requestedAt, document }));
          return !waiting;
        });
        if (rest.length)
          await warehouse.storeDocuments(
            { userId, resource, requestedAt, documents: rest },
            { lane: 'live', guard: tokenGuard(tokens, userId, token) },
          );
        await Promise.all(found);
      }
      const left = [...absent.values()].flat();
      await Promise.all(left.map(({ event, resolve, reject }) => finishAbsent(event, read).then(resolve, reject)));
    } finally {
      if (read.requestedAt) warehouse.clock.releaseRead(read.requestedAt);
    }
  }

  async function storeFor(waiting: readonly Waiting[], answer: { requestedAt: number; document: unknown }): Promise<void> {
    try {
      const events = waiting.map(({ event }) => event);
      const finished = await storeAnswer(pipeline, answer, events);
      for (const { resolve } of waiting) resolve({ finished });
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  return (event, range) =>
    new Promise((resolve, reject) => {
      const key = `${event.userId}\n${event.resource.name}\n${event.token}`;
      const waiting = { event, range, resolve, reject };
      const line = lines.get(key);
      if (line) line.push(waiting);
      else {
        const opened = [waiting];
        lines.set(key, opened);
        void work(key, opened);
      }
    });
}

/** Takes the first out of the line and all whose ranges join with its own: an old document must not make a read of years. */
function takeTogether(line: Waiting[]): { together: Waiting[]; range: Partial<DayRange> } {
  const first = line.shift()!;
  const together = [first];
  let range = first.range;
  for (let taken = true; taken; ) {
    taken = false;
    for (let i = 0; i < line.length; ) {
      const joined = findHull(range, line[i]!.range);
      if (joined) {
        range = joined;
        together.push(...line.splice(i, 1));
        taken = true;
      } else i++;
    }
  }
  return { together, range };
}

/** Both ranges as one; undefined when there is a gap between them. Without days it is the whole collection. */
function findHull(a: Partial<DayRange>, b: Partial<DayRange>): Partial<DayRange> | undefined {
  if (!a.from || !a.to || !b.from || !b.to) return {};
  if (a.from > b.to || b.from > a.to) return undefined;
  return { from: [a.from, b.from].sort()[0]!, to: [a.to, b.to].sort()[1]! };
}

function idOf(document: unknown): string {
  return typeof document === 'object' && document !== null && 'id' in document && typeof document.id === 'string' ? document.id : '';
}
