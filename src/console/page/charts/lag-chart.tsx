import { scaleLinear } from 'd3-scale';
import type { AnswerOf } from '../../api/routes.ts';
import { Figure } from '../parts/figure.tsx';
import { localText } from '../parts/format.ts';

type Lag = NonNullable<AnswerOf<'GET operations'>['lag']>;

const WIDTH = 360;
const HEIGHT = 160;
const BASE = HEIGHT - 24;
const TOP = 32;

const seconds = (value: number) => `${value < 10 ? value.toFixed(2) : Math.round(value)} s`;

/** How long events take from their arrival until they are stored: linear, up to the 99th of 100. */
export function LagChart({ lag }: { lag: Lag }) {
  const { bars, width, count, since, p50, p95, p99, sql } = lag;
  const x = scaleLinear([0, bars.length * width], [36, WIDTH - 8]);
  const y = scaleLinear([0, Math.max(...bars, 1)], [BASE, TOP]).nice(3);
  const finding = `Half of the last ${count} events were stored within ${seconds(p50)}, 95 of 100 within ${seconds(p95)}, 99 of 100 within ${seconds(p99)}; the first of them came ${localText(since, 0)} UTC.`;
  return (
    <Figure
      title="Event to row"
      note={`${count} events`}
      finding={finding}
      file="event-lag"
      sql={sql}
      table={() => [
        { name: 'from [s]', values: bars.map((_, at) => Math.round(at * width * 1000) / 1000) },
        { name: 'events', values: bars },
      ]}
    >
      <svg class="lag" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={finding}>
        {y
          .ticks(3)
          .filter(Number.isInteger)
          .map(tick => (
            <g key={tick}>
              <line class="grid" x1={36} x2={WIDTH - 8} y1={y(tick)} y2={y(tick)} />
              <text x={30} y={y(tick) + 4} text-anchor="end">
                {tick}
              </text>
            </g>
          ))}
        {bars.map((events, at) => (
          <rect
            key={at}
            class="bar-of-lag"
            data-from={at * width}
            data-events={events}
            x={x(at * width) + 0.5}
            width={Math.max(1, x(width) - x(0) - 1)}
            y={y(events)}
            height={BASE - y(events)}
          />
        ))}
        <Mark x={x(p50)} label={`p50 ${seconds(p50)}`} y={12} />
        <Mark x={x(p95)} label={`p95 ${seconds(p95)}`} y={26} />
        {x.ticks(4).map(tick => (
          <text key={tick} x={x(tick)} y={HEIGHT - 8} text-anchor="middle">
            {tick} s
          </text>
        ))}
      </svg>
    </Figure>
  );
}

function Mark({ x, y, label }: { x: number; y: number; label: string }) {
  const isRight = x > WIDTH / 2;
  return (
    <g>
      <line class="mark" x1={x} x2={x} y1={y + 2} y2={BASE} />
      <text class="mark" x={isRight ? x - 4 : x + 4} y={y} text-anchor={isRight ? 'end' : 'start'}>
        {label}
      </text>
    </g>
  );
}
