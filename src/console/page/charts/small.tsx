import { area, line } from 'd3-shape';
import type { AnswerOf } from '../../api/routes.ts';
import { HATCH } from '../parts/hatch.tsx';
import './small.css';

type Person = AnswerOf<'GET people'>['people'][number];
type Spark = Person['sparks'][number];

const BARS = { width: 132, height: 32, step: 9.5, bar: 7 };
const SPARK = { width: 108, height: 32, pad: 4 };

/** The minutes that all bars of a list share: whole hours around its nights. */
export function clockRange(people: readonly Pick<Person, 'nights'>[]): readonly [number, number] {
  const minutes = people.flatMap(({ nights }) => [...nights.start, ...nights.end]).filter(minute => minute !== null);
  if (!minutes.length) return [-120, 600];
  const hour = 60;
  return [Math.floor(Math.min(...minutes) / hour) * hour, Math.ceil(Math.max(...minutes) / hour) * hour];
}

/** 14 nights, each from falling into bed to getting up by the clock; hatched where there is none. */
export function NightBars({ nights, range: [first, last] }: Pick<Person, 'nights'> & { range: readonly [number, number] }) {
  const y = (minute: number) => ((minute - first) / (last - first)) * BARS.height;
  const bars = nights.day.map((day, at) => ({ day, x: at * BARS.step, start: nights.start[at] ?? null, end: nights.end[at] ?? null }));
  const isThere = ({ start, end }: (typeof bars)[number]) => start !== null && end !== null;
  const draw = (which: typeof bars) =>
    which.map(({ x, start, end }) => `M${x} ${y(start ?? first)}h${BARS.bar}V${y(end ?? last)}h${-BARS.bar}Z`).join('');
  const stored = bars.filter(isThere);
  return (
    <svg
      class="night-bars"
      width={BARS.width}
      height={BARS.height}
      viewBox={`0 0 ${BARS.width} ${BARS.height}`}
      role="img"
      aria-label={`${stored.length} of ${bars.length} nights are stored`}
      data-start={nights.start.map(minute => minute ?? '').join(' ')}
      data-end={nights.end.map(minute => minute ?? '').join(' ')}
    >
      <path fill={HATCH} d={draw(bars.filter(bar => !isThere(bar)))} />
      <path class="earlier" d={draw(stored.filter(({ day }) => day !== nights.day.at(-1)))} />
      <path class="last" d={draw(stored.filter(({ day }) => day === nights.day.at(-1)))} />
    </svg>
  );
}

/** 28 days of a metric over the band of what was usual then; gaps stay gaps. */
export function Sparkline({ spark, label }: { spark: Spark; label: string }) {
  const days = spark.values.map((value, at) => {
    const median = spark.median[at] ?? null;
    const spread = spark.spread[at] ?? null;
    return {
      at,
      value,
      low: median === null || spread === null ? null : median - spread,
      high: median === null || spread === null ? null : median + spread,
    };
  });
  const known = days.flatMap(({ value, low, high }) => [value, low, high]).filter(number => number !== null);
  const least = Math.min(...known);
  const most = Math.max(...known);
  const x = (at: number) => SPARK.pad + (at / Math.max(1, days.length - 1)) * (SPARK.width - 2 * SPARK.pad);
  const y = (value: number) =>
    SPARK.height - SPARK.pad - (most > least ? (value - least) / (most - least) : 0.5) * (SPARK.height - 2 * SPARK.pad);
  const band = area<(typeof days)[number]>()
    .defined(({ low }) => low !== null)
    .x(({ at }) => x(at))
    .y0(({ low }) => y(low ?? 0))
    .y1(({ high }) => y(high ?? 0));
  const values = line<(typeof days)[number]>()
    .defined(({ value }) => value !== null)
    .x(({ at }) => x(at))
    .y(({ value }) => y(value ?? 0));
  const last = days.at(-1);
  return (
    <svg
      class="sparkline"
      width={SPARK.width}
      height={SPARK.height}
      viewBox={`0 0 ${SPARK.width} ${SPARK.height}`}
      role="img"
      aria-label={label}
      data-values={spark.values.map(value => value ?? '').join(' ')}
    >
      <path class="band-area" d={band(days) ?? ''} />
      <path class="data-line" d={values(days) ?? ''} />
      {last?.value != null && <Last x={x(last.at)} y={y(last.value)} isUnusual={spark.is_unusual} />}
    </svg>
  );
}

function Last({ x, y, isUnusual }: { x: number; y: number; isUnusual: boolean }) {
  if (isUnusual) return <path class="unusual-mark" d={`M${x} ${y - 4}l4 4l-4 4l-4 -4Z`} />;
  return <circle class="data-mark" cx={x} cy={y} r="3" />;
}
