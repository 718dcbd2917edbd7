import { clamp, round } from './random.ts';

/** A score or a share of one: a whole number from 1 to 100. */
export const score = (value: number) => clamp(round(value), 1, 100);

/** The score at `x` on the line through `scores` at the ascending `points`; flat beyond its ends. */
export function along(x: number, points: readonly number[], scores: readonly number[]): number {
  const next = points.findIndex(point => x < point);
  if (next === 0) return score(scores[0]!);
  if (next < 0) return score(scores.at(-1)!);
  const through = (x - points[next - 1]!) / (points[next]! - points[next - 1]!);
  return score(scores[next - 1]! + (scores[next]! - scores[next - 1]!) * through);
}

/** The score that contributors make by their weights. */
export function weigh<K extends string>(contributors: Record<K, number>, weights: Record<K, number>): number {
  let sum = 0;
  let total = 0;
  for (const key of Object.keys(weights) as K[]) {
    sum += contributors[key] * weights[key];
    total += weights[key];
  }
  return score(sum / total);
}
