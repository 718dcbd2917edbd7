import { offsetName } from '../parts/format.ts';
import type { RasterModel } from './raster-model.ts';

const DAY = 86_400;
const HEIGHT = 12;

/** The deeper the taller: what colours say is also there without them. */
const HEIGHTS: Readonly<Record<string, number>> = { d: 11, l: 7.5, r: 5, a: 2, '?': 3.5 };
const NAMES: Readonly<Record<string, string>> = { d: 'deep', l: 'light', r: 'rem', a: 'awake', '?': 'unknown' };

/** One row of the raster, for paper: noon to noon. */
export function RasterStrip({ model, row, width }: { model: RasterModel; row: number; width: number }) {
  const x = (seconds: number) => (seconds / DAY) * width;
  const pieces = model.pieces.filter(piece => piece.row === row);
  const isFreeAtEnd = pieces.every(({ to }) => to < 0.8 * DAY);
  // Which clock the first night has is said elsewhere.
  const moved = model.moves
    .slice(1)
    .filter(move => move.row === row)
    .map(({ offset }) => offsetName(offset));
  return (
    <svg class="raster-strip" viewBox={`0 0 ${width} ${HEIGHT}`} width={width} height={HEIGHT} aria-hidden="true">
      {[0.25, 0.5, 0.75].map(part => (
        <line key={part} class="grid" x1={part * width} x2={part * width} y1={0} y2={HEIGHT} />
      ))}
      {pieces.map(({ from, to, stage }) => (
        <Bar key={from} stage={stage} x={x(from)} width={x(to) - x(from)} data={{ 'data-from': from, 'data-to': to }} />
      ))}
      {moved.length > 0 && (
        <text class="moved" x={isFreeAtEnd ? width - 1 : 1} y={HEIGHT - 3} text-anchor={isFreeAtEnd ? 'end' : 'start'}>
          {moved.join(', ')}
        </text>
      )}
    </svg>
  );
}

interface BarProps {
  stage: string;
  x: number;
  width: number;
  data?: Readonly<Record<`data-${string}`, number>>;
}

function Bar({ stage, x, width, data = {} }: BarProps) {
  const height = HEIGHTS[stage] ?? 0;
  return <rect class={`stage ${NAMES[stage]}`} {...{ x, width, height }} y={HEIGHT - height} data-stage={stage} {...data} />;
}

/** The hours above the rows. */
export function RasterHours({ width }: { width: number }) {
  return (
    <svg class="raster-strip axis" viewBox={`0 0 ${width} ${HEIGHT}`} width={width} height={HEIGHT} aria-hidden="true">
      {['12:00', '18:00', '00:00', '06:00', '12:00'].map((hour, quarter) => (
        <text key={quarter} x={(quarter / 4) * width} y={9} text-anchor={quarter === 0 ? 'start' : quarter === 4 ? 'end' : 'middle'}>
          {hour}
        </text>
      ))}
    </svg>
  );
}

const WORDS = [
  ['d', 'Deep'],
  ['l', 'Light'],
  ['r', 'REM'],
  ['a', 'Awake in bed'],
  ['?', 'Stage not known'],
] as const;

/** Each stage with its word, as it stands in a row. */
export function StripLegend() {
  return (
    <ul class="legend">
      {WORDS.map(([stage, word]) => (
        <li key={stage}>
          <svg viewBox={`0 0 12 ${HEIGHT}`} width={12} height={HEIGHT} aria-hidden="true">
            <Bar stage={stage} x={0} width={12} />
          </svg>{' '}
          {word}
        </li>
      ))}
    </ul>
  );
}
