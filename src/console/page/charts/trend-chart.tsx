import { extent } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { area, line } from 'd3-shape';
import { dayNumber, MONTHS, shortDay } from '../parts/format.ts';
import { bandOf, digitsFor, type Metric, metricText, metricWithUnit, numberText, wordsOf } from '../parts/metrics.ts';
import { Plot } from '../parts/plot.tsx';
import { isWeekly, lastOf, type Point, stretchesOf } from './trend-model.ts';
import { MARKED } from './usual-chart.tsx';

interface TrendChartProps {
  metric: Metric;
  points: readonly Point[];
  from: string;
  to: string;
  label: string;
  /** A day to be marked. */
  shown?: string;
}

const LEFT = 44;
const RIGHT = 58;
const TOP = 12;
const HEIGHT = 150;
/** Below the base stand the dates. */
const DATES = 22;

/** A metric by day or week: its line, what is usual as a band, diamonds where it is far from that, ticks where there is no value. */
export function TrendChart({ metric, points, from, to, label, shown = '' }: TrendChartProps) {
  const place = (x: number, width: number) => Math.round(((x - LEFT) / (width - LEFT - RIGHT)) * (points.length - 1));
  return (
    <Plot label={label} count={points.length} say={at => tellPoint(metric, points[at], isWeekly(from, to))} placeAt={place}>
      {({ width, cursor }) => (
        <TrendDrawing {...{ metric, points, from, to, shown, width }} at={cursor === null ? undefined : points[cursor]} />
      )}
    </Plot>
  );
}

const bandAt = (metric: Metric, { median, spread }: Point) => (median === null || spread === null ? [] : bandOf(metric, median, spread));

interface DrawingProps extends Omit<TrendChartProps, 'label'> {
  width: number;
  height?: number;
  /** Where the cursor is. */
  at?: Point | undefined;
}

/** The same, of a fixed size, and without a cursor that moves. */
export function TrendDrawing({ metric, points, from, to, shown = '', width, height = HEIGHT, at }: DrawingProps) {
  const base = height - DATES;
  const x = scaleLinear([dayNumber(from), Math.max(dayNumber(to), dayNumber(from) + 1)], [LEFT, width - RIGHT]);
  const [low, high = 1] = extent(points.flatMap(point => [...bandAt(metric, point), ...(point.value === null ? [] : [point.value])]));
  const y = scaleLinear([low ?? 0, low === undefined || high > low ? high : low + 1], [base - 6, TOP]).nice(4);
  const xOf = ({ day }: Point) => x(Math.max(dayNumber(day), dayNumber(from)));
  const across = { x: xOf, y, base };
  return (
    <svg class="trend" viewBox={`0 0 ${width} ${height}`} height={height} aria-hidden="true">
      {low === undefined ? (
        <Nothing x={(LEFT + width - RIGHT) / 2} y={height / 2} />
      ) : (
        <Values metric={metric} y={y} until={width - RIGHT} />
      )}
      <Dates from={from} to={to} x={x} base={base} />
      {shown >= from && shown <= to && (
        <line class="shown" x1={x(dayNumber(shown))} x2={x(dayNumber(shown))} y1={TOP} y2={base} data-shown={shown} />
      )}
      {stretchesOf(points, point => bandAt(metric, point).length > 0).map(stretch => (
        <Band key={stretch[0]?.day} metric={metric} stretch={stretch} {...across} />
      ))}
      {stretchesOf(points, ({ value }) => value !== null).map(stretch => (
        <Line key={stretch[0]?.day} stretch={stretch} {...across} />
      ))}
      {points.map(point => (
        <Mark key={point.day} point={point} {...across} />
      ))}
      <Last metric={metric} points={points} {...across} room={width - RIGHT} />
      {at && <line class="cursor" x1={xOf(at)} x2={xOf(at)} y1={TOP} y2={base} />}
    </svg>
  );
}

interface Across {
  x(point: Point): number;
  y: ReturnType<typeof scaleLinear<number, number>>;
  base: number;
}

function Band({ metric, stretch, x, y }: Across & { metric: Metric; stretch: readonly Point[] }) {
  const path = area<Point>(
    x,
    point => y(bandAt(metric, point)[0] ?? 0),
    point => y(bandAt(metric, point)[1] ?? 0),
  );
  return <path class="band-area" d={path(stretch) ?? ''} />;
}

function Line({ stretch, x, y }: Across & { stretch: readonly Point[] }) {
  const yOf = ({ value }: Point) => y(value ?? 0);
  const data = { 'data-points': stretch.map(({ day, value }) => `${day},${value}`).join(' ') };
  const [only] = stretch;
  if (stretch.length === 1 && only) return <circle class="data-mark" cx={x(only)} cy={yOf(only)} r={1.5} {...data} />;
  return <path class="data-line" d={line<Point>(x, yOf)(stretch) ?? ''} {...data} />;
}

