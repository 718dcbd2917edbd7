import { findDayNumber } from '../../../schema/instant.ts';
import type { Edit } from './edits.ts';
import type { Beats } from './heart-rate.ts';
import { writeId } from './identity.ts';
import { memoize } from './memoize.ts';
import { activityMinutes, activityStart, type Minutes } from './movement.ts';
import type { Period } from './periods.ts';
import { recordedNaps, type SleepReport, sleepReports } from './reports.ts';
import type { UserModel } from './user-model.ts';
import type { View } from './view.ts';
import { overlaps } from './zone.ts';

/**
 * A user's model with its edits, as far as it has reached the service: what documents are written from. `sleepsOf`, `momentsOf` and
 * `activityOf` give what is there of a day; the rest of the model is known whole, whatever was synced.
 */
export interface UserRecord extends Omit<UserModel, 'minutesOf' | 'beatsOf'> {
  view: View;
  sleepsOf(day: number): SleepReport[];
  beatsOf(day: number): Beats;
  /** The 24 hours of an activity (2.5), as far as they are there. */
  activityOf(day: number): Minutes;
  wholeActivityOf(day: number): Minutes;
  /** Whether what the ring recorded up to a moment of a day is there. */
  hasSynced(day: number, moment: number): boolean;
  /** Whether the ring has synced since the night that ends on a day was over, worn or not. */
  knowsMorning(day: number): boolean;
  /** Up to which moment of a day activity and stress are there. */
  uploadedOf(day: number): number;
  /** The last day of which anything can be there. */
  lastDay: number;
  /** The identifier of a document of a kind and a day. */
  idOf(kind: string, day: number, ordinal?: number): string;
}

/** The record of a model under a view. Edits of other people are left out. */
export function createUserRecord(model: UserModel, edits: readonly Edit[], view: View): UserRecord {
  const { person, zone, bedTimesOf } = model;
  const byDay = new Map<number | undefined, Edit[]>();
  for (const edit of edits) {
    if (edit.userId !== person.userId) continue;
    const day = findDayNumber(edit.day);
    byDay.set(day, [...(byDay.get(day) ?? []), edit]);
  }
  const hasSynced = (day: number, moment: number) => day <= view.wholeTo || moment <= view.synced;
  const uploadedOf = (day: number) => (day <= view.wholeTo ? Number.POSITIVE_INFINITY : view.uploaded);
  const naps = [...byDay].flatMap(([day, ofDay]) => (day === undefined ? [] : [...recordedNaps(model, day, ofDay).values()]));
  const napsIn = (day: number) => {
    const span = { start: activityStart(zone, day), end: activityStart(zone, day + 1) };
    return naps.filter(nap => overlaps(nap, span));
  };
  const withNaps = <T>(of: (day: number, naps: readonly Period[]) => T): ((day: number) => T) =>
    naps.length === 0 ? day => of(day, []) : memoize(8, day => of(day, napsIn(day)));
  const [minutesOf, beatsOf] = [withNaps(model.minutesOf), withNaps(model.beatsOf)];
  const wholeActivityOf = (day: number) => activityMinutes(minutesOf, day);
  const latest = Math.max(view.synced, view.uploaded);
  return {
    ...model,
    view,
    hasSynced,
    uploadedOf,
    // An evening nap counts for the day after.
    lastDay: Math.max(view.wholeTo, latest > 0 ? zone.local(latest).day + 1 : view.wholeTo),
    sleepsOf: memoize(8, day =>
      sleepReports(model, day, byDay.get(day) ?? [], day <= view.wholeTo ? Number.POSITIVE_INFINITY : view.synced),
    ),
    momentsOf: day => model.momentsOf(day).filter(({ end }) => hasSynced(day, end)),
    beatsOf,
    activityOf: day => cutMinutes(wholeActivityOf(day), uploadedOf(day)),
    wholeActivityOf,
    knowsMorning(day) {
      const { night, unworn } = bedTimesOf(day);
      return hasSynced(day, (unworn ?? night).end);
    },
    idOf: (kind, day, ordinal = 0) => writeId(person.seed, { person: person.index, kind, day, ordinal }),
  };
}

/** The minutes before a moment, in whole 5 minutes as activity classes are. */
function cutMinutes(minutes: Minutes, moment: number): Minutes {
  if (moment >= minutes.end) return minutes;
  const count = Math.max(0, Math.floor((moment - minutes.start) / 300) * 5);
  const [met, state, steps] = [minutes.met, minutes.state, minutes.steps];
  return { ...minutes, met: met.subarray(0, count), state: state.subarray(0, count), steps: steps.subarray(0, count) };
}
