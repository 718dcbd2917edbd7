import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf } from '../person.ts';
import { Random } from '../random.ts';
import { mean } from '../reports.ts';
import type { UserRecord } from '../user-record.ts';

const QUARTER = 900;
/** Nights that a suggestion is made from, and those of them that are recent. */
const NIGHTS = 14;
const RECENT = 3;
/** Of so many nights without the ring nothing can be suggested. */
const TOO_MANY_UNWORN = 2;
const POOR_EFFICIENCY = 82;
/** Bedtimes that scatter as far, and a bedtime or a waking that is so far from the usual one, seconds. */
const SCATTERED = 4200;
const FAR = 2400;

/** The sleep_time of a day, the bedtime suggested for its evening, from how somebody has slept lately; on some days there is none. */
export function sleepTime(record: UserRecord, day: number): WireDocument[] {
  if (!record.knowsMorning(day)) return [];
  const { person, zone, bedTimesOf, nightOf } = record;
  const random = new Random(keyOf(person, day, 'sleep time'));
  if (random.chance(0.08)) return [];
  const head = { id: record.idOf('sleep_time', day), day: formatDay(day) };
  const none = (recommendation: string | null, status: string) => [{ ...head, optimal_bedtime: null, recommendation, status }];
  const nights = Array.from({ length: NIGHTS }, (_, ago) => {
    const { night, unworn } = bedTimesOf(day - ago);
    const midnight = zone.at(day - ago, 0);
    return { bed: night.start - midnight, wake: night.end - midnight, worn: !unworn, recent: ago < RECENT };
  });
  const worn = nights.filter(night => night.worn);
  const recent = worn.filter(night => night.recent);
  if (recent.length < RECENT) return none(null, 'not_enough_recent_nights');
  if (NIGHTS - worn.length >= TOO_MANY_UNWORN) return none(null, 'not_enough_nights');
  const efficiency = mean(recent.map((_, ago) => nightOf(day - ago)?.efficiency ?? 100));
  if (efficiency < POOR_EFFICIENCY) return none('improve_efficiency', 'bad_sleep_quality');
  const bed = mean(worn.map(night => night.bed));
  const recommendation = recommend(
    mean(recent.map(night => night.bed)) - bed,
    mean(recent.map(night => night.wake)) - mean(worn.map(night => night.wake)),
  );
  const scatter = Math.sqrt(mean(worn.map(night => (night.bed - bed) ** 2)));
  if (scatter > SCATTERED) return [{ ...head, recommendation, status: 'only_recommended_found' }];
  const start = Math.round((bed - 1800) / QUARTER) * QUARTER;
  const optimal = { day_tz: zone.offsetAt(zone.at(day, 0)), end_offset: start + 3 * QUARTER, start_offset: start };
  return [{ ...head, optimal_bedtime: optimal, recommendation, status: 'optimal_found' }];
}

/** What to change, by how much later than usual somebody goes to bed lately, and rises; seconds. */
function recommend(later: number, risesLater: number): string {
  if (Math.abs(later) > FAR) return later > 0 ? 'earlier_bedtime' : 'later_bedtime';
  if (Math.abs(risesLater) > FAR) return risesLater > 0 ? 'earlier_wake_up_time' : 'later_wake_up_time';
  return 'follow_optimal_bedtime';
}
