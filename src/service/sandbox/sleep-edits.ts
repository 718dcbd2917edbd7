import { findDayNumber, formatDay } from '../../../schema/instant.ts';
import type { Diary } from '../people/diary.ts';
import type { Edit } from '../people/edits.ts';
import { sleepDay } from '../people/periods.ts';
import { EPOCH } from '../people/stages.ts';
import { Problem } from '../problem.ts';

type NapEdit = Extract<Edit, { kind: 'record-nap' }>;

/** What may be done to sleeps that are there. */
export type SleepEdit = Exclude<Edit, NapEdit>;

/** Many more would have no identifiers. */
const NAPS_A_DAY = 100;

/** A nap of so many minutes that ends at a moment. */
export function napUntil({ person: { userId }, zone }: Diary, moment: number, minutes: number, earlier: readonly Edit[]): NapEdit {
  const end = Math.floor(moment / EPOCH) * EPOCH;
  const day = formatDay(sleepDay(zone, end));
  const naps = earlier.filter(edit => edit.kind === 'record-nap' && edit.userId === userId && edit.day === day);
  if (naps.length >= NAPS_A_DAY) throw new Problem(409, `${day} has too many naps: move the clock to another day.`);
  return { kind: 'record-nap', userId, day, start: end - minutes * 60, end };
}

/** Throws 404 when there is no such sleep, 422 when it would end in the future. */
export function checkEdit(diary: Diary, edit: SleepEdit, now: number): void {
  const sleeps = diary.sleepsOf(findDayNumber(edit.day)!);
  const sleep = edit.kind === 'reanalyse-day' ? sleeps[0] : sleeps.find(({ id }) => id === edit.id);
  if (!sleep) throw new Problem(404, `No such sleep of ${edit.day} has reached the service.`);
  if (edit.kind === 'edit-bedtime' && sleep.end + edit.endShift > now)
    throw new Problem(422, [{ loc: ['body', 'endShift'], msg: 'The sleep would end in the future', type: 'value_error' }]);
}
