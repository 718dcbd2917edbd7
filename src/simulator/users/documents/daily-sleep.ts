import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf } from '../person.ts';
import { Random } from '../random.ts';
import { contributes, mainSleep, type SleepReport, totalsOf } from '../reports.ts';
import { along, WEIGHTS, weigh } from '../scores.ts';
import type { UserRecord } from '../user-record.ts';
import type { Zone } from '../zone.ts';
import { omitSome } from './optional.ts';

/** The sleep score of a day and its shares; undefined without a main sleep. */
export function sleepScore(zone: Zone, reports: readonly SleepReport[]) {
  const main = mainSleep(reports);
  if (!main) return undefined;
  const all = reports.filter(contributes).map(totalsOf);
  const sum = (pick: (totals: (typeof all)[number]) => number) => all.reduce((total, totals) => total + pick(totals), 0);
  const night = totalsOf(main);
  const hours = sum(totals => totals.asleep) / 3600;
  const restless = night.restlessPeriods / (night.inBed / 3600);
  const { clock } = zone.local((main.start + main.end) / 2);
  const middle = (clock > 43_200 ? clock - 86_400 : clock) / 3600;
  const contributors = {
    deep_sleep: along(sum(totals => totals.deep) / 60, [10, 45, 70, 95], [15, 62, 88, 100]),
    efficiency: along(night.efficiency, [60, 75, 85, 93, 96], [20, 55, 82, 98, 100]),
    latency: along(night.latency / 60, [0, 4, 11, 20, 40, 70], [55, 72, 99, 92, 50, 15]),
    rem_sleep: along(sum(totals => totals.rem) / 60, [15, 50, 85, 115], [12, 50, 84, 100]),
    restfulness: along(restless, [5, 8, 13, 20, 32], [100, 92, 75, 45, 10]),
    timing: along(middle, [-1, 1.5, 3.2, 4.5, 6.5], [70, 98, 100, 75, 25]),
    total_sleep: along(hours, [3.5, 5, 6, 7, 8, 8.6], [5, 36, 60, 82, 98, 100]),
  };
  return { contributors, score: weigh(contributors, WEIGHTS.daily_sleep) };
}

/** The daily_sleep of a day; none without a main sleep. */
export function dailySleep(record: UserRecord, day: number): WireDocument[] {
  const scored = sleepScore(record.zone, record.sleepsOf(day));
  if (!scored) return [];
  const random = new Random(keyOf(record.person, day, 'daily sleep'));
  return [
    {
      id: record.idOf('daily_sleep', day),
      contributors: omitSome(random, { ...scored.contributors }, ['timing', 'latency'], 0.01),
      day: formatDay(day),
      score: scored.score,
      timestamp: record.zone.write(record.zone.at(day, 0)),
    },
  ];
}
