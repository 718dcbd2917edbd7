import type { Sample } from '../../schema/fields.ts';
import { findDayNumber, formatDay } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { bounded, deviation, get, groupBy, known, mean, median, moment, of, type Row, type Stored, sum } from './views-oracle.ts';
import { naps, nights } from './views-oracle-sleeps.ts';
import { spanOf } from './views-oracle-workouts.ts';

const SHOWN = [
  'daily_readiness',
  'daily_sleep',
  'daily_activity',
  'daily_spo2',
  'vo2_max',
  'daily_resilience',
  'daily_stress',
  'sleep',
  'session',
  'workout',
];

const NIGHT = `sleep_id bedtime_start_local bedtime_end_local midpoint_local offset_change time_in_bed total_sleep_duration awake_time
  deep_sleep_duration light_sleep_duration rem_sleep_duration latency efficiency restless_periods average_heart_rate lowest_heart_rate
  average_hrv average_breath`.split(/\s+/);

const ACTIVITY = `steps equivalent_walking_distance active_calories total_calories average_met_minutes high_activity_time
  medium_activity_time low_activity_time sedentary_time resting_time non_wear_time inactivity_alerts`.split(/\s+/);

const TIMES = ['high_activity_time', 'medium_activity_time', 'low_activity_time', 'sedentary_time', 'resting_time', 'non_wear_time'];

/** The sum, null where one of them is. */
const total = (values: readonly (number | null)[]) => (values.includes(null) ? null : sum(values as number[]));

/** Null where there is nothing to divide, or nothing to divide by. */
const ratio = (part: number | null, whole: number | null) => (part === null || !whole ? null : part / whole);

/** Whether all that is told of an activity is less than from 4 a.m. to midnight; null where nothing is. */
function endsBeforeMidnight(activity: WireDocument): boolean | null {
  const times = TIMES.map(key => get(activity, key));
  const recorded = total(times);
  if (recorded !== null) return recorded < 20 * 3600;
  const met = get(activity, 'met') as Sample | null;
  const told = [...(known(times).length ? [sum(known(times))] : []), ...(met ? [met.items.length * met.interval] : [])];
  return told.length ? Math.max(...told) < 20 * 3600 : null;
}

/** Days from the first to the last, of a longer gap than 366 days the first 366. */
function daysOf(days: readonly number[]): number[] {
  const inOrder = [...new Set(days)].sort((a, b) => a - b);
  return inOrder.flatMap((day, i) => {
    const missing = Math.min((inOrder[i + 1] ?? day + 1) - day - 1, 366);
    return Array.from({ length: missing + 1 }, (_, j) => day + j);
  });
}

/** The whole seconds of a workout, of a day at most; 0 where they are not known. */
function secondsOf(workout: Stored): number {
  const span = spanOf(workout);
  return span && span.until !== null ? Math.floor((span.until - span.from) / 1_000_000) : 0;
}

