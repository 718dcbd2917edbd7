import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf } from '../person.ts';
import { Random, round } from '../random.ts';
import { mainSleep, mean, type SleepReport, totalsOf } from '../reports.ts';
import { along, score, USUAL_HRV, WEIGHTS, weigh } from '../scores.ts';
import type { UserRecord } from '../user-record.ts';
import { reachedOn } from './activity.ts';
import { sleepScore } from './daily-sleep.ts';
import { omitSome } from './optional.ts';

/** What can be said without last night, too. */
const LASTING = ['activity_balance', 'previous_day_activity', 'sleep_balance', 'sleep_regularity'] as const;

const days = (day: number, count: number) => Array.from({ length: count }, (_, ago) => day - ago);

/** The readiness that some sleeps of a day give; undefined without a main sleep. */
export function readinessOf(record: UserRecord, day: number, sleeps: readonly SleepReport[]) {
  const scored = sleepScore(record.zone, sleeps);
  const main = mainSleep(sleeps);
  if (!scored || !main) return undefined;
  const { person, conditionOf, nightOf } = record;
  const deviation = round(conditionOf(day).temperature, 2);
  const trend = mean(days(day, 3).map(each => conditionOf(each).temperature));
  const { lowestHeartRate = person.restingHeartRate, averageHrv, recovery } = totalsOf(main);
  const before = days(day - 1, 2).map(each => nightOf(each)?.averageHrv);
  const variability = [averageHrv, ...before].filter(hrv => hrv !== undefined);
  const contributors = {
    ...lasting(record, day),
    body_temperature: along(Math.abs(deviation), [0, 0.25, 0.5, 1], [100, 94, 72, 20]),
    // A night without any is taken for a usual one.
    hrv_balance: along(
      variability.length ? mean(variability) / (USUAL_HRV * person.hrv) : 1,
      [0.65, 0.8, 0.93, 1.03, 1.12],
      [8, 40, 72, 92, 100],
    ),
    previous_night: scored.score,
    recovery_index: along(recovery / 3600, [0.3, 1.5, 3, 5], [12, 60, 88, 100]),
    resting_heart_rate: along(lowestHeartRate - person.restingHeartRate, [-3, 0, 2, 5, 9], [100, 92, 74, 40, 8]),
  };
  return {
    contributors,
    score: weigh(contributors, WEIGHTS.daily_readiness),
    temperature_deviation: deviation,
    temperature_trend_deviation: round(trend, 2),
  };
}

function lasting(record: UserRecord, day: number) {
  const { zone, conditionOf, bedTimesOf, nightOf } = record;
  const nights = days(day, 14).map(each => ({ ...bedTimesOf(each).night, midnight: zone.at(each, 0) }));
  const bedtimes = nights.map(({ start, midnight }) => (start - midnight) / 60);
  const usual = mean(bedtimes);
  const scatter = Math.sqrt(mean(bedtimes.map(each => (each - usual) ** 2)));
  const known = days(day, 14)
    .map(nightOf)
    .filter(night => night !== null);
  // Two weeks without the ring say nothing against anybody's sleep.
  const hours = known.length ? mean(known.map(({ asleep }) => asleep)) / 3600 : 7.5;
  return {
    activity_balance: along(conditionOf(day).fatigue, [0, 0.5, 1.4, 2.2, 3.5], [88, 97, 90, 72, 40]),
    // Of the target: a lazy day is no strain, and neither a reason to be proud; a very hard one asks for rest.
    previous_day_activity: along(reachedOn(record, day - 1), [0.2, 0.6, 0.8, 1.1, 2.6], [60, 84, 95, 95, 40]),
    sleep_balance: along(hours, [4.7, 5.8, 6.6, 7.4], [15, 58, 85, 98]),
    sleep_regularity: along(scatter, [12, 30, 50, 90], [100, 88, 66, 25]),
  };
}

/** The daily_readiness of a day. After a night without the ring there is often none, else one without a score. */
export function dailyReadiness(record: UserRecord, day: number): WireDocument[] {
  if (!record.knowsMorning(day)) return [];
  const random = new Random(keyOf(record.person, day, 'readiness'));
  const ready = readinessOf(record, day, record.sleepsOf(day));
  const head = { id: record.idOf('daily_readiness', day) };
  const foot = { timestamp: record.zone.write(record.zone.at(day, 0)) };
  if (!ready) {
    if (random.chance(0.5)) return [];
    const known = lasting(record, day);
    const contributors: Record<string, number | null> = { previous_night: null, hrv_balance: null };
    for (const key of LASTING) contributors[key] = score(known[key]);
    return [{ ...head, contributors, day: formatDay(day), score: null, temperature_deviation: null, ...foot }];
  }
  const contributors = omitSome(random, { ...ready.contributors }, ['hrv_balance', 'sleep_regularity', 'activity_balance'], 0.02);
  const document = { ...head, ...ready, contributors, day: formatDay(day), ...foot };
  return [omitSome(random, document, ['temperature_deviation', 'temperature_trend_deviation'], 0.02)];
}
