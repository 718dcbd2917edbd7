import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf } from '../person.ts';
import { clamp, drift, Random, round } from '../random.ts';
import { mainSleep } from '../reports.ts';
import { seasonOn } from '../season.ts';
import type { UserRecord } from '../user-record.ts';

/** The daily_spo2 of a day; none without a main sleep. */
export function dailySpo2(record: UserRecord, day: number): WireDocument[] {
  const { person } = record;
  if (!mainSleep(record.sleepsOf(day))) return [];
  const random = new Random(keyOf(person, day, 'spo2'));
  const head = { id: record.idOf('daily_spo2', day) };
  const average = round(clamp(random.normal(person.spo2, 0.45), 94, 99), 3);
  const disturbance = round(clamp(9 + 4 * (97 - average) + random.normal(0, 2), 0, 100));
  if (random.chance(0.05)) return [{ ...head, breathing_disturbance_index: null, day: formatDay(day), spo2_percentage: null }];
  if (random.chance(0.02)) return [{ ...head, day: formatDay(day) }];
  return [{ ...head, breathing_disturbance_index: disturbance, day: formatDay(day), spo2_percentage: { average } }];
}

const ROUND_DAYS = 10;

/** The vo2_max of a day: one somewhere in each ten days, so that 7 to 13 lie between two. */
export function vo2Max(record: UserRecord, day: number): WireDocument[] {
  const { person, zone } = record;
  const turn = Math.floor((day + person.index) / ROUND_DAYS);
  const random = new Random([person.seed, person.index, turn, 'vo2 max']);
  if (day + person.index !== turn * ROUND_DAYS + random.integer(0, 3)) return [];
  const form = drift([person.seed, person.index, 'form'], day / 45);
  const best = (person.sex === 'female' ? 28 : 32) + 22 * person.fitness - 0.22 * (person.age - 25);
  const trained = 4 * (seasonOn(person, day).form - 0.4);
  const estimate = Math.round(clamp(best + 0.6 * form + trained + random.normal(0, 0.4), 20, 70));
  const moment = zone.at(day, random.integer(9 * 3600, 21 * 3600));
  if (!record.hasSynced(day, moment)) return [];
  return [
    {
      id: record.idOf('vo2_max', day),
      day: formatDay(day),
      timestamp: zone.write(moment),
      vo2_max: estimate,
    },
  ];
}
