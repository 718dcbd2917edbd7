import { clamp, round } from './random.ts';

/** A score or a share of one: a whole number from 1 to 100. */
export const score = (value: number) => clamp(round(value), 1, 100);

/** A whole night's mean HRV is somewhat lower than a person's own. */
export const USUAL_HRV = 0.87;

/** The score at `x` on the line through `scores` at the ascending `points`; flat beyond its ends. */
export function along(x: number, points: readonly number[], scores: readonly number[]): number {
  let [left = 0] = points;
  let [value = 0] = scores;
  for (const [i, reached] of scores.entries()) {
    const right = points[i] ?? left;
    if (x < right) return score(i === 0 ? value : value + (reached - value) * ((x - left) / (right - left)));
    [left, value] = [right, reached];
  }
  return score(value);
}

/** What each contributor weighs in the score of its document. */
export const WEIGHTS = {
  daily_sleep: { total_sleep: 35, efficiency: 10, restfulness: 15, rem_sleep: 12, deep_sleep: 12, latency: 8, timing: 8 },
  daily_readiness: {
    activity_balance: 10,
    body_temperature: 10,
    hrv_balance: 15,
    previous_day_activity: 8,
    previous_night: 18,
    recovery_index: 10,
    resting_heart_rate: 14,
    sleep_balance: 10,
    sleep_regularity: 5,
  },
  daily_activity: {
    meet_daily_targets: 25,
    move_every_hour: 12,
    recovery_time: 13,
    stay_active: 20,
    training_frequency: 15,
    training_volume: 15,
  },
} as const;

/** The score that contributors make: their mean by their weights, rounded. */
export function weigh<K extends string>(contributors: Record<K, number>, weights: Readonly<Record<K, number>>): number {
  let sum = 0;
  let total = 0;
  for (const key of Object.keys(weights) as K[]) {
    sum += contributors[key] * weights[key];
    total += weights[key];
  }
  return score(sum / total);
}
