import { median } from 'd3-array';
import { numberText } from './number-text.ts';
import { type Chart, type Data, gapOf, numberOf, sortOf, timeOf } from './propose.ts';

/** What is drawn: each point with what it stands for. */
export interface Point {
  /** Milliseconds, a number, or the place of a category. */
  x: number;
  y: number;
  /** What x is, in words. */
  at: string;
  series: string;
}

/** A chart as numbers, before it has a width. */
export interface Model {
  kind: Chart['kind'];
  xName: string;
  yName: string;
  isTime: boolean;
  points: Point[];
  /** Of a line: where there is a row, but no value. */
  holes: { x: number; y: null; series: string }[];
  series: string[];
  /** Of bars and heat maps, in the order of the rows. */
  categories: string[];
  /** Rows that are not drawn: a value is missing, or has no place on an axis. */
  missing: number;
  endless: number;
  /** Of a line: from which distance on two points are not joined. */
  gap: number;
}

/** What a chart draws of a result. */
export function modelOf({ kind, x, y, by }: Chart, data: Data): Model {
  const xColumn = x === null ? undefined : data.columns[x];
  const isTime = (kind === 'line' || kind === 'points') && xColumn !== undefined && sortOf(xColumn) === 'time';
  const texts = (at: number | null) => (at === null ? undefined : data.values[at]);
  const categories = kind === 'bars' || kind === 'heat' ? valuesOf(texts(x), xColumn && sortOf(xColumn) === 'number') : [];
  const placeOf = new Map(categories.map((name, place) => [name, place]));
  const points: Point[] = [];
  const holes: Model['holes'] = [];
  let endless = 0;
  for (let row = 0; row < data.rows; row++) {
    const text = texts(x)?.[row] ?? null;
    const number = data.values[y]?.[row] ?? null;
    const value = numberOf(number);
    const place = placeAt(text);
    if ((value === null && number !== null) || (place === null && text !== null)) endless++;
    const series = by === null ? '' : nameOf(texts(by)?.[row] ?? null);
    if (place === null) continue;
    if (value === null) holes.push({ x: place, y: null, series });
    else points.push({ x: place, y: value, at: nameOf(text), series });
  }
  function placeAt(text: string | null): number | null {
    if (x === null) return 0;
    if (categories.length) return placeOf.get(nameOf(text)) ?? null;
    return isTime ? timeOf(text) : numberOf(text);
  }
  if (kind === 'line') points.sort((a, b) => a.x - b.x);
  const ofBy = by === null ? [''] : valuesOf(texts(by), sortOf(data.columns[by] ?? { name: '', type: '', numeric: false }) === 'number');
  return {
    kind,
    xName: xColumn?.name ?? '',
    yName: data.columns[y]?.name ?? '',
    isTime,
    points,
    holes,
    series: ofBy,
    categories,
    missing: data.rows - points.length - endless,
    endless,
    gap: kind === 'line' ? gapOf([...points, ...holes]) : 0,
  };
}

/** NULL is told from texts that look like it: those, and an empty one, stand in quotes. */
const nameOf = (text: string | null) => (text === null ? 'NULL' : /^“*(NULL)?”*$/.test(text) ? `“${text}”` : text);

/** Each value once: as they come, numbers in their order. */
function valuesOf(texts: readonly (string | null)[] = [], isNumber = false): string[] {
  const values = [...new Set(texts)].map(nameOf);
  return isNumber ? values.sort((a, b) => Number(a) - Number(b)) : values;
}

/** What the chart shows, in a sentence. */
export function findingOf({ kind, points, xName, yName, missing, endless, series, gap, isTime }: Model): string {
  if (!points.length) return 'There is no value to draw.';
  const sorted = [...points].sort((a, b) => a.y - b.y);
  const [lowest, highest] = [sorted[0], sorted.at(-1)];
  const placeOf = (point: Point | undefined) =>
    kind === 'histogram' || !point ? '' : kind === 'points' ? `${xName} ${point.at}` : point.at;
  const name = (point: Point | undefined) => [point?.series, placeOf(point)].filter(Boolean).join(', ');
  const end = (point: Point | undefined) => `${numberText(point?.y ?? 0)}${name(point) ? ` (${name(point)})` : ''}`;
  const middle = numberText(median(sorted, ({ y }) => y) ?? 0);
  const of = series.length > 1 ? ` of ${series.length} series` : '';
  const left = [leftOut(missing, 'no value'), leftOut(endless, 'a value without a place on an axis, as nan or inf,')].join('');
  const broken = kind === 'line' && isTime && Number.isFinite(gap) ? ' The line is broken where values are missing.' : '';
  return `${yName}: ${points.length} values${of}, lowest ${end(lowest)}, median ${middle}, highest ${end(highest)}.${left}${broken}`;
}

const leftOut = (rows: number, what: string) =>
  rows ? ` ${rows} ${rows === 1 ? 'row has' : 'rows have'} ${what} and ${rows === 1 ? 'is' : 'are'} not drawn.` : '';
