import { add, get, groupBy, mean, moment, of, type Row, SECOND, type Stored, type StoredHeartRate } from './views-oracle.ts';
import { heartRateMoments } from './views-oracle-series.ts';
import { nights } from './views-oracle-sleeps.ts';

const DAY = 86_400 * SECOND;
const MINUTE = 60 * SECOND;

/** From its start to its end, of at most a day; null without an end. */
export function spanOf({ document }: Stored): { from: number; until: number | null } | null {
  const [start, end] = [moment(document, 'start_datetime'), moment(document, 'end_datetime')];
  if (!start) return null;
  return { from: start.micros, until: end && Math.max(start.micros, Math.min(end.micros, start.micros + DAY)) };
}

/** Of the workouts that a moment lies in the one that began last; of those the one stored last. */
export function workoutAt(workouts: readonly Stored[], ts: number): string | null {
  const around = workouts.flatMap(workout => {
    const span = spanOf(workout);
    return span && span.until !== null && span.from <= ts && ts < span.until ? [{ ...workout, from: span.from }] : [];
  });
  return (around.sort((a, b) => b.from - a.from || b.sk - a.sk)[0]?.document.id as string | null) ?? null;
}

/** What a study knows of some of them. */
export const PARTICIPANTS: Readonly<Record<string, { max_heart_rate?: number; birth_year?: number }>> = {
  ann: { max_heart_rate: 171, birth_year: 1960 },
  workout: { birth_year: 1985 },
  // Not born yet: it counts for nothing.
  "Ann's": { birth_year: 2100 },
};

/** The age as it was stored last, of those that can be one. */
function findAge(stored: readonly Stored[], user: string): number | undefined {
  const ages = of(stored, 'personal_info').filter(
    one => one.user === user && get(one.document, 'age') >= 1 && get(one.document, 'age') <= 150,
  );
  const last = ages.sort((a, b) => a.sk - b.sk).at(-1);
  return last && get(last.document, 'age');
}

/** Told, or Tanaka's, and what it comes from. */
function findMaximum(stored: readonly Stored[], user: string, day: string): [number, string] | undefined {
  const { max_heart_rate: told, birth_year: born } = PARTICIPANTS[user] ?? {};
  if (told !== undefined) return [told, 'participants.max_heart_rate'];
  const years = born === undefined ? 0 : Number(day.slice(0, 4)) - born;
  if (years >= 1 && years <= 150) return [208 - 0.7 * years, 'participants.birth_year'];
  const age = findAge(stored, user);
  return age === undefined ? undefined : [208 - 0.7 * age, 'personal_info.age'];
}

/** Minutes by zone, from the first, which begins at half of the highest. */
function zonesOf(bpms: readonly number[], highest: number): number[] {
  const zones = [0, 0, 0, 0, 0];
  for (const bpm of bpms) {
    const zone = [0.5, 0.6, 0.7, 0.8, 0.9].findLastIndex(share => bpm >= share * highest);
    if (zone >= 0) zones[zone]!++;
  }
  return zones;
}

const local = (when: { micros: number; offset: number } | null) => when && add(when.micros, when.offset);

export function workouts(stored: readonly Stored[], heartRate: readonly StoredHeartRate[]): Row[] {
  const moments = groupBy(heartRateMoments(heartRate), row => row.user_id as string);
  const allNights = groupBy(nights(stored), row => row.user_id as string);
  return of(stored, 'workout').map(workout => {
    const { user, document } = workout;
    const [start, end] = [moment(document, 'start_datetime'), moment(document, 'end_datetime')];
    const span = spanOf(workout);
    const until = span?.until ?? null;
    const within = (moments.get(user) ?? []).filter(
      ({ ts }) => span && until !== null && (ts as number) >= span.from && (ts as number) < until,
    );
    const minutes = groupBy(within, ({ ts }) => String(Math.floor(((ts as number) - span!.from) / MINUTE)));
    const means = [...minutes.values()].map(rows => mean(rows.map(({ bpm }) => bpm as number))!);
    const [highest, from] = findMaximum(stored, user, get(document, 'day')) ?? [null, null];
    const zones = highest !== null && means.length ? zonesOf(means, highest) : undefined;
    const after = (allNights.get(user) ?? [])
      .filter(row => until !== null && row.bedtime_start !== null && (row.bedtime_start as number) >= until)
      .sort((a, b) => (a.bedtime_start as number) - (b.bedtime_start as number))[0];
    const night = after && (after.bedtime_start as number) - until! <= DAY ? after : undefined;
    return {
      user_id: user,
      day: get(document, 'day'),
      workout_id: get(document, 'id'),
      ...Object.fromEntries(['activity', 'intensity', 'source', 'label', 'calories', 'distance'].map(key => [key, get(document, key)])),
      start_datetime: start?.micros ?? null,
      start_datetime_offset: start?.offset ?? null,
      end_datetime: end?.micros ?? null,
      end_datetime_offset: end?.offset ?? null,
      start_local: local(start),
      end_local: local(end),
      minutes: span && until !== null ? (until - span.from) / MINUTE : null,
      measured_minutes: means.length,
      average_heart_rate: mean(means),
      highest_heart_rate: within.length ? Math.max(...within.map(({ bpm }) => bpm as number)) : null,
      max_heart_rate: highest,
      max_heart_rate_from: from,
      ...Object.fromEntries([1, 2, 3, 4, 5].map(zone => [`zone_${zone}_minutes`, zones?.[zone - 1] ?? null])),
      load: zones?.reduce((sum, minutes, i) => sum + (i + 1) * minutes, 0) ?? null,
      night_day: night?.day ?? null,
      ...Object.fromEntries(
        ['sleep_id', 'total_sleep_duration', 'deep_sleep_duration', 'lowest_heart_rate', 'average_hrv'].map(key => [
          `night_${key}`,
          night?.[key] ?? null,
        ]),
      ),
    };
  });
}
