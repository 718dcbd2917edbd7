import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { UNKNOWN, UNWORN } from '../movement.ts';
import { keyOf, type Person } from '../person.ts';
import { Random, round } from '../random.ts';
import { along, WEIGHTS, weigh } from '../scores.ts';
import { digits } from '../stages.ts';
import type { UserRecord } from '../user-record.ts';
import { omitSome } from './optional.ts';

/** Classes as the wire numbers them. */
const [NON_WEAR, REST, INACTIVE, LOW, MEDIUM, HIGH] = [0, 1, 2, 3, 4, 5] as const;

/** The class of 5 minutes by their mean MET, in tenths and times 5: below it, the next lower class. */
function classOf(sum: number): number {
  if (sum < 25) return NON_WEAR;
  if (sum < 53) return REST;
  if (sum < 75) return INACTIVE;
  if (sum < 150) return LOW;
  return sum < 300 ? MEDIUM : HIGH;
}

/** What the MET samples of a day come to. */
interface Sums {
  classes: Uint8Array;
  /** Seconds, and tenths of MET minutes, by class. */
  seconds: number[];
  metMinutes: number[];
  /** MET minutes above rest while moving: what active calories and the distance are made of. */
  effort: number;
  average: number;
  /** MET minutes with the minutes without the ring counted as rest: what total calories are made of. */
  spent: number;
  steps: number;
}

/** An hour of walking, 3.5 MET and 4.5 km, is 150 MET minutes above rest; lighter movement does not carry as far. */
const METERS_PER_EFFORT = 22;

function sumUp(met: Uint8Array, tenthSteps: Uint16Array): Sums {
  const classes = new Uint8Array(met.length / 5);
  const seconds = [0, 0, 0, 0, 0, 0];
  const metMinutes = [0, 0, 0, 0, 0, 0];
  let [effort, total, known, spent, steps] = [0, 0, 0, 0, 0];
  for (let block = 0; block < classes.length; block++) {
    let sum = 0;
    for (let i = block * 5; i < block * 5 + 5; i++) {
      const value = met[i] ?? UNKNOWN;
      spent += value === UNKNOWN || value === UNWORN ? 10 : value;
      if (value === UNKNOWN) continue;
      sum += value;
      known++;
      if (value >= 15) effort += value - 10;
      steps += tenthSteps[i] ?? 0;
    }
    const kind = classOf(sum);
    classes[block] = kind;
    seconds[kind] = (seconds[kind] ?? 0) + 300;
    metMinutes[kind] = (metMinutes[kind] ?? 0) + sum;
    total += sum;
  }
  const average = known ? total / known / 10 : 0;
  return { classes, seconds, metMinutes, effort: effort / 10, average, spent: spent / 10, steps: Math.round(steps / 10) };
}

/** Kilocalories of a minute at 1 MET: one per kilogram and hour. */
export const kcalPerMinute = ({ weightKg }: Person) => weightKg / 60;

