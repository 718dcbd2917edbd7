import { findDayNumber, formatDay } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import type { Behaviour } from './behaviour.ts';
import type { Edit } from './users/edits.ts';
import { restAround } from './users/illness.ts';
import { Random } from './users/random.ts';
import { mainSleep, type SleepReport } from './users/reports.ts';
import type { UserModel } from './users/user-model.ts';
import { createUserRecord, type UserRecord } from './users/user-record.ts';
import type { View } from './users/view.ts';

/** What came of a time: what is visible at its end, and the edits that were made in it. */
export interface Step {
  view: View;
  edits: Edit[];
}

/** What a sync at a moment brings. What has reached the service once is known for good. */
export function withSync(view: View, moment: number): View {
  return { ...view, synced: Math.max(view.synced, moment), uploaded: Math.max(view.uploaded, moment) };
}

/** What happens to a user from after one moment to another: the ring syncs, data come in the background, things are edited. */
export function stepUntil(model: UserModel, behaviour: Behaviour, { view, edits }: Step, from: number, to: number): Step {
  const syncs = behaviour.syncs(from, to).map(moment => ({ moment, isSync: true }));
  const looks = behaviour.editMoments(from, to).map(moment => ({ moment, isSync: false }));
  const made: Edit[] = [];
  let seen = view;
  for (const { moment, isSync } of [...syncs, ...looks].sort((a, b) => a.moment - b.moment)) {
    if (isSync) {
      // With the ring's sync comes all that it has.
      seen = withSync(seen, moment);
    } else {
      const edit = findOwnEdit(createUserRecord(model, [...edits, ...made], seen), moment);
      if (edit) made.push(edit);
    }
  }
  const upload = behaviour.lastUpload(from, to);
  if (upload !== undefined && upload > seen.uploaded) seen = { ...seen, uploaded: upload };
  return { view: seen, edits: made };
}

/** Where documents may differ between a record and what came after it: the days, and the resources. */
export function findReach(
  { person, zone, view }: UserRecord,
  after: Step,
  resources: readonly Resource[],
): { days: Iterable<number>; resources: readonly Resource[] } {
  const days = new Set<number>();
  const add = (first: number, last: number) => {
    for (let day = first; day <= last; day++) days.add(day);
  };
  const dayOf = (moment: number) => Math.max(view.wholeTo + 1, moment > 0 ? zone.local(moment).day : Number.NEGATIVE_INFINITY);
  const hasSynced = after.view.synced !== view.synced;
  // An evening nap counts for the day after; an activity day ends at 4 a.m. of the day after.
  if (hasSynced) add(dayOf(view.synced), zone.local(after.view.synced).day + 1);
  // A rest mode that goes on, or has ended this morning, is of the day on which it began.
  for (const day of hasSynced ? [dayOf(view.synced) - 1, dayOf(view.synced)] : []) {
    const rest = restAround(person, day);
    if (rest) days.add(rest.first);
  }
  if (after.view.uploaded !== view.uploaded) add(dayOf(view.uploaded) - 1, zone.local(after.view.uploaded).day);
  for (const edit of after.edits) {
    const number = findDayNumber(edit.day);
    if (number !== undefined) days.add(number);
    // The activity of the day before may still last.
    if (edit.kind === 'record-nap') add(zone.local(edit.start).day - 1, zone.local(edit.end).day);
  }
  const all = hasSynced || after.edits.length > 0;
  return {
    days: [...days].sort((a, b) => a - b),
    resources: all ? resources : resources.filter(({ comesInBackground }) => comesInBackground),
  };
}

/** What a user changes who looks at the app at a moment: last night's sleep, or a nap of today. Undefined: nothing. */
function findOwnEdit(record: UserRecord, moment: number): Edit | undefined {
  const { person, zone } = record;
  const random = new Random([person.seed, person.index, moment, 'edit']);
  const today = zone.local(moment).day;
  const night = mainSleep(record.sleepsOf(today));
  // An evening nap counts for tomorrow.
  const naps = [today, today + 1].flatMap(day => record.sleepsOf(day)).filter(({ type }) => ['sleep', 'late_nap', 'rest'].includes(type));
  const nap = naps.at(-1);
  if (nap && random.chance(0.7)) return editNap(record, random, nap);
  return night && editNight(record, random, night);
}

const aboutSleep = ({ person }: UserRecord, { day, id }: SleepReport) => ({ userId: person.userId, day: formatDay(day), id });

function editNap(record: UserRecord, random: Random, nap: SleepReport): Edit {
  if (random.chance(0.4)) return { kind: 'delete-sleep', ...aboutSleep(record, nap) };
  const confirmed = nap.type !== 'rest';
  return { kind: 'retype-sleep', ...aboutSleep(record, nap), type: confirmed ? random.pick(['rest', 'deleted']) : 'sleep' };
}

function editNight(record: UserRecord, random: Random, night: SleepReport): Edit {
  if (random.chance(0.08)) return { kind: 'delete-sleep', ...aboutSleep(record, night) };
  if (random.chance(0.08)) return { kind: 'retype-sleep', ...aboutSleep(record, night), type: 'deleted' };
  if (random.chance(0.25)) return { kind: 'reanalyse-day', userId: record.person.userId, day: formatDay(night.day) };
  // Waking is moved back only: nobody sleeps in the future.
  const [startShift, endShift] = [300 * random.integer(-6, 6), -30 * random.integer(1, 40)];
  return { kind: 'edit-bedtime', ...aboutSleep(record, night), startShift, endShift };
}
