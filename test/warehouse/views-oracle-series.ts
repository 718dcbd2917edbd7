import { findInstant } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { add, dayOf, get, groupBy, moment, of, type Row, SECOND, type Stored, type StoredHeartRate, samples } from './views-oracle.ts';
import { workoutAt } from './views-oracle-workouts.ts';

const CLASSES: Record<string, string> = { 0: 'non_wear', 1: 'rest', 2: 'inactive', 3: 'low', 4: 'medium', 5: 'high' };

/** Where an activity without a timestamp begins, its MET samples say. */
const begins = (activity: WireDocument) => moment(activity, 'timestamp') ?? findInstant(get(activity, 'met', 'timestamp') ?? '') ?? null;

export const activityClasses = (stored: readonly Stored[]): Row[] =>
  of(stored, 'daily_activity').flatMap(({ user, document }) => {
    const start = begins(document);
    return [...(get(document, 'class_5_min') ?? '')].map((code, position) => ({
      user_id: user,
      day: get(document, 'day'),
      activity_id: get(document, 'id'),
      position,
      ts: start && add(start.micros, position * 300),
      utc_offset: start?.offset ?? null,
      seconds: 300,
      class: CLASSES[code] ?? null,
      code,
    }));
  });

/** From its first sample on, up to its last one's end. */
function spanOf(activity: WireDocument): { from: number; until: number } | undefined {
  const start = findInstant(get(activity, 'met', 'timestamp') ?? '');
  return start && { from: start.micros, until: start.micros + samples(activity, 'met').length * get(activity, 'met', 'interval') * SECOND };
}

/** A minute that an activity and one of the two that start next, or alike and were stored later, tell is that of the later one. */
export const metMinutes = (stored: readonly Stored[]): Row[] => {
  const activities = of(stored, 'daily_activity').map(each => ({ ...each, span: spanOf(each.document) }));
  const byUser = groupBy(
    activities.flatMap(({ user, sk, span }) => (span ? { user, sk, span } : [])),
    ({ user }) => user,
  );
  return activities.flatMap(({ user, document, sk, span }) => {
    const start = begins(document);
    const codes = [...(get(document, 'class_5_min') ?? '')];
    const later = (byUser.get(user) ?? [])
      .filter(other => span && (other.span.from > span.from || (other.span.from === span.from && other.sk > sk)))
      .sort((a, b) => a.span.from - b.span.from || a.sk - b.sk)
      .slice(0, 2);
    const own = samples(document, 'met').filter(({ ts }) => !later.some(other => other.span.from <= ts && ts < other.span.until));
    return own.map(({ ts, utc_offset, value }) => ({
      user_id: user,
      day: get(document, 'day'),
      ts,
      utc_offset,
      seconds: get(document, 'met', 'interval'),
      met: value,
      met_minutes: value === null ? null : (value * get(document, 'met', 'interval')) / 60,
      class: (start && CLASSES[codes[Math.floor((ts - start.micros) / (300 * SECOND))] ?? '']) ?? null,
    }));
  });
};

export function heartRateSources(stored: readonly Stored[], heartRate: readonly StoredHeartRate[]): Row[] {
  const day = (ts: number, offset: number) => dayOf(add(ts, offset)!);
  const measured = heartRate.map(({ user, row }) => {
    const { micros, offset } = findInstant(get(row, 'timestamp'))!;
    return {
      user_id: user,
      day: day(micros, offset),
      ts: micros,
      utc_offset: offset,
      bpm: get(row, 'bpm'),
      source: get(row, 'source'),
      origin: 'heart_rate',
      sk: null,
      seconds: null,
    };
  });
  const sampled = ['sleep', 'session'].flatMap(origin =>
    of(stored, origin).flatMap(({ user, sk, document }) =>
      samples(document, 'heart_rate')
        .filter(({ value }) => value !== null)
        .map(({ ts, utc_offset, value }) => ({
          user_id: user,
          day: day(ts, utc_offset),
          ts,
          utc_offset,
          bpm: value,
          source: origin,
          origin,
          sk,
          seconds: get(document, 'heart_rate', 'interval'),
        })),
    ),
  );
  return [...measured, ...sampled];
}

/** The rows of heart_rate; no two of the random ones are of one moment. */
export const heartRateMoments = (heartRate: readonly StoredHeartRate[]): Row[] => heartRateSources([], heartRate);

/** Each moment once, by walking through the moments of one person: what lies in the interval of a sample takes its place. */
export function heartRateAll(stored: readonly Stored[], heartRate: readonly StoredHeartRate[]): Row[] {
  const everything = groupBy(heartRateSources(stored, heartRate), row => row.user_id as string);
  return [...everything.values()].flatMap(person => {
    const measured = person.filter(row => row.origin === 'heart_rate');
    const isMeasuredWithin = (from: number, seconds: number) =>
      measured.some(({ ts }) => (ts as number) >= from && (ts as number) < from + Math.min(seconds, 86_400) * SECOND);
    const samples = groupBy(
      person.filter(row => row.origin !== 'heart_rate'),
      row => String(row.ts),
    );
    const kept = [...samples.values()].flatMap(ofMoment => {
      if (ofMoment.some(row => isMeasuredWithin(row.ts as number, row.seconds as number))) return [];
      return [ofMoment.reduce((last, row) => ((row.sk as number) > (last.sk as number) ? row : last))];
    });
    const workouts = of(stored, 'workout').filter(({ user }) => user === person[0]!.user_id);
    return [...measured, ...kept].map(row => ({ ...row, workout_id: workoutAt(workouts, row.ts as number) }));
  });
}
