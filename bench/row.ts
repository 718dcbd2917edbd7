import type { Cost } from './task.ts';

/** What every row is measured with. */
export interface Bench {
  /** Of both sides, one after the other. */
  rounds: number;
  /** Of what does not depend on the machine's load: memory and disk. */
  sizeRounds: number;
  /** User-years of the write path and of disk. */
  years: number;
  /** User-years where all seven collections are measured. */
  allYears: number;
  /** User-years of the larger of the two sizes of which memory is measured, of all seven. */
  manyAllYears: number;
  /** People whose year is there, of each size at which nothing new is found: five at least. */
  settledPeople: readonly number[];
  /** Days of which the syncs come in one by one. */
  syncDays: number;
  /** Of whom half are erased, and of whom everything is rewritten. */
  erasePeople: number;
  /** Of 1.5 times as many years of people a snapshot is kept. */
  manyYears: number;
  /** User-years of the samples that questions are asked over. */
  questionYears: number;
  /** Whose years are planned. */
  planAccounts: number;
  /** Days of the 50 people whom the console shows. */
  consoleDays: number;
  /** Of events. */
  eventRounds: number;
  /** How long events are sent, but for the burst, which has its own time. */
  eventSeconds: number;
  /** How long nothing happens where idling is measured. */
  idleSeconds: number;
  /** An empty folder for one measurement; the one before it is removed. */
  newFolder(): string;
  say(text: string): void;
}

/** A line of the table. */
export interface Row {
  what: string;
  against: string;
  limit: string;
  measured: string;
  holds: boolean;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The value that so large a part of all does not exceed. */
export function quantile(values: readonly number[], part: number): number {
  return [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(values.length * part) - 1)] ?? Number.NaN;
}

/** Of the medians of one measure over all rounds: ours by the limit's. */
export function ratioOf<Key extends string>(ours: readonly Record<Key, number>[], limit: readonly Record<Key, number>[], key: Key): number {
  return median(ours.map(cost => cost[key])) / median(limit.map(cost => cost[key]));
}

/** Throws when two sides did not do the same. */
export function ensureEqual(what: string, ours: unknown, limit: unknown): void {
  if (JSON.stringify(ours) === JSON.stringify(limit)) return;
  throw new Error(
    `${what}: the two sides differ, so there is no ratio\nours:  ${JSON.stringify(ours, null, 1)}\nlimit: ${JSON.stringify(limit, null, 1)}`,
  );
}

/** Of the medians of one measure over all rounds: ours by the limit's, with both. */
export function showRatio<Key extends string>(
  ours: readonly Record<Key, number>[],
  limit: readonly Record<Key, number>[],
  key: Key,
): string {
  const seconds = (costs: readonly Record<Key, number>[]) => `${median(costs.map(cost => cost[key])).toFixed(2)} s`;
  return `${ratioOf(ours, limit, key).toFixed(2)}× (${seconds(ours)} / ${seconds(limit)})`;
}

export const showCost = ({ cpu, wall, peak }: Cost) => `CPU ${cpu.toFixed(2)} s, wall ${wall.toFixed(2)} s, ${inMegabytes(peak)}`;

export const inMegabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
