import { dayNumberOf, formatDay } from '../../schema/instant.ts';
import { Problem } from '../service/problem.ts';
import { type Edit, shifts } from './users/edits.ts';
import type { SleepReport } from './users/reports.ts';
import { EPOCH } from './users/stages.ts';
import type { UserRecord } from './users/user-record.ts';
import { sleepDay } from './users/zone.ts';

type NapEdit = Extract<Edit, { kind: 'record-nap' }>;

/** What may be done to sleeps that are there. */
export type SleepEdit = Exclude<Edit, NapEdit>;

/** Many more would have no identifiers. */
const NAPS_A_DAY = 100;
/** What lasts longer is a night. */
const LONG = 3 * 3600;

/** A nap of so many minutes that ends at a moment. */
export function napUntil({ person: { userId }, zone }: UserRecord, moment: number, minutes: number, earlier: readonly Edit[]): NapEdit {
  const end = Math.floor(moment / EPOCH) * EPOCH;
  const day = formatDay(sleepDay(zone, end));
  const naps = earlier.filter(edit => edit.kind === 'record-nap' && edit.userId === userId && edit.day === day);
  if (naps.length >= NAPS_A_DAY) throw new Problem(409, `${day} has too many naps: move the clock to another day.`);
  return { kind: 'record-nap', userId, day, start: end - minutes * 60, end };
}

/** Throws 404 when there is no such sleep, 422 when it goes on, would end in the future, or is not what it would be called (2.12). */
export function checkEdit(record: UserRecord, edit: SleepEdit, now: number): void {
  const sleeps = record.sleepsOf(dayNumberOf(edit.day));
  const sleep = edit.kind === 'reanalyse-day' ? sleeps[0] : sleeps.find(({ id }) => id === edit.id);
  if (!sleep) throw new Problem(404, `No such sleep of ${edit.day} has reached the service.`);
  if (edit.kind === 'reanalyse-day') return;
  if (sleep.goesOn) throw wrong('id', 'The sleep goes on');
  if (edit.kind === 'retype-sleep') ensureType(record, { ...sleep, type: edit.type }, 'type');
  if (edit.kind !== 'edit-bedtime') return;
  if (sleep.end + edit.endShift > now) throw wrong('endShift', 'The sleep would end in the future');
  const { before, after } = shifts(edit, sleep.stages.length);
  const moved = { ...sleep, start: sleep.start - before * EPOCH, end: sleep.end + after * EPOCH };
  ensureType(record, moved, after ? 'endShift' : 'startShift');
}

/** @param field of the request, to be named where the sleep is not what it is called (2.12) */
function ensureType({ zone }: UserRecord, { type, start, end }: Pick<SleepReport, 'type' | 'start' | 'end'>, field: string): void {
  const endsLate = sleepDay(zone, end) !== zone.local(end).day;
  if (type === 'late_nap' && !endsLate) throw wrong(field, 'A late nap ends after 6 p.m.');
  if (type === 'sleep' && end - start > LONG) throw wrong(field, 'A sleep of this type lasts 15 minutes to 3 hours');
  if (type === 'sleep' && endsLate) throw wrong(field, 'What ends after 6 p.m. is a late nap');
  if (type === 'long_sleep' && end - start <= LONG) throw wrong(field, 'A long sleep lasts more than 3 hours');
}

const wrong = (field: string, msg: string) => new Problem(422, [{ loc: ['body', field], msg, type: 'value_error' }]);