/** The daily_activity of a day, or of the part of it that is there; none before the first 5 minutes. */
export function dailyActivity(record: UserRecord, day: number): WireDocument[] {
  const { person, zone, activityOf } = record;
  const { start, met, steps } = activityOf(day);
  if (met.length === 0) return [];
  const sums = sumUp(met, steps);
  const random = new Random(keyOf(person, day, 'activity document'));
  const minutes = (kind: number) => Math.round((sums.metMinutes[kind] ?? 0) / 10);
  const activeCalories = Math.round(sums.effort * kcalPerMinute(person));
  const walked = metersOf(sums);
  const { targetEffort, targetMeters } = targetOf(record, day);
  const alerts = inactivityAlerts(sums.classes);
  const scored = scoreOf(record, day, sums, alerts, walked / targetMeters, start + met.length * 60);
  const timestamp = zone.write(start);
  const document: WireDocument = {
    id: record.idOf('daily_activity', day),
    active_calories: activeCalories,
    average_met_minutes: round(sums.average, 5),
    class_5_min: digits(sums.classes),
    contributors: omitSome(random, { ...scored.contributors }, ['recovery_time', 'training_volume'], 0.02),
    day: formatDay(day),
    equivalent_walking_distance: walked,
    high_activity_met_minutes: minutes(HIGH),
    high_activity_time: sums.seconds[HIGH],
    inactivity_alerts: alerts,
    low_activity_met_minutes: minutes(LOW),
    low_activity_time: sums.seconds[LOW],
    medium_activity_met_minutes: minutes(MEDIUM),
    medium_activity_time: sums.seconds[MEDIUM],
    met: { interval: 60, items: itemsOf(met), timestamp },
    meters_to_target: targetMeters - walked,
    non_wear_time: sums.seconds[NON_WEAR],
    resting_time: sums.seconds[REST],
    score: scored.score,
    sedentary_met_minutes: minutes(INACTIVE),
    sedentary_time: sums.seconds[INACTIVE],
    steps: sums.steps,
    target_calories: Math.round((targetEffort * kcalPerMinute(person)) / 50) * 50,
    target_meters: targetMeters,
    timestamp,
    total_calories: Math.round(sums.spent * kcalPerMinute(person)),
  };
  return [omitSome(random, document, ['class_5_min', 'score'], 0.008)];
}

const metersOf = ({ effort }: Sums) => Math.round(effort * METERS_PER_EFFORT);

/** The target follows the person and gives way a little when the body has not recovered. */
function targetOf({ person, planOf }: UserRecord, day: number): { targetEffort: number; targetMeters: number } {
  const targetEffort = (350 + 160 * person.fitness) * (planOf(day - 1).training && planOf(day - 2).training ? 0.85 : 1);
  return { targetEffort, targetMeters: Math.round((targetEffort * METERS_PER_EFFORT) / 500) * 500 };
}

/** The share of its target that a whole day has reached. */
export function reachedOn(record: UserRecord, day: number): number {
  const { met, steps } = record.wholeActivityOf(day);
  return metersOf(sumUp(met, steps)) / targetOf(record, day).targetMeters;
}

/** As a plain array; tenths become numbers of one decimal. */
function itemsOf(met: Uint8Array): (number | null)[] {
  return Array.from(met, value => (value === UNKNOWN ? null : value / 10));
}

/** One for each 50 minutes of sitting at a stretch. */
function inactivityAlerts(classes: Uint8Array): number {
  let alerts = 0;
  let sitting = 0;
  for (const kind of classes) {
    sitting = kind === INACTIVE ? sitting + 1 : 0;
    if (sitting === 10) {
      alerts++;
      sitting = 0;
    }
  }
  return alerts;
}

function scoreOf({ planOf }: UserRecord, day: number, { seconds }: Sums, alerts: number, reached: number, end: number) {
  const sitting = (seconds[INACTIVE] ?? 0) / 3600;
  const week = Array.from({ length: 7 }, (_, ago) => {
    const { training } = planOf(day - ago);
    // Of today's training nothing is known before it is over.
    return training && training.end <= end ? training.load : 0;
  });
  const trained = week.filter(load => load > 0.2).length;
  const easy = week.findIndex(load => load < 0.2);
  const contributors = {
    meet_daily_targets: along(reached, [0.2, 0.6, 1, 1.2], [20, 60, 95, 100]),
    move_every_hour: along(alerts, [0, 2, 5, 9], [100, 85, 55, 15]),
    recovery_time: along(easy < 0 ? 7 : easy, [1, 3, 5, 7], [100, 90, 55, 30]),
    stay_active: along(sitting, [5, 8, 11, 14], [100, 84, 55, 20]),
    training_frequency: along(trained, [0, 2, 3, 4], [25, 71, 90, 100]),
    training_volume: along(
      week.reduce((sum, load) => sum + load, 0),
      [0, 1.5, 3, 4],
      [20, 65, 92, 100],
    ),
  };
  return { contributors, score: weigh(contributors, WEIGHTS.daily_activity) };
}
