import type { Column } from './result.ts';

export const CHARTS = ['line', 'points', 'bars', 'heat', 'histogram'] as const;
export type ChartKind = (typeof CHARTS)[number];

/** A chart of a result: its kind, and by their place the columns that it draws. */
export interface Chart {
  kind: ChartKind;
  x: number | null;
  y: number;
  /** A series for each of its values; of a heat map the rows. */
  by: number | null;
}

export interface Data {
  columns: readonly Column[];
  values: readonly (readonly (string | null)[])[];
  rows: number;
}

export type Sort = 'time' | 'number' | 'text' | 'other';

/** Series of a line, bars, and rows or columns of a heat map. */
export const MOST_SERIES = 12;
export const MOST_BARS = 60;
const MOST_FEW = 60;

export function sortOf({ type, numeric }: Column): Sort {
  if (numeric) return 'number';
  if (/^(DATE|TIMESTAMP.*)$/.test(type)) return 'time';
  return /^(VARCHAR|BOOLEAN|UUID|TIME|ENUM.*)$/.test(type) ? 'text' : 'other';
}

/** What a column may stand for in a chart of this kind. */
export const slots: Readonly<Record<ChartKind, { x: readonly Sort[] | null; by: readonly Sort[] | null; needsBy: boolean }>> = {
  line: { x: ['time'], by: ['text'], needsBy: false },
  points: { x: ['number', 'time'], by: null, needsBy: false },
  bars: { x: ['text', 'time'], by: null, needsBy: false },
  heat: { x: ['text', 'time', 'number'], by: ['text', 'time', 'number'], needsBy: true },
  histogram: { x: null, by: null, needsBy: false },
};

/**
 * The chart that fits the types of the columns: of a date and a number a line, a line for each of up to twelve texts; of a text and a number
 * bars; of two columns of few values and a number a heat map; of two numbers points; of a number a histogram. Undefined: none.
 */
export function propose(data: Data): Chart | undefined {
  if (data.rows < 2) return undefined;
  const drawable = (kind: ChartKind) => candidates(kind, data).find(chart => whyNot(chart, data) === undefined);
  // Two numbers may be keys of a heat map too: that is for who chooses it.
  const byTexts = (chart: Chart | undefined) => (chart && [chart.x, chart.by].some(at => isNumber(data, at)) ? undefined : chart);
  return drawable('line') ?? drawable('bars') ?? byTexts(drawable('heat')) ?? drawable('points') ?? drawable('histogram');
}

/** The columns that a chart of this kind would draw, where there are any. */
export function fill(kind: ChartKind, data: Data): Chart | undefined {
  const all = candidates(kind, data);
  return all.find(chart => whyNot(chart, data) === undefined) ?? all[0];
}

/** Why a chart would say something wrong, in a sentence; undefined: it does not. */
export function whyNot(chart: Chart, data: Data): string | undefined {
  const { kind, x, by } = chart;
  const name = (at: number | null) => data.columns[at ?? -1]?.name ?? '';
  if (kind === 'line') {
    if (by !== null && distinct(data, by) > MOST_SERIES) return `“${name(by)}” has more than ${MOST_SERIES} values: ask for fewer.`;
    if (!isUnique(data, [x, by]))
      return `Several rows have the same “${name(x)}”${by === null ? '' : ` and “${name(by)}”`}: group them, or choose a column that tells them apart.`;
  }
  if (kind === 'bars') {
    if (data.rows > MOST_BARS) return `More than ${MOST_BARS} rows: ask for fewer.`;
    if (!isUnique(data, [x])) return `Several rows have the same “${name(x)}”: group them.`;
  }
  if (kind === 'heat') {
    for (const at of [x, by]) if (at !== null && distinct(data, at) > MOST_FEW) return `“${name(at)}” has more than ${MOST_FEW} values.`;
    if (!isUnique(data, [x, by])) return `Several rows have the same “${name(x)}” and “${name(by)}”: group them.`;
  }
  return undefined;
}

function candidates(kind: ChartKind, data: Data): Chart[] {
  const { x: ofX, by: ofBy, needsBy } = slots[kind];
  const charts: Chart[] = [];
  const numbers = placesOf(data, ['number']);
  for (const x of ofX ? placesOf(data, ofX) : [null]) {
    const others = (ofBy ? placesOf(data, ofBy) : []).filter(at => at !== x);
    for (const by of needsBy ? others : [null, ...others]) {
      const y = numbers.find(at => at !== x && at !== by);
      if (y !== undefined) charts.push({ kind, x, y, by });
    }
  }
  return charts;
}

const isNumber = ({ columns }: Data, at: number | null) => at !== null && columns[at]?.numeric === true;

/** In the order in which the kinds are named, then in that of the columns. */
const placesOf = ({ columns }: Data, sorts: readonly Sort[]) =>
  sorts.flatMap(sort => columns.flatMap((column, at) => (sortOf(column) === sort ? [at] : [])));

/** Of columns that were counted: each is asked for by several charts. */
const counted = new WeakMap<readonly unknown[], number>();

/** How many values a column has, as far as that matters. */
function distinct({ values }: Data, at: number): number {
  const texts = values[at] ?? [];
  const known = counted.get(texts);
  if (known !== undefined) return known;
  const found = new Set<string | null>();
  for (const text of texts) if (found.add(text).size > MOST_FEW) break;
  counted.set(texts, found.size);
  return found.size;
}

function isUnique({ values, rows }: Data, places: readonly (number | null)[]): boolean {
  const keys = new Set<string>();
  for (let row = 0; row < rows; row++) {
    if (keys.add(JSON.stringify(places.map(at => (at === null ? '' : values[at]?.[row])))).size <= row) return false;
  }
  return true;
}

/** Milliseconds since the epoch of a DATE or a TIMESTAMP, one without a zone as UTC; null: not on the clock. */
export function timeOf(text: string | null): number | null {
  const [, day, clock = '00:00:00', offset] =
    /^(\d{4,}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*)?([+-]\d\d(?::\d\d)?)?$/.exec(text ?? '') ?? [];
  const time = day === undefined ? Number.NaN : Date.parse(`${day}T${clock}${offset === undefined ? 'Z' : offset.padEnd(6, ':00')}`);
  return Number.isNaN(time) ? null : time;
}

export function numberOf(text: string | null): number | null {
  const value = text ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : null;
}

export const DAY = 86_400_000;

/** Days, and moments that come by the clock, are missing where the next is further than usual; others come less regularly. */
export function gapOf(points: readonly { x: number }[]): number {
  const instants = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  const steps = instants.slice(1).map((x, i) => x - (instants[i] ?? 0));
  const usual = steps.sort((a, b) => a - b)[Math.floor((steps.length - 1) / 2)] ?? 0;
  const isRegular = instants.every(x => x % DAY === 0) || steps.every(step => step % usual === 0);
  return usual * (isRegular ? 1.5 : 5) || Number.POSITIVE_INFINITY;
}
