import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { UNKNOWN } from '../movement.ts';
import { keyOf, type Sport } from '../person.ts';
import type { Training } from '../plan.ts';
import { Random, round } from '../random.ts';
import type { UserRecord } from '../user-record.ts';
import { kcalPerMinute } from './activity.ts';
import { omitSome } from './optional.ts';

/** The word that the wire has for each sport, and the metres that a MET minute above rest carries; none for what goes nowhere. */
const KINDS: Record<Sport, { activity: string; metersPerEffort: number | undefined; labels: readonly string[] }> = {
  run: { activity: 'running', metersPerEffort: 19, labels: ['Evening run', 'Intervals', 'Along the river'] },
  ride: { activity: 'cycling', metersPerEffort: 62, labels: ['Commute', 'Hills', 'Long ride'] },
  strength: { activity: 'strength_training', metersPerEffort: undefined, labels: ['Legs', 'Upper body'] },
  hike: { activity: 'hiking', metersPerEffort: 14, labels: ['In the woods', 'With friends'] },
};

/** Mean MET from which a workout is moderate, and hard. */
const [MODERATE, HARD] = [5, 8] as const;

/** The workouts of a day: the training that its MET samples and its heart rate show too. */
export function workout(record: UserRecord, day: number): WireDocument[] {
  const { person, zone, planOf } = record;
  const { training } = planOf(day);
  if (!training || !record.hasSynced(day, training.end)) return [];
  const random = new Random(keyOf(person, day, 'workout document'));
  const { activity, metersPerEffort, labels } = KINDS[training.sport];
  const { effort, mean } = effortOf(record, day, training);
  const document: WireDocument = {
    id: record.idOf('workout', day),
    activity,
    calories: round(effort * kcalPerMinute(person), 1),
    day: formatDay(day),
    distance: metersPerEffort === undefined ? null : round(effort * metersPerEffort, 1),
    end_datetime: zone.write(training.end),
    intensity: mean >= HARD ? 'hard' : mean >= MODERATE ? 'moderate' : 'easy',
    label: random.chance(0.3) ? random.pick(labels) : null,
    source: random.pick(SOURCES),
    start_datetime: zone.write(training.start),
  };
  return [omitSome(random, document, ['calories', 'distance', 'label'], 0.03)];
}

/** As often as they are usual. */
const SOURCES = ['workout_heart_rate', 'workout_heart_rate', 'confirmed', 'confirmed', 'autodetected', 'manual'] as const;

/** MET minutes above rest between its start and its end, and the mean MET. */
function effortOf({ wholeActivityOf }: UserRecord, day: number, { start, end }: Training): { effort: number; mean: number } {
  const minutes = wholeActivityOf(day);
  const placeOf = (moment: number) => Math.round((moment - minutes.start) / 60);
  const known = [...minutes.met.subarray(placeOf(start), placeOf(end))].filter(met => met !== UNKNOWN);
  const sum = known.reduce((total, met) => total + met, 0) / 10;
  return { effort: sum - known.length, mean: known.length ? sum / known.length : 0 };
}
