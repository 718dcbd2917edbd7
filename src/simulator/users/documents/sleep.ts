import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf, type Person } from '../person.ts';
import { Random, round } from '../random.ts';
import { contributes, mainSleep, type SleepReport, totalsOf } from '../reports.ts';
import { ringId, ringOn } from '../rings.ts';
import { digits, fiveMinutes } from '../stages.ts';
import type { UserRecord } from '../user-record.ts';
import { sleepScore } from './daily-sleep.ts';
import { omitSome } from './optional.ts';
import { readinessOf } from './readiness.ts';

const OFTEN_THERE = [
  'app_sleep_phase_5_min',
  'average_breath',
  'movement_30_sec',
  'restless_periods',
  'ring_id',
  'sleep_algorithm_version',
  'sleep_analysis_reason',
  'sleep_phase_30_sec',
];

/** The first nights that came in by the new algorithm: 10 January and 10 April 2025. */
const [FIRST_NEW, LAST_NEW] = [20_098, 20_188];

/** The day from which on somebody's sleep is analysed by the new algorithm: it came to one after the other. */
const algorithmChanged = ({ seed, index }: Person) => new Random([seed, index, 'algorithm']).integer(FIRST_NEW, LAST_NEW);

/** The sleep documents of a day. */
export function sleep(record: UserRecord, day: number): WireDocument[] {
  const sleeps = record.sleepsOf(day);
  return sleeps.map(report => document(record, day, sleeps, report));
}

function document(record: UserRecord, day: number, sleeps: readonly SleepReport[], report: SleepReport): WireDocument {
  const { person, zone } = record;
  const random = new Random(keyOf(person, day, 'sleep document', report.ordinal));
  const totals = totalsOf(report);
  const fiveMinute = digits(fiveMinutes(report.stages));
  const timestamp = zone.write(report.start);
  const samples = (items: (number | null)[]) => (items.some(item => item !== null) ? { interval: 300, items, timestamp } : null);
  const result: WireDocument = {
    id: report.id,
    app_sleep_phase_5_min: fiveMinute,
    average_breath: round(report.breathRate, 3),
    average_heart_rate: totals.averageHeartRate ?? null,
    average_hrv: totals.averageHrv ?? null,
    awake_time: totals.awake,
    bedtime_end: report.goesOn ? null : zone.write(report.end),
    bedtime_start: timestamp,
    day: formatDay(day),
    deep_sleep_duration: totals.deep,
    efficiency: totals.efficiency,
    heart_rate: samples(report.pulse.heartRate),
    hrv: samples(report.pulse.hrv),
    latency: totals.latency,
    light_sleep_duration: totals.light,
    low_battery_alert: random.chance(0.03),
    lowest_heart_rate: totals.lowestHeartRate ?? null,
    movement_30_sec: digits(report.movement),
    period: report.ordinal,
    ...effects(record, day, sleeps, report),
    rem_sleep_duration: totals.rem,
    restless_periods: totals.restlessPeriods,
    ring_id: ringId(person, ringOn(person, day - 1)),
    sleep_algorithm_version: day < algorithmChanged(person) ? 'v1' : 'v2',
    sleep_analysis_reason: report.reason,
    sleep_phase_30_sec: digits(report.stages),
    sleep_phase_5_min: fiveMinute,
    time_in_bed: totals.inBed,
    total_sleep_duration: totals.asleep,
    // What it will have been is not known before its end.
    type: report.goesOn ? null : report.type,
  };
  return omitSome(random, result, OFTEN_THERE, 0.015);
}

/** The main sleep carries the readiness it led to; a nap, by how much it changed the scores. */
function effects(record: UserRecord, day: number, sleeps: readonly SleepReport[], report: SleepReport): WireDocument {
  const main = mainSleep(sleeps);
  if (report === main) return { readiness: readinessOf(record, day, sleeps) ?? null, readiness_score_delta: null, sleep_score_delta: null };
  if (!main || !contributes(report)) return { readiness: null };
  const others = sleeps.filter(other => other !== report);
  const delta = (score: (sleeps: readonly SleepReport[]) => number | undefined) => (score(sleeps) ?? 0) - (score(others) ?? 0);
  return {
    readiness: null,
    readiness_score_delta: delta(some => readinessOf(record, day, some)?.score),
    sleep_score_delta: delta(some => sleepScore(record.zone, some)?.score),
  };
}