/** A diamond on a day that is far from the usual, a tick on the base for one without a value. */
function Mark({ point, x, y, base }: Across & { point: Point }) {
  const { day, value, z } = point;
  if (value === null) return <line class="no-value" x1={x(point)} x2={x(point)} y1={base - 4} y2={base} data-none={day} />;
  if (z === null || Math.abs(z) < MARKED) return null;
  return <path class="unusual-mark" d={`M${x(point)} ${y(value) - 5}l5 5l-5 5l-5 -5z`} data-day={day} data-value={value} data-z={z} />;
}

function Last({ metric, points, x, y, room }: Across & { metric: Metric; points: readonly Point[]; room: number }) {
  const last = lastOf(points);
  if (!last || last.value === null) return null;
  const isMarked = last.z !== null && Math.abs(last.z) >= MARKED;
  return (
    <>
      {!isMarked && <circle class="data-mark" cx={x(last)} cy={y(last.value)} r={3} data-day={last.day} data-value={last.value} />}
      <text class={isMarked ? 'value unusual-mark' : 'value'} x={room + 7} y={y(last.value) + 4}>
        {metricText(metric, last.value)}
      </text>
    </>
  );
}

/** In place of an axis, which would claim a range that is not known. */
function Nothing({ x, y }: { x: number; y: number }) {
  return (
    <text class="small" x={x} y={y} text-anchor="middle" data-nothing>
      no value in these days
    </text>
  );
}

function Values({ metric, y, until }: { metric: Metric; y: Across['y']; until: number }) {
  const { digits } = wordsOf(metric);
  const isTime = digits === 'duration';
  // Hours are counted in hours, not in thousands of seconds.
  const [low = 0, high = 0] = y.domain();
  const ticks = isTime
    ? scaleLinear([low / 3600, high / 3600], [0, 1])
        .ticks(4)
        .map(hours => hours * 3600)
    : y.ticks(4);
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  const text = (value: number) => (isTime ? `${numberText(value / 3600, digitsFor(step / 3600))} h` : numberText(value, digitsFor(step)));
  return (
    <g class="axis">
      {ticks.map(value => (
        <g key={value}>
          <line x1={LEFT} x2={until} y1={y(value)} y2={y(value)} />
          <text x={LEFT - 6} y={y(value) + 4} text-anchor="end" data-value={value}>
            {text(value)}
          </text>
        </g>
      ))}
    </g>
  );
}

/** Pixels that a Monday's date needs. */
const MONDAY = 36;

/** Firsts of months; of years where there are many; of a short range every week. */
function Dates({ from, to, x, base }: { from: string; to: string; x(day: number): number; base: number }) {
  const first = dayNumber(from);
  const count = dayNumber(to) - first + 1;
  const days = Array.from({ length: count }, (_, index) => new Date((first + index) * 86_400_000));
  const isShort = count < 45;
  const every = count > 800 ? 6 : count > 300 ? 3 : count > 150 ? 2 : 1;
  const mondays = Math.ceil(MONDAY / (x(first + 7) - x(first)));
  const isMonday = (day: Date, at: number) => day.getUTCDay() === 1 && Math.floor(at / 7) % mondays === 0;
  const ticks = days.filter((day, at) => (isShort ? isMonday(day, at) : day.getUTCDate() === 1 && day.getUTCMonth() % every === 0));
  const name = (day: Date) => {
    const iso = day.toISOString();
    if (isShort) return shortDay(iso.slice(0, 10));
    return day.getUTCMonth() === 0 ? iso.slice(0, 4) : (MONTHS[day.getUTCMonth()]?.slice(0, 3) ?? '');
  };
  return (
    <g class="axis">
      <line x1={LEFT} x2={x(first + count - 1)} y1={base} y2={base} />
      {ticks.map(day => (
        <text
          key={day.getTime()}
          x={x(day.getTime() / 86_400_000)}
          y={base + 15}
          text-anchor="middle"
          data-day={day.toISOString().slice(0, 10)}
        >
          {name(day)}
        </text>
      ))}
    </g>
  );
}

function tellPoint(metric: Metric, point: Point | undefined, weekly: boolean): string {
  if (!point) return '';
  const when = weekly ? `Week from ${shortDay(point.day)}` : shortDay(point.day);
  if (point.part !== null) return `${when}: ${metricWithUnit(metric, point.part)} of a part of the day`;
  if (point.value === null) return `${when}: no value`;
  const usual = point.median === null ? '' : `, usual ${metricWithUnit(metric, point.median)}`;
  const far = point.z !== null && Math.abs(point.z) >= MARKED ? `, ${numberText(point.z, 1, true)} from the usual` : '';
  return `${when}: ${metricWithUnit(metric, point.value)}${weekly ? ` (mean of ${point.days} days)` : ''}${usual}${far}`;
}
