import { extent } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { line } from 'd3-shape';
import { clock } from '../parts/format.ts';
import { gapsOf, lowestOf, runsOf, type Sample, type Sleep } from './night-model.ts';

interface SeriesLaneProps {
  name: 'heart_rate' | 'hrv';
  title: string;
  series: Sleep['hrv'];
  x(instant: number): number;
  from: number;
  until: number;
  width: number;
  left: number;
  right: number;
  y: number;
  height: number;
  /** Of the clock that moments are told by, in seconds. */
  offset: number;
  isLowestMarked?: boolean;
  /** The service's own mean. */
  mean?: number | null;
}

/** A line of samples over time that fits them, broken where there are none, and hatched where there are none for long. */
export function SeriesLane({ name, title, series, x, from, until, width, left, right, y, height, ...rest }: SeriesLaneProps) {
  const runs = series ? runsOf(series) : [];
  const samples = runs.flat();
  const [low = 0, high = 1] = extent(samples, ({ value }) => value);
  const scale = scaleLinear([low, Math.max(high, low + 1)], [y + height, y]).nice(4);
  const path = line<Sample>(
    ({ at }) => x(at),
    ({ value }) => scale(value),
  );
  const gaps = series && samples.length ? gapsOf(series, from, until) : [{ start: from, end: until }];
  return (
    <g class={`series ${name}`} data-series={name}>
      <text class="small" x={left} y={y - 8}>
        {samples.length ? title : `${title}: none came`}
      </text>
      {samples.length > 0 && <Values scale={scale} left={left} until={width - right} />}
      {gaps.map(({ start, end }) => (
        <rect key={start} class="gap" x={x(start)} y={y} width={x(end) - x(start)} height={height} data-start={start} data-end={end} />
      ))}
      {runs.map(run =>
        run.length > 1 ? (
          <path key={run[0]?.at} class="line" d={path(run) ?? ''} data-points={run.map(({ at, value }) => `${at},${value}`).join(' ')} />
        ) : (
          run.map(({ at, value }) => <circle key={at} class="point" cx={x(at)} cy={scale(value)} r={1.6} data-points={`${at},${value}`} />)
        ),
      )}
      {rest.isLowestMarked && <Lowest series={series} offset={rest.offset} x={x} scale={scale} room={[left, width - right]} />}
      {rest.mean != null && samples.length > 0 && <Mean value={rest.mean} scale={scale} left={left} until={width - right} />}
    </g>
  );
}

interface Across {
  scale: ReturnType<typeof scaleLinear<number, number>>;
  left: number;
  until: number;
}

function Values({ scale, left, until }: Across) {
  return (
    <g class="axis">
      {scale.ticks(4).map(value => (
        <g key={value}>
          <line x1={left} x2={until} y1={scale(value)} y2={scale(value)} />
          <text x={left - 8} y={scale(value) + 4} text-anchor="end" data-value={value}>
            {value}
          </text>
        </g>
      ))}
    </g>
  );
}

function Mean({ value, scale, left, until }: Across & { value: number }) {
  const [low = 0, high = 0] = scale.domain();
  if (value < low || value > high) return null;
  return (
    <>
      <line class="mean" x1={left} x2={until} y1={scale(value)} y2={scale(value)} data-mean={value} />
      <text class="value" x={until + 8} y={scale(value) + 4}>
        mean {Math.round(value)}
      </text>
    </>
  );
}

interface LowestProps {
  series: Sleep['hrv'];
  offset: number;
  x(instant: number): number;
  scale(value: number): number;
  room: readonly [number, number];
}

function Lowest({ series, offset, x, scale, room: [left, until] }: LowestProps) {
  const lowest = lowestOf(series);
  if (!lowest) return null;
  const { at, value } = lowest;
  return (
    <>
      <circle class="lowest" cx={x(at)} cy={scale(value)} r={3.5} data-at={at} data-lowest={value} />
      <text class="value" x={Math.min(until - 60, Math.max(left + 60, x(at)))} y={scale(value) + 15} text-anchor="middle">
        lowest {value} at {clock(at, offset)}
      </text>
    </>
  );
}
