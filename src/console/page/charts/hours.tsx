import { clock } from '../parts/format.ts';

interface HoursProps {
  /** From an instant to its place. */
  x(instant: number): number;
  from: number;
  until: number;
  /** Seconds east of UTC. */
  offset: number;
  y: number;
  /** Behind the chart; 0: no lines. */
  height: number;
  /** In front of the row: whose clock this is. */
  name?: string;
}

const HOURS = [1, 2, 3, 4, 6, 12] as const;
/** What a label needs. */
const ROOM = 44;

/** Full hours of a local clock: a row of labels, and lines through the chart. */
export function Hours({ x, from, until, offset, y, height, name }: HoursProps) {
  const step = 3600 * (HOURS.find(hours => x(from + hours * 3600) - x(from) >= ROOM) ?? 24);
  const first = Math.ceil((from + offset) / step) * step - offset;
  const ticks = [];
  for (let at = first; at <= until; at += step) ticks.push(at);
  return (
    <g class="axis" data-offset={offset}>
      {name && (
        <text x={x(from) - 8} y={y} text-anchor="end">
          {name}
        </text>
      )}
      {ticks.map(at => (
        <g key={at}>
          {height > 0 && <line x1={x(at)} x2={x(at)} y1={y - 12 - height} y2={y - 12} />}
          <text x={x(at)} y={y} text-anchor="middle" data-at={at}>
            {clock(at, offset)}
          </text>
        </g>
      ))}
    </g>
  );
}
