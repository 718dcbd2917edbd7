import { extent } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import type { AnswerOf } from '../../api/routes.ts';
import type { DataTable } from '../parts/data-table.ts';
import { localText, offsetName } from '../parts/format.ts';

export type Day = AnswerOf<'GET people/:id/day/:day'>;
export type DayEvent = Day['events'][number];

const BUCKET = 300;

/** Five minutes of a day. */
export interface Bucket {
  at: number;
  lowest: number | null;
  median: number | null;
  highest: number | null;
  source: string | null;
  met: number | null;
}

/** All 5 minutes of the day, those without a measurement too. */
export function bucketsOf({ start, end, heart_rate, met }: Day): Bucket[] {
  const heartAt = new Map(heart_rate.start.map((at, row) => [at, row]));
  const metAt = new Map(met.start.map((at, row) => [at, row]));
  const buckets: Bucket[] = [];
  for (let at = Math.floor(start / BUCKET) * BUCKET; at < end; at += BUCKET) {
    const row = heartAt.get(at) ?? -1;
    buckets.push({
      at,
      lowest: heart_rate.lowest[row] ?? null,
      median: heart_rate.median[row] ?? null,
      highest: heart_rate.highest[row] ?? null,
      source: heart_rate.source[row] ?? null,
      met: met.met[metAt.get(at) ?? -1] ?? null,
    });
  }
  return buckets;
}

/** Neighbours that are alike, from the first to behind the last. */
export function stretchesBy<Value>(buckets: readonly Bucket[], toValue: (bucket: Bucket) => Value): { value: Value; buckets: Bucket[] }[] {
  const stretches: { value: Value; buckets: Bucket[] }[] = [];
  for (const bucket of buckets) {
    const value = toValue(bucket);
    const last = stretches.at(-1);
    if (last && last.value === value) last.buckets.push(bucket);
    else stretches.push({ value, buckets: [bucket] });
  }
  return stretches;
}

/** Whether something can have come of these 5 minutes by now. */
export const isOver = ({ until }: Pick<Day, 'until'>, { at }: Bucket) => at < until;

/** Where there is no value for 10 minutes and more. */
export const gapsOf = (
  { until }: Pick<Day, 'until'>,
  buckets: readonly Bucket[],
  toValue: (bucket: Bucket) => number | null,
): { start: number; end: number }[] =>
  stretchesBy(buckets, bucket => toValue(bucket) !== null).flatMap(({ value, buckets: run }) => {
    const [first] = run;
    if (value || !first) return [];
    const gap = { start: first.at, end: Math.min(until, first.at + run.length * BUCKET) };
    return gap.end - gap.start < 2 * BUCKET ? [] : [gap];
  });

/** Seconds east of UTC at a moment. */
export const offsetAt = ({ clocks }: Pick<Day, 'clocks'>, at: number) =>
  (clocks.findLast(({ start }) => start <= at) ?? clocks[0])?.offset ?? 0;

/** Shares of the maximum at which zones begin. */
const ZONES = [0.5, 0.6, 0.7, 0.8, 0.9] as const;

/** The heart rates between which it is drawn; null where none came. */
export function heartRange(buckets: readonly Bucket[]): readonly [low: number, high: number] | null {
  const [low, high = 0] = extent(buckets.flatMap(({ lowest, highest }) => [lowest, highest]).filter(rate => rate !== null));
  if (low === undefined) return null;
  const [from = low, to = high] = scaleLinear([low, Math.max(high, low + 1)], [0, 1])
    .nice(5)
    .domain();
  return [from, to];
}

/** Shares of the maximum whose lines are in view. */
export function zonesInView(maximum: number, range: ReturnType<typeof heartRange>): number[] {
  return range === null ? [] : ZONES.filter(share => share * maximum >= range[0] && share * maximum <= range[1]);
}

export const tagName = (name: string) => name.replace(/^tag_(generic_)?/, '').replaceAll('_', ' ');

export function tableOf(day: Day): DataTable {
  const buckets = bucketsOf(day);
  return [
    { name: 'local time', values: buckets.map(({ at }) => localText(at, offsetAt(day, at))) },
    { name: 'offset', values: buckets.map(({ at }) => offsetName(offsetAt(day, at))) },
    { name: 'heart rate, median [beats/min]', values: buckets.map(({ median }) => median) },
    { name: 'lowest', values: buckets.map(({ lowest }) => lowest) },
    { name: 'highest', values: buckets.map(({ highest }) => highest) },
    { name: 'source', values: buckets.map(({ source }) => source) },
    { name: 'MET', values: buckets.map(({ met }) => (met === null ? null : Math.round(met * 100) / 100)) },
  ];
}
