import type { AnswerOf } from '../../api/routes.ts';
import type { DataTable } from '../parts/data-table.ts';
import { localText } from '../parts/format.ts';

export type Sleep = AnswerOf<'GET people/:id/night/:day'>['sleeps'][number];
type Series = NonNullable<Sleep['hrv']>;

/** Seconds without a value from which a gap is hatched; shorter ones break the line. */
const HATCHED = 600;
const MOVEMENT_STEP = 30;
/** Digits of movement that are one bar. */
const DIGITS = 10;

export const STAGES = ['awake', 'rem', 'light', 'deep'] as const;
export type Stage = (typeof STAGES)[number];
export const STAGE_NAMES: Readonly<Record<Stage, string>> = { awake: 'Awake', rem: 'REM', light: 'Light', deep: 'Deep' };

export interface Span {
  start: number;
  seconds: number;
  stage: Stage | null;
}

export interface Sample {
  at: number;
  value: number;
}

export interface Gap {
  start: number;
  end: number;
}

export function spansOf({ stages }: Sleep): Span[] {
  return stages.start.map((start, index) => {
    const name = stages.stage[index];
    return { start, seconds: stages.seconds[index] ?? 0, stage: STAGES.find(stage => stage === name) ?? null };
  });
}

/** Seconds of a stage. */
export const totalOf = (spans: readonly Span[], stage: Stage) =>
  spans.reduce((sum, span) => (span.stage === stage ? sum + span.seconds : sum), 0);

/** The stretches of a series that have values. */
export function runsOf({ start, interval, values }: Series): Sample[][] {
  const runs: Sample[][] = [];
  let run: Sample[] = [];
  for (const [index, value] of values.entries()) {
    if (value === null) {
      if (run.length) runs.push(run);
      run = [];
    } else run.push({ at: start + index * interval, value });
  }
  return run.length ? [...runs, run] : runs;
}

/** Where a series has no value for 10 minutes and more; what comes before its first and after its last sample is a gap too. */
export function gapsOf({ start, interval, values }: Series, from: number, until: number): Gap[] {
  const gaps: Gap[] = [];
  let open = Math.min(from, start);
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    gaps.push({ start: open, end: start + index * interval });
    open = start + (index + 1) * interval;
  }
  gaps.push({ start: open, end: Math.max(until, start + values.length * interval) });
  return gaps
    .map(gap => ({ start: Math.max(gap.start, from), end: Math.min(gap.end, until) }))
    .filter(gap => gap.end - gap.start >= HATCHED);
}

export function lowestOf(series: Series | null): Sample | undefined {
  return series
    ? runsOf(series)
        .flat()
        .reduce<Sample | undefined>((low, one) => (low && low.value <= one.value ? low : one), undefined)
    : undefined;
}

/** Movement by 5 minutes, 0 (still) to 1; null: no digit that is known. */
export function movementOf({ start, movement }: Sleep): { at: number; seconds: number; value: number | null }[] {
  const bars = [];
  for (let from = 0; from < movement.length; from += DIGITS) {
    const digits = [...movement.slice(from, from + DIGITS)];
    const known = digits.map(Number).filter(digit => digit >= 1 && digit <= 4);
    const value = known.length ? known.reduce((sum, digit) => sum + digit - 1, 0) / known.length / 3 : null;
    bars.push({ at: start + from * MOVEMENT_STEP, seconds: digits.length * MOVEMENT_STEP, value });
  }
  return bars;
}

/** What there is at a moment of a sleep. */
export interface Moment {
  at: number;
  stage: Stage | null;
  heartRate: number | null;
  hrv: number | null;
  movement: number | null;
}

const STEP = 300;

/** The sleep by 5 minutes: of each the stage at its start, and the samples in it. */
export function momentsOf(sleep: Sleep): Moment[] {
  const spans = spansOf(sleep);
  const bars = movementOf(sleep);
  const moments: Moment[] = [];
  for (let at = sleep.start; at < sleep.end; at += STEP) {
    moments.push({
      at,
      stage: spans.find(span => at >= span.start && at < span.start + span.seconds)?.stage ?? null,
      heartRate: valueAt(sleep.heart_rate, at),
      hrv: valueAt(sleep.hrv, at),
      movement: bars[Math.floor((at - sleep.start) / STEP)]?.value ?? null,
    });
  }
  return moments;
}

function valueAt(series: Series | null, at: number): number | null {
  if (!series) return null;
  return series.values[Math.floor((at - series.start + series.interval / 2) / series.interval)] ?? null;
}

export function tableOf(sleep: Sleep): DataTable {
  const moments = momentsOf(sleep);
  return [
    { name: 'local time (offset at bedtime)', values: moments.map(({ at }) => localText(at, sleep.start_offset)) },
    { name: 'stage', values: moments.map(({ stage }) => stage) },
    { name: 'heart rate [beats/min]', values: moments.map(({ heartRate }) => heartRate) },
    { name: 'HRV, rMSSD [ms]', values: moments.map(({ hrv }) => hrv) },
    {
      name: 'movement [0 still to 1]',
      values: moments.map(({ movement }) => (movement === null ? null : Math.round(movement * 100) / 100)),
    },
  ];
}
