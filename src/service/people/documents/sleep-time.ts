import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import type { Diary } from '../diary.ts';
import { keyOf } from '../person.ts';
import { Random } from '../random.ts';
import { mean } from '../reports.ts';

const QUARTER = 900;

/** The sleep_time of a day, the bedtime suggested for its evening; on some days there is none. */
export function sleepTime(diary: Diary, day: number): WireDocument[] {
  if (!diary.knowsMorning(day)) return [];
  const { person, zone, bedTimesOf } = diary;
  const random = new Random(keyOf(person, day, 'sleep time'));
  if (random.chance(0.08)) return [];
  const head = { id: diary.idOf('sleep_time', day), day: formatDay(day) };
  const recent = [0, 1, 2].map(ago => bedTimesOf(day - ago));
  if (recent.filter(({ unworn }) => unworn).length > 0) {
    return [{ ...head, optimal_bedtime: null, recommendation: null, status: 'not_enough_recent_nights' }];
  }
  if (random.chance(0.05)) return [{ ...head, optimal_bedtime: null, recommendation: 'improve_efficiency', status: 'bad_sleep_quality' }];
  const start = Math.round((person.bedtime - 1800) / QUARTER) * QUARTER;
  const usual = mean(recent.map(({ night }, ago) => night.start - zone.at(day - ago, 0)));
  const late = usual - (start + 2 * QUARTER);
  const recommendation = late > 2700 ? 'earlier_bedtime' : late < -1500 ? 'later_bedtime' : 'follow_optimal_bedtime';
  if (random.chance(0.07)) return [{ ...head, recommendation, status: 'only_recommended_found' }];
  const optimal = { day_tz: zone.offsetAt(zone.at(day, 0)), end_offset: start + 3 * QUARTER, start_offset: start };
  return [{ ...head, optimal_bedtime: optimal, recommendation, status: 'optimal_found' }];
}
