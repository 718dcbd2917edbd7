import type { AnswerOf } from '../../api/routes.ts';
import { addDays, dayNumber, dayOfNumber } from '../parts/format.ts';

type Raster = AnswerOf<'GET people/:id/raster'>;

const DAY = 86_400;
const NOON = DAY / 2;

/** A stretch within one row: seconds from noon to noon. */
export interface Piece {
  row: number;
  from: number;
  to: number;
  /** d, l, r, a, or ? */
  stage: string;
}

export interface RasterRow {
  /** The day of waking; the row begins at noon of the day before. */
  day: string;
  hasNight: boolean;
  /** Of the main sleep, as it began and as it ended; null: there is none. */
  offset: number | null;
  endOffset: number | null;
  /** Instants of the main sleep. */
  start: number | null;
  end: number | null;
}

export interface RasterModel {
  rows: RasterRow[];
  pieces: Piece[];
  /** Where another offset begins. */
  moves: { row: number; offset: number }[];
}

/** Nights below each other, from noon to noon by the clock that each began with, or by UTC. */
export function rasterModel({ from, to, sleeps, stages }: Raster, clock: 'own' | 'utc'): RasterModel {
  const first = dayNumber(from);
  const rows = Array.from({ length: dayNumber(to) - first + 1 }, (_, row): RasterRow => {
    return { day: dayOfNumber(first + row), hasNight: false, offset: null, endOffset: null, start: null, end: null };
  });
  const pieces: Piece[] = [];
  let stretch = 0;
  for (const [at, start] of sleeps.start.entries()) {
    const offset = sleeps.offset[at] ?? 0;
    const row = rows[dayNumber(sleeps.day[at] ?? from) - first];
    if (row && sleeps.is_main[at]) {
      Object.assign(row, { hasNight: true, offset, endOffset: sleeps.end_offset[at] ?? offset, start, end: sleeps.end[at] ?? start });
    }
    let moment = start + (clock === 'own' ? offset : 0);
    for (let left = sleeps.stretches[at] ?? 0; left > 0; left--, stretch++) {
      const until = moment + (stages.seconds[stretch] ?? 0);
      pieces.push(...cutAtNoon(moment, until, stages.letters[stretch] ?? '?', first).filter(piece => rows[piece.row] !== undefined));
      moment = until;
    }
  }
  return { rows, pieces, moves: movesOf(rows) };
}

/** By rows: the one of a moment is that of the day that follows its noon. @param from seconds since 1970 by a clock on the wall */
function cutAtNoon(from: number, until: number, stage: string, first: number): Piece[] {
  const pieces: Piece[] = [];
  for (let begin = from; begin < until; ) {
    const number = Math.floor((begin + NOON) / DAY);
    const noon = number * DAY - NOON;
    const end = Math.min(until, noon + DAY);
    pieces.push({ row: number - first, from: begin - noon, to: end - noon, stage });
    begin = end;
  }
  return pieces;
}

function movesOf(rows: readonly RasterRow[]): RasterModel['moves'] {
  const moves: RasterModel['moves'] = [];
  let known: number | null = null;
  for (const [row, { offset, endOffset }] of rows.entries()) {
    if (offset === null || endOffset === null) continue;
    if (offset !== known) moves.push({ row, offset });
    if (endOffset !== offset) moves.push({ row, offset: endOffset });
    known = endOffset;
  }
  return moves;
}

/** What lies at a time of a row; undefined: nothing is known of it. @param seconds from noon */
export const stageAt = ({ pieces }: RasterModel, row: number, seconds: number): string | undefined =>
  pieces.find(piece => piece.row === row && piece.from <= seconds && seconds < piece.to)?.stage;

export interface CalendarDay {
  day: string;
  /** Weeks from the first, days from Monday. */
  week: number;
  weekday: number;
  score: number | null;
}

/** A square for each day, a column for each ISO week. */
export function calendarModel({ from, to, scores }: Pick<Raster, 'from' | 'to' | 'scores'>): CalendarDay[] {
  const scoreOf = new Map(scores.day.map((day, at) => [day, scores.score[at] ?? null]));
  const first = dayNumber(from);
  // 1 January 1970 was a Thursday.
  const monday = first - ((first + 3) % 7);
  return Array.from({ length: dayNumber(to) - first + 1 }, (_, at) => {
    const day = addDays(from, at);
    const since = first + at - monday;
    return { day, week: Math.floor(since / 7), weekday: since % 7, score: scoreOf.get(day) ?? null };
  });
}

/** Least scores of the fixed bins. */
export const BINS = [0, 60, 70, 78, 85] as const;
export const binOf = (score: number) => BINS.findLastIndex(least => score >= least);

/** The mean of each month of which there are scores, in order: `2026-11`. */
export function monthlyMeans(days: readonly CalendarDay[]): { month: string; week: number; mean: number | null }[] {
  const months = [...new Set(days.map(({ day }) => day.slice(0, 7)))];
  return months.map(month => {
    const own = days.filter(({ day }) => day.startsWith(month));
    const scores = own.flatMap(({ score }) => (score === null ? [] : [score]));
    return { month, week: own[0]?.week ?? 0, mean: scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : null };
  });
}

/** Pixels that a mean needs. */
const MEAN_WIDTH = 28;

/** The months whose mean has room, from the last one on: the days of the first may be few, and give way to a whole one. */
export function meansInView(days: readonly CalendarDay[], { left, size }: { left: number; size: number }) {
  const shown: { month: string; mean: number | null; x: number }[] = [];
  for (const { month, week, mean } of monthlyMeans(days).toReversed()) {
    const x = left + week * size;
    if (x + MEAN_WIDTH <= (shown[0]?.x ?? Number.POSITIVE_INFINITY)) shown.unshift({ month, mean, x });
  }
  return shown;
}
