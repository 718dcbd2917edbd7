import { addDays } from '../../../schema/instant.ts';
import type { ServiceClock } from '../../client/service-clock.ts';
import { wasEverStored } from '../../ledger/tombstones.ts';
import { findFirstDay } from '../../ledger/window-rows.ts';
import type { DayRange } from '../../ledger/windows.ts';
import { findDay, hasOthers } from '../../warehouse/stored-documents.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { Pipeline } from '../pipeline.ts';
import { lastDayBefore } from '../read-collection.ts';
import { lastDays } from '../runs/backfill.ts';
import { type EventInWork, type EventStep, noteEvents, parked, storeAnswer } from './event-outcome.ts';
import type { RangePart, RangeRead } from './range-reads.ts';

/** When an event whose document is not there is taken up again, in milliseconds. */
export interface AbsentDelays {
  /** It may not be readable yet: one after the other. */
  unreadable: readonly number[];
  /** Between two complete reads, the second of which removes a document that was stored. */
  confirm: number;
  /** The same for an event that says itself that it was deleted. */
  confirmDelete: number;
}

const RECENT_DAYS = 30;

/** A service may leave out the last day, or file a night under the next one. */
const WIDENED_DAYS = 2;

/** Days to look at: `near` about where the document is thought to be. */
interface Look {
  range: DayRange;
  near: DayRange;
}

/**
 * The days to be read for an event now; empty where there are no days. A look that was interrupted goes on with what is left of it. Once all
 * is read, those about where the document is thought to be are read once more: what was read long ago proves no absence.
 */
export async function findRange(
  warehouse: Warehouse,
  event: EventInWork,
  options: { clock: Pick<ServiceClock, 'now' | 'aheadMs'>; delays: Pick<AbsentDelays, 'unreadable'> },
): Promise<Partial<DayRange>> {
  if (!event.resource.dated) return {};
  const { range, near } = await findLook(warehouse, event, options);
  const { readFrom } = event.tries;
  if (readFrom === undefined) return range;
  return readFrom > range.from ? { from: range.from, to: lastDayBefore(readFrom) } : near;
}

/**
 * The days in which a document is looked for: those about its stored version, then far about it, for it may have moved; of one that is
 * not stored the last ones. At the last look, and before a deletion is believed, all that were ever to be read: nothing else may read the day on
 * which it is now.
 */
async function findLook(
  warehouse: Warehouse,
  { userId, resource, event, tries, isGone }: EventInWork,
  { clock, delays }: { clock: Pick<ServiceClock, 'now' | 'aheadMs'>; delays: Pick<AbsentDelays, 'unreadable'> },
): Promise<Look> {
  const day = await findDay(warehouse, resource, userId, event.object_id);
  const alone = (near: DayRange): Look => ({ range: near, near });
  if (day !== undefined && !tries.misses) return alone(about({ from: day, to: day }, WIDENED_DAYS));
  const recent = about(lastDays(RECENT_DAYS, clock), WIDENED_DAYS);
  const near = day === undefined ? recent : about({ from: day, to: day }, RECENT_DAYS);
  const isLastLook = event.event_type === 'delete' ? day !== undefined : tries.misses >= delays.unreadable.length;
  const first = isLastLook && !isGone ? await findFirstDay(warehouse, userId, resource.name) : undefined;
  // Of a day long before all others, which is a mistake, nothing lies between.
  if (first === undefined || near.to < first) return alone(near);
  const [from = near.from] = [near.from, addDays(first, -WIDENED_DAYS)].sort();
  const [to = near.to] = [near.to, recent.to].sort().reverse();
  return { range: { from, to }, near };
}

const about = ({ from, to }: DayRange, days: number): DayRange => ({ from: addDays(from, -days), to: addDays(to, days) });

/**
 * What becomes of an event whose document a complete read did not bring. An event that says so removes it after two such reads, any other
 * event only what was stored before and what the document's own route calls gone: under some other day it may still be there. An answer with nothing in it at all proves nothing: it may be the service that is ill.
 */
export async function finishAbsent(
  pipeline: Pick<Pipeline, 'warehouse' | 'tokens'>,
  event: EventInWork,
  read: RangeRead,
  delays: AbsentDelays,
): Promise<EventStep> {
  const { warehouse } = pipeline;
  const isDelete = event.event.event_type === 'delete';
  const { misses, readFrom } = event.tries;
  const { from } = read.range;
  if (from !== undefined && readFrom !== undefined && from < readFrom) return { again: 0, tries: { ...event.tries, readFrom: from } };
  const near = await findNear(warehouse, event, read);
  const counts = near.some(({ documents }) => documents > 0) || (isDelete && !(await hasNeighbours(warehouse, event, read.range)));
  const absences = event.tries.absences + (counts ? 1 : 0);
  const later = (ms: number): EventStep => ({
    again: ms,
    tries: { ...event.tries, misses: misses + 1, absences, readFrom: undefined, routeSaid: undefined },
  });
  if (isDelete) {
    // The first look counts for nothing where it was empty and others are stored beside: the second then is the first.
    if (misses === 0 || (misses === 1 && absences === 1)) return later(delays.confirmDelete);
  } else {
    const next = delays.unreadable[misses];
    if (next !== undefined) return later(next);
    const place = readFrom === undefined ? placeOf(read) : `in all days since ${readFrom}`;
    if (!(await wasKnown(warehouse, event))) return note(`found neither by its identifier nor ${place}`);
    if (absences && !event.isGone) return note(`not found ${place}, but it may have moved to other days: the next sweep decides`);
    if (absences === 1 && misses === delays.unreadable.length) return later(delays.confirm);
  }
  if (absences >= 2) {
    const { to } = read.range;
    // Under other days it may have been stored meanwhile, or be on its way: also since its own route called it gone.
    const absentFrom = from && to ? { from, to } : undefined;
    return { finished: await storeAnswer(pipeline, { requestedAt: read.requestedAt, absentFrom }, [event]) };
  }
  const place = placeOf(near.at(0) ?? read);
  return note(`not found by its identifier, and nothing at all came ${place}, which proves nothing: the next sweep decides`);

  async function note(reason: string): Promise<EventStep> {
    return { finished: await noteEvents(warehouse, [event], event.userId, parked(reason)) };
  }
}

const placeOf = ({ range: { from, to } }: Pick<RangeRead, 'range'>) => (from && to ? `from ${from} to ${to}` : 'in the whole collection');

/** The parts of a reading that would have brought the document under its stored day; of one that is not stored, all. */
async function findNear(warehouse: Warehouse, { userId, resource, event }: EventInWork, { parts }: RangeRead): Promise<RangePart[]> {
  const day = resource.dated ? await findDay(warehouse, resource, userId, event.object_id) : undefined;
  return parts.filter(({ range: { from, to } }) => !day || !from || !to || (from <= day && day <= to));
}

/** Whether other documents of the user and resource are stored right beside it; in the days that were read, where it is not stored itself. */
async function hasNeighbours(warehouse: Warehouse, { userId, resource, event }: EventInWork, read: Partial<DayRange>): Promise<boolean> {
  const day = resource.dated ? await findDay(warehouse, resource, userId, event.object_id) : undefined;
  const { from, to } = day === undefined ? read : about({ from: day, to: day }, WIDENED_DAYS);
  return hasOthers(warehouse, resource, userId, event.object_id, from && to ? { from, to } : undefined);
}

/** Whether the document is stored, or was and is known to be gone. */
function wasKnown(warehouse: Warehouse, { userId, resource, event }: EventInWork): Promise<boolean> {
  return wasEverStored(warehouse, resource.name, userId, event.object_id);
}
