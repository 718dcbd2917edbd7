import { bin, extent } from 'd3-array';
import { scaleBand, scaleLinear, scaleUtc } from 'd3-scale';
import { line } from 'd3-shape';
import { MONTHS } from '../../parts/format.ts';
import { Plot } from '../../parts/plot.tsx';
import { numberText, tickTexts } from './number-text.ts';
import { DAY } from './propose.ts';
import type { Model, Point } from './result-model.ts';

const COLOURS = ['data', 'heart', 'rem', 'not-authorised', 'awake', 'light', 'hrv', 'unusual', 'asleep', 'muted', 'deep', 'stored'];

const HEIGHT = 280;
const M = { top: 12, bottom: 28, left: 72, right: 16 };

/** Draws it; the points are also there as data of what is drawn. */
export function ResultChart({ model }: { model: Model }) {
  const { points, kind, yName, xName } = model;
  if (!points.length) return <p class="second">There is no value to draw.</p>;
  const say = (place: number) => {
    const point = points[place];
    if (!point) return '';
    const where = [point.series, kind === 'histogram' ? '' : `${xName} ${point.at}`].filter(Boolean).join(', ');
    return `${where}${where ? ': ' : ''}${yName} ${numberText(point.y)}`;
  };
  const Drawing = { line: Lines, points: Dots, bars: Bars, heat: Heat, histogram: Histogram }[kind];
  return (
    <Plot label={`${yName}${xName ? ` by ${xName}` : ''}`} count={kind === 'histogram' ? 0 : points.length} say={say}>
      {({ width, cursor }) => <Drawing model={model} width={width} cursor={cursor === null ? undefined : points[cursor]} />}
    </Plot>
  );
}

interface DrawingProps {
  model: Model;
  width: number;
  cursor: Point | undefined;
}

type ToPixel = (value: number) => number;

/** For tests: the points of what is drawn as one path. */
const withData = (points: unknown) => (element: Element | null) => void (element && Object.assign(element, { __data__: points }));

function Lines({ model: { points, holes, series, gap, isTime }, width, cursor }: DrawingProps) {
  const right = series.length > 1 ? 120 : 72;
  const { x, y, xTicks, yTicks } = scales(points, width, right, isTime);
  const ends = series.flatMap((name, at) => {
    const of = points.filter(point => point.series === name);
    const last = of.at(-1);
    return last ? [{ name, at, of, last, label: y(last.y) }] : [];
  });
  spread(ends);
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} aria-hidden="true">
      <Axes {...{ x, y, xTicks, yTicks, width, right }} />
      {ends.map(({ name, at, of, last, label }) => (
        <g key={name} class={`sql-series sql-colour-${COLOURS[at % COLOURS.length]}`}>
          <path
            class="sql-line"
            data-series={name}
            ref={withData(of)}
            d={pathOf(
              of,
              holes.filter(hole => hole.series === name),
              { x, y, gap },
            )}
          />
          <circle cx={x(last.x)} cy={y(last.y)} r="3" />
          <text x={width - right + 8} y={label} dy="0.32em">
            {name.slice(0, 12)} {numberText(last.y)}
          </text>
        </g>
      ))}
      {cursor && <Cursor x={x(cursor.x)} y={y(cursor.y)} />}
    </svg>
  );
}

/** Broken where a value is missing, or rows are. */
function pathOf(points: readonly Point[], holes: Model['holes'], { x, y, gap }: { x: ToPixel; y: ToPixel; gap: number }): string {
  const parts: Point[][] = [];
  let before: Point | undefined;
  for (const at of [...points, ...holes].sort((a, b) => a.x - b.x)) {
    if (at.y === null) {
      before = undefined;
      continue;
    }
    if (!before || at.x - before.x > gap) parts.push([]);
    parts.at(-1)?.push(at);
    before = at;
  }
  const draw = line<Point>(
    point => round(x(point.x)),
    point => round(y(point.y)),
  );
  // A point by itself is a line of no length, whose round ends are seen.
  return parts.map(part => (part.length === 1 ? `${draw(part)?.replace('Z', '')}h0` : draw(part))).join('');
}

/** Labels at the ends of lines, so that none covers another. */
function spread(labels: { label: number }[]): void {
  const sorted = [...labels].sort((a, b) => a.label - b.label);
  for (const [i, one] of sorted.entries()) one.label = Math.max(one.label, (sorted[i - 1]?.label ?? 0) + 13);
  const over = (sorted.at(-1)?.label ?? 0) - (HEIGHT - M.bottom);
  if (over > 0) for (const one of sorted) one.label -= over;
}

