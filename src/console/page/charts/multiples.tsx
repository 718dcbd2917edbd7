import { scaleLinear } from 'd3-scale';
import { line } from 'd3-shape';
import { Link } from '../parts/link.tsx';
import { type Metric, metricText, metricWithUnit } from '../parts/metrics.ts';
import { Plot } from '../parts/plot.tsx';
import './multiples.css';
import { lastOf, type Point, stretchesOf } from './trend-model.ts';

/** One person's line: of all the same days or weeks. */
export interface Multiple {
  id: string;
  points: readonly Point[];
}

interface MultiplesProps {
  metric: Metric;
  people: readonly Multiple[];
  /** The y of all; null: each has its own. */
  common: readonly [number, number] | null;
  label: string;
  /** What a place is called: `20 Nov`. */
  nameOf(point: Point): string;
}

const WIDTH = 140;
const GAP = 12;
const LINE = { left: 4, right: 90, top: 6, base: 40, height: 46 };

/** The least and the most of some people's values; null where there is none. */
export function extentOf(people: readonly Multiple[]): readonly [number, number] | null {
  const values = people.flatMap(({ points }) => points.flatMap(({ value }) => (value === null ? [] : [value])));
  return values.length ? [Math.min(...values), Math.max(...values)] : null;
}

/** A small line of each person over the same days, with the last value at its end, or that at the cursor, which all share. */
export function Multiples({ metric, people, common, label, nameOf }: MultiplesProps) {
  const points = people[0]?.points ?? [];
  const x = scaleLinear([0, Math.max(1, points.length - 1)], [LINE.left, LINE.right]);
  const say = (place: number) => {
    const at = people.map(({ id, points: of }) => ({ id, points: of.slice(place, place + 1) }));
    const known = at.filter(({ points: [point] }) => point?.value != null).length;
    const extent = extentOf(at);
    const told = extent ? `${known} of ${people.length} people have a value, ${rangeText(metric, extent)}` : 'nobody has a value';
    return `${points[place] ? nameOf(points[place]) : ''}: ${told}`;
  };
  return (
    <Plot label={label} count={points.length} say={say} placeAt={offset => Math.round(x.invert(offset % (WIDTH + GAP)))}>
      {({ cursor }) => (
        <ul class="multiples">
          {people.map(({ id, points: of }) => (
            <li key={id}>
              <Small
                {...{ id, metric, cursor, nameOf }}
                points={of}
                x={x}
                domain={common ?? extentOf([{ id, points: of }])}
                hasOwn={!common}
              />
            </li>
          ))}
        </ul>
      )}
    </Plot>
  );
}

/** `22 to 96 ms` */
export const rangeText = (metric: Metric, [low, high]: readonly [number, number]) =>
  low === high ? metricWithUnit(metric, low) : `${metricText(metric, low)} to ${metricWithUnit(metric, high)}`;

interface SmallProps extends Multiple {
  metric: Metric;
  x(place: number): number;
  domain: readonly [number, number] | null;
  hasOwn: boolean;
  cursor: number | null;
  nameOf(point: Point): string;
}

function Small({ id, metric, points, x, domain, hasOwn, cursor, nameOf }: SmallProps) {
  const [low, high] = domain ?? [0, 1];
  const y = scaleLinear(high > low ? [low, high] : [low - 1, high + 1], [LINE.base, LINE.top]);
  const last = lastOf(points);
  const shown = cursor === null ? last : points[cursor];
  const value = shown?.value ?? null;
  const place = shown ? points.indexOf(shown) : -1;
  const known = points.filter(point => point.value !== null).length;
  const told = last
    ? `last ${metricWithUnit(metric, last.value ?? 0)}, ${nameOf(last)}; ${known} of ${points.length} have a value`
    : 'no value';
  return (
    <>
      <div class="multiple-name">
        <Link to={`/people/${encodeURIComponent(id)}`}>{id}</Link>
        {hasOwn && domain && (
          <span class="second">
            {metricText(metric, low)}–{metricText(metric, high)}
          </span>
        )}
      </div>
      <svg viewBox={`0 0 ${WIDTH} ${LINE.height}`} height={LINE.height} role="img" aria-label={`${id}: ${told}`} data-person={id}>
        {stretchesOf(points, point => point.value !== null).map(stretch => (
          <Stretch key={stretch[0]?.day} {...{ stretch, points, x, y }} />
        ))}
        {place >= 0 && cursor !== null && <line class="cursor" x1={x(place)} x2={x(place)} y1={LINE.top - 4} y2={LINE.base + 4} />}
        {value !== null && <circle class="data-mark" cx={x(place)} cy={y(value)} r={2.5} data-day={shown?.day} data-value={value} />}
        <text class="value" x={LINE.right + 7} y={value === null ? LINE.base : y(value) + 4}>
          {value === null ? '—' : metricText(metric, value)}
        </text>
      </svg>
    </>
  );
}

interface StretchProps {
  stretch: readonly Point[];
  points: readonly Point[];
  x(place: number): number;
  y(value: number): number;
}

/** Neighbours that have a value: nothing is joined over what is missing. */
function Stretch({ stretch, points, x, y }: StretchProps) {
  const first = points.indexOf(stretch[0] as Point);
  const yOf = ({ value }: Point) => y(value ?? 0);
  const data = { 'data-points': stretch.map(({ day, value }) => `${day},${value}`).join(' ') };
  const [only] = stretch;
  if (stretch.length === 1 && only) return <circle class="data-mark" cx={x(first)} cy={yOf(only)} r={1} {...data} />;
  return <path class="data-line" d={line<Point>((_, at) => x(first + at), yOf)(stretch) ?? ''} {...data} />;
}