export function daily(stored: readonly Stored[]): Row[] {
  const [allNights, allNaps] = [nights(stored), naps(stored)];
  return [
    ...groupBy(
      stored.filter(({ resource }) => SHOWN.includes(resource)),
      ({ user }) => user,
    ),
  ].flatMap(([user, versions]) => {
    const last = new Map(
      [...versions].sort((a, b) => a.sk - b.sk).map(({ resource, document }) => [`${resource} ${document.day}`, document]),
    );
    const sessions = groupBy(of(versions, 'session'), ({ document }) => get(document, 'day'));
    const workouts = groupBy(of(versions, 'workout'), ({ document }) => get(document, 'day'));
    const night = new Map(allNights.filter(row => row.user_id === user).map(row => [row.day, row]));
    const napsOf = groupBy(
      allNaps.filter(row => row.user_id === user),
      row => row.day as string,
    );
    const estimates = groupBy(
      of(versions, 'vo2_max').filter(({ document }) => get(document, 'vo2_max') !== null),
      ({ document }) => get(document, 'day'),
    );
    let estimate: { vo2_max: number | null; vo2_max_day: string | null } = { vo2_max: null, vo2_max_day: null };
    return daysOf(versions.map(({ document }) => findDayNumber(get(document, 'day'))!)).map(number => {
      const day = formatDay(number);
      const document = (resource: string) => last.get(`${resource} ${day}`) ?? {};
      const [readiness, activity] = [document('daily_readiness'), document('daily_activity')];
      const [spo2, stress] = [document('daily_spo2'), document('daily_stress')];
      const made = (version: Stored) => moment(version.document, 'timestamp')?.micros ?? Number.NEGATIVE_INFINITY;
      const newest = estimates
        .get(day)
        ?.sort((a, b) => (made(a) === made(b) ? a.sk - b.sk : made(a) - made(b)))
        .at(-1);
      if (newest) estimate = { vo2_max: get(newest.document, 'vo2_max'), vo2_max_day: day };
      const recorded = total(TIMES.map(key => get(activity, key)));
      const share = ratio(get(activity, 'non_wear_time'), recorded);
      const isUnfinished = endsBeforeMidnight(activity);
      return {
        user_id: user,
        day,
        sleep_score: get(document('daily_sleep'), 'score'),
        readiness_score: get(readiness, 'score'),
        activity_score: get(activity, 'score'),
        ...Object.fromEntries(NIGHT.map(key => [key, night.get(day)?.[key] ?? null])),
        temperature_deviation: get(readiness, 'temperature_deviation'),
        temperature_trend_deviation: get(readiness, 'temperature_trend_deviation'),
        naps: napsOf.get(day)?.length ?? 0,
        nap_duration: sum(known((napsOf.get(day) ?? []).map(row => row.total_sleep_duration))),
        spo2_average: get(spo2, 'spo2_percentage', 'average'),
        breathing_disturbance_index: get(spo2, 'breathing_disturbance_index'),
        stress_summary: get(stress, 'day_summary'),
        stress_high: get(stress, 'stress_high'),
        recovery_high: get(stress, 'recovery_high'),
        resilience_level: get(document('daily_resilience'), 'level'),
        ...estimate,
        ...Object.fromEntries(ACTIVITY.map(key => [key, get(activity, key)])),
        recorded_time: recorded,
        sessions: sessions.get(day)?.length ?? 0,
        workouts: workouts.get(day)?.length ?? 0,
        workout_duration: sum((workouts.get(day) ?? []).map(secondsOf)),
        non_wear_share: share,
        activity_unfinished: isUnfinished,
        ring_not_worn: recorded ? get(activity, 'non_wear_time') * 2 >= (isUnfinished ? 86_400 : recorded) : null,
        night_missing: !night.has(day),
        activity_missing: !last.has(`daily_activity ${day}`),
      };
    });
  });
}

/** What a day at noon has only a part of. */
const GOES_ON_ALL_DAY = ['activity_score', 'stress_high', 'recovery_high', 'steps', 'active_calories'];

/** Monday of the week, as a number of days. */
const monday = (day: string) => {
  const number = findDayNumber(day)!;
  return number - ((((number + 3) % 7) + 7) % 7);
};

/** The ISO year is that of the Thursday. */
function isoWeek(first: number): string {
  const year = formatDay(first + 3).slice(0, 4);
  const week = Math.floor((first + 3 - findDayNumber(`${year}-01-01`)!) / 7) + 1;
  return `${year}-W${String(week).padStart(2, '0')}`;
}

export function weekly(days: readonly Row[]): Row[] {
  return [...groupBy(days, row => `${monday(row.day as string)} ${row.user_id}`).values()].map(unsorted => {
    const week = [...unsorted].sort((a, b) => ((a.day as string) < (b.day as string) ? -1 : 1));
    const whole = week.filter(row => row.activity_unfinished !== true);
    const values = (column: string) => known((GOES_ON_ALL_DAY.includes(column) ? whole : week).map(row => row[column]));
    const averages = `sleep_score readiness_score activity_score total_sleep_duration efficiency average_hrv lowest_heart_rate
      average_breath temperature_deviation stress_high recovery_high steps`.split(/\s+/);
    const added = (column: string) => (values(column).length ? sum(values(column)) : null);
    const count = (isCounted: (row: Row) => boolean, of = week) => of.filter(isCounted).length;
    const active = whole.map(row => total([row.medium_activity_time as number, row.high_activity_time as number]));
    const recorded = whole.filter(row => row.recorded_time !== null);
    return {
      user_id: week[0]!.user_id!,
      week: formatDay(monday(week[0]!.day as string)),
      iso_week: isoWeek(monday(week[0]!.day as string)),
      days: week.length,
      nights: count(row => !row.night_missing),
      ...Object.fromEntries(averages.map(column => [`mean_${column}`, mean(values(column))])),
      ...Object.fromEntries(averages.map(column => [`n_${column}`, values(column).length])),
      naps: sum(values('naps')),
      sessions: sum(values('sessions')),
      days_with_stress: count(row => row.stress_summary !== null, whole),
      stressful_days: count(row => row.stress_summary === 'stressful', whole),
      restored_days: count(row => row.stress_summary === 'restored', whole),
      vo2_max: week.at(-1)!.vo2_max!,
      activity_days: count(row => !row.activity_missing, whole),
      unfinished_days: week.length - whole.length,
      steps: added('steps'),
      active_calories: added('active_calories'),
      active_minutes: known(active).length ? sum(known(active)) / 60 : null,
      non_wear_share: ratio(sum(known(recorded.map(row => row.non_wear_time))), sum(known(recorded.map(row => row.recorded_time)))),
    };
  });
}

