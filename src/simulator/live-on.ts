import { findDayNumber } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import type { Habits } from './habits.ts';
import { createDiary, type Diary } from './users/diary.ts';
import type { Edit } from './users/edits.ts';
import type { Life } from './users/recorded-life.ts';
import type { View } from './users/view.ts';
import { findWhim } from './whims.ts';

/** What came of a time: what is visible at its end, and the edits that were made in it. */
export interface Lived {
  view: View;
  edits: Edit[];
}

/** What a sync at a moment brings. What has reached the service once is known for good. */
export function withSync(view: View, moment: number): View {
  return { ...view, synced: Math.max(view.synced, moment), uploaded: Math.max(view.uploaded, moment) };
}

/** Lets somebody live from after one moment to another: the ring syncs, data come in the background, things are edited. */
export function liveOn(life: Life, habits: Habits, { view, edits }: Lived, from: number, to: number): Lived {
  const syncs = habits.syncs(from, to).map(moment => ({ moment, isSync: true }));
  const whims = habits.whims(from, to).map(moment => ({ moment, isSync: false }));
  const made: Edit[] = [];
  let seen = view;
  for (const { moment, isSync } of [...syncs, ...whims].sort((a, b) => a.moment - b.moment)) {
    if (isSync) {
      // With the ring's sync comes all that it has.
      seen = withSync(seen, moment);
    } else {
      const edit = findWhim(createDiary(life, [...edits, ...made], seen), moment);
      if (edit) made.push(edit);
    }
  }
  const upload = habits.lastUpload(from, to);
  if (upload !== undefined && upload > seen.uploaded) seen = { ...seen, uploaded: upload };
  return { view: seen, edits: made };
}

/** Where documents may differ between a diary and what came after it: the days, and the resources. */
export function findReach(
  { zone, view }: Diary,
  after: Lived,
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