function Dots({ model: { points, isTime }, width, cursor }: DrawingProps) {
  const { x, y, xTicks, yTicks } = scales(points, width, M.right, isTime);
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} aria-hidden="true">
      <Axes {...{ x, y, xTicks, yTicks, width, right: M.right }} />
      <path class="sql-dots" ref={withData(points)} d={points.map(point => `M${round(x(point.x))},${round(y(point.y))}h0`).join('')} />
      {cursor && <Cursor x={x(cursor.x)} y={y(cursor.y)} />}
    </svg>
  );
}

const BAR_PX = 22;

function Bars({ model: { points, categories }, width, cursor }: DrawingProps) {
  const left = Math.min(width / 3, 24 + 7 * Math.max(...categories.map(name => Math.min(name.length, 24))));
  const height = categories.length * BAR_PX + M.bottom;
  const [low = 0, high = 0] = extent(points, ({ y }) => y);
  const x = scaleLinear([Math.min(0, low), Math.max(0, high)], [left, width - 64]).nice(5);
  const y = scaleBand(categories, [0, height - M.bottom]).padding(0.25);
  return (
    <svg viewBox={`0 0 ${width} ${height}`} height={height} aria-hidden="true">
      {ticksOf(x, 5).map(({ at, text }) => (
        <g key={at} class="axis">
          <line x1={x(at)} x2={x(at)} y1={0} y2={height - M.bottom} />
          <text x={x(at)} y={height - 10} text-anchor="middle">
            {text}
          </text>
        </g>
      ))}
      {points.map(point => {
        const top = y(point.at) ?? 0;
        const end = x(point.y);
        return (
          <g key={point.at} class={point === cursor ? 'sql-here' : ''}>
            <text class="sql-name" x={left - 8} y={top + y.bandwidth() / 2} dy="0.32em" text-anchor="end">
              {point.at.slice(0, 24)}
            </text>
            <rect
              class="data-mark"
              ref={withData(point)}
              x={Math.min(x(0), end)}
              y={top}
              width={Math.abs(end - x(0))}
              height={y.bandwidth()}
            />
            <text class="sql-name" x={Math.max(x(0), end) + 6} y={top + y.bandwidth() / 2} dy="0.32em">
              {numberText(point.y)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

const STEPS = 5;

function Heat({ model: { points, categories, series }, width, cursor }: DrawingProps) {
  const left = Math.min(width / 3, 24 + 7 * Math.max(...series.map(name => Math.min(name.length, 24))));
  const height = Math.max(series.length * BAR_PX, BAR_PX) + M.bottom + 24;
  const [low = 0, high = 0] = extent(points, ({ y }) => y);
  const x = scaleBand(categories, [left, width - M.right]).paddingInner(0.06);
  const y = scaleBand(series, [0, height - M.bottom - 24]).paddingInner(0.06);
  const stepOf = (value: number) => (high > low ? Math.min(STEPS - 1, Math.floor(((value - low) / (high - low)) * STEPS)) : 0);
  const every = Math.max(1, Math.ceil((categories.length * 70) / (width - left)));
  const key = Math.min(90, (width - left) / STEPS);
  const steps = Array.from({ length: STEPS }, (_, step) => ({ step, of: points.filter(point => stepOf(point.y) === step) }));
  const least = tickTexts(steps.map(({ step }) => low + ((high - low) * step) / STEPS));
  const drawn = (of: readonly Point[]) =>
    of
      .map(
        point =>
          `M${round(x(point.at) ?? 0)},${round(y(point.series) ?? 0)}h${round(x.bandwidth())}v${round(y.bandwidth())}h${round(-x.bandwidth())}z`,
      )
      .join('');
  return (
    <svg viewBox={`0 0 ${width} ${height}`} height={height} aria-hidden="true">
      {steps.map(({ step, of }) => (
        <path key={step} class={`sql-step sql-step-${step}`} ref={withData(of)} d={drawn(of)} />
      ))}
      {cursor && <rect class="sql-cell-here" x={x(cursor.at)} y={y(cursor.series)} width={x.bandwidth()} height={y.bandwidth()} />}
      {series.map(name => (
        <text key={name} class="sql-name" x={left - 8} y={(y(name) ?? 0) + y.bandwidth() / 2} dy="0.32em" text-anchor="end">
          {name.slice(0, 24)}
        </text>
      ))}
      {categories.map((name, i) =>
        i % every ? null : (
          <text key={name} class="sql-name" x={(x(name) ?? 0) + x.bandwidth() / 2} y={height - M.bottom - 10} text-anchor="middle">
            {name.slice(0, 12)}
          </text>
        ),
      )}
      {steps.map(({ step }) => (
        <g key={step}>
          <rect class={`sql-step sql-step-${step}`} x={left + step * key} y={height - 16} width="12" height="12" />
          <text class="sql-name" x={left + step * key + 16} y={height - 6}>
            {key < 70 ? '' : 'from '}
            {least[step]}
          </text>
        </g>
      ))}
    </svg>
  );
}

function Histogram({ model: { points, yName }, width }: DrawingProps) {
  const values = points.map(({ y }) => y);
  const wanted = Math.min(40, Math.max(5, Math.ceil(Math.sqrt(values.length))));
  const x = scaleLinear(extentOf(values), [M.left, width - M.right]).nice(wanted);
  const [from = 0, to = 1] = x.domain();
  const bins = bin().domain([from, to]).thresholds(x.ticks(wanted))(values);
  const y = scaleLinear([0, Math.max(...bins.map(({ length }) => length))], [HEIGHT - M.bottom, M.top]).nice(4);
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} aria-hidden="true">
      <Axes
        x={x}
        y={y}
        xTicks={ticksOf(x, 6)}
        yTicks={ticksOf({ ticks: count => y.ticks(count).filter(Number.isInteger) }, 4)}
        width={width}
        right={M.right}
      />
      {bins.map(({ x0 = 0, x1 = 0, length }) => (
        <rect
          key={x0}
          class="data-mark"
          ref={withData({ from: x0, to: x1, count: length })}
          x={x(x0) + 0.5}
          y={y(length)}
          width={Math.max(1, x(x1) - x(x0) - 1)}
          height={y(0) - y(length)}
        >
          <title>
            {yName} {numberText(x0)} to {numberText(x1)}: {length}
          </title>
        </rect>
      ))}
    </svg>
  );
}

const Cursor = ({ x, y }: { x: number; y: number }) => (
  <>
    <line class="cursor" x1={x} x2={x} y1={M.top} y2={HEIGHT - M.bottom} />
    <circle class="sql-at" cx={x} cy={y} r="4" />
  </>
);

interface Tick {
  at: number;
  text: string;
}

function ticksOf(scale: { ticks(count: number): number[] }, count: number): Tick[] {
  const ticks = scale.ticks(count);
  const texts = tickTexts(ticks);
  return ticks.map((at, place) => ({ at, text: texts[place] ?? '' }));
}

interface AxesProps {
  x: ToPixel;
  y: ToPixel;
  xTicks: readonly Tick[];
  yTicks: readonly Tick[];
  width: number;
  right: number;
}

const Axes = ({ x, y, xTicks, yTicks, width, right }: AxesProps) => (
  <g class="axis">
    {yTicks.map(({ at, text }) => (
      <g key={at}>
        <line x1={M.left} x2={width - right} y1={y(at)} y2={y(at)} />
        <text x={M.left - 8} y={y(at)} dy="0.32em" text-anchor="end">
          {text}
        </text>
      </g>
    ))}
    {xTicks.map(({ at, text }) => (
      <text key={at} x={x(at)} y={HEIGHT - 8} text-anchor="middle">
        {text}
      </text>
    ))}
  </g>
);

function scales(points: readonly Point[], width: number, right: number, isTime: boolean) {
  const range: [number, number] = [M.left, width - right];
  const ofX = extentOf(points.map(({ x }) => x));
  const y = scaleLinear(extentOf(points.map(({ y }) => y)), [HEIGHT - M.bottom, M.top]).nice(5);
  const yTicks = ticksOf(y, 5);
  const wanted = Math.max(2, Math.floor(width / 110));
  if (!isTime) {
    const x = scaleLinear(ofX, range).nice(10);
    return { x, y, yTicks, xTicks: ticksOf(x, wanted) };
  }
  const x = scaleUtc(ofX, range);
  const ticks = x.ticks(wanted).map(Number);
  const step = (ticks[1] ?? 0) - (ticks[0] ?? 0);
  return { x, y, yTicks, xTicks: ticks.map(at => ({ at, text: timeText(at, step) })) };
}

/** A single value has room on both sides. */
function extentOf(values: readonly number[]): [number, number] {
  const [low = 0, high = 0] = extent(values);
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

function timeText(at: number, step: number): string {
  const date = new Date(at);
  const month = MONTHS[date.getUTCMonth()]?.slice(0, 3);
  if (step >= 360 * DAY) return String(date.getUTCFullYear());
  if (step >= 27 * DAY) return date.getUTCMonth() === 0 ? String(date.getUTCFullYear()) : `${month}`;
  if (step >= DAY || at % DAY === 0) return `${date.getUTCDate()} ${month}`;
  return date.toISOString().slice(11, step < 60_000 ? 19 : 16);
}

const round = (value: number) => Math.round(value * 10) / 10;