const METRICS: Record<string, string> = {
  average_hrv: 'ms',
  lowest_heart_rate: 'beats/min',
  average_heart_rate: 'beats/min',
  average_breath: 'breaths/min',
  temperature_deviation: '°C',
  spo2_average: '%',
  total_sleep_duration: 's',
  deep_sleep_duration: 's',
  rem_sleep_duration: 's',
  efficiency: '%',
  sleep_score: 'score',
  readiness_score: 'score',
  activity_score: 'score',
  stress_high: 's',
  steps: 'count',
  active_calories: 'kcal',
};

/** The days that end with `last`: how many have a value, their mean and deviation where enough have. */
function usual(values: ReadonlyMap<number, number>, last: number, length: number) {
  const there = known(Array.from({ length }, (_, i) => values.get(last - i)));
  const isEnough = there.length >= length / 2;
  return { days: there.length, mean: isEnough ? mean(there) : null, sd: isEnough ? deviation(there) : null };
}

const FLOORS: Record<string, (median: number) => number> = {
  temperature_deviation: () => 0.1,
  lowest_heart_rate: () => 1,
  average_breath: () => 0.125,
  average_hrv: median => Math.abs(median) * 0.02,
};

/** Of the 28 days before one: their median, their median distance from it, and how far the day lies off by that. */
function robust(metric: string, values: ReadonlyMap<number, number>, day: number): Row {
  const before = known(Array.from({ length: 28 }, (_, i) => values.get(day - 1 - i)));
  if (before.length < 14) return { median_28: null, mad_28: null, robust_z_28: null };
  const middle = median(before)!;
  const mad = median(before.map(value => Math.abs(value - middle)))!;
  const spread = Math.max(mad * 1.4826, FLOORS[metric]?.(middle) ?? 0);
  const value = values.get(day);
  return { median_28: middle, mad_28: mad, robust_z_28: value === undefined || spread === 0 ? null : (value - middle) / spread };
}

export function baselines(days: readonly Row[]): Row[] {
  return [...groupBy(days, row => row.user_id as string).values()].flatMap(person =>
    Object.entries(METRICS).flatMap(([metric, unit]) => {
      const values = new Map(person.map(row => [findDayNumber(row.day as string)!, row[metric] as number]));
      for (const [number, value] of values) if (value === null || !bounded([value]).length) values.delete(number);
      for (const row of person)
        if (row.activity_unfinished === true && GOES_ON_ALL_DAY.includes(metric)) values.delete(findDayNumber(row.day as string)!);
      return person.map(row => {
        const number = findDayNumber(row.day as string)!;
        const baseline: Row = { user_id: row.user_id!, day: row.day!, metric, unit, value: row[metric]! };
        for (const length of [7, 28, 90]) {
          const [now, before] = [usual(values, number, length), usual(values, number - 1, length)];
          baseline[`days_${length}`] = now.days;
          baseline[`mean_${length}`] = now.mean;
          baseline[`sd_${length}`] = now.sd;
          const value = values.get(number);
          const hasScore = value !== undefined && before.sd && before.days >= 5;
          baseline[`z_${length}`] = hasScore ? (value - before.mean!) / before.sd! : null;
        }
        return { ...baseline, ...robust(metric, values, number) };
      });
    }),
  );
}
