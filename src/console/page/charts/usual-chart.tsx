import { scaleLinear } from 'd3-scale';
import type { AnswerOf } from '../../api/routes.ts';
import { isMetric, type Metric, metricText, wordsOf } from '../parts/metrics.ts';

export type Usual = AnswerOf<'GET people/:id/night/:day'>['usual'][number];

/** From here on the mark is a diamond. */
export const MARKED = 2;
const REACH = 4;
const WIDTH = 150;

/** Values of a day, each against the 28 before it: the table is the chart. */
export function UsualTable({ usual, metrics }: { usual: readonly Usual[]; metrics: readonly Metric[] }) {
  const rows = metrics.flatMap(metric => usual.filter(row => row.metric === metric));
  return (
    <table class="usual">
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">Metric</span>
          </th>
          <th scope="col" class="number">
            <span class="unseen">Value</span>
          </th>
          <th scope="col" class="strip-head">
            <span>lower</span>
            <span>usual</span>
            <span>higher</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(row => (
          <UsualRow key={row.metric} {...row} />
        ))}
      </tbody>
    </table>
  );
}

function UsualRow({ metric, value, z, note }: Usual) {
  if (!isMetric(metric)) return null;
  const { name, unit } = wordsOf(metric);
  const isMarked = z !== null && Math.abs(z) >= MARKED;
  return (
    <tr data-metric={metric}>
      <th scope="row">{name}</th>
      <td class={isMarked ? 'number marked' : 'number'}>
        {value === null ? 'none' : <strong>{metricText(metric, value)}</strong>} {value !== null && unit}
      </td>
      <td>{z === null ? <span class="second">{note}</span> : <Strip z={z} />}</td>
    </tr>
  );
}

/** How far from the usual, which is the band in the middle. */
export function Strip({ z }: { z: number }) {
  const x = scaleLinear([-REACH, REACH], [8, WIDTH - 8]).clamp(true);
  const isMarked = Math.abs(z) >= MARKED;
  const beyond = Math.abs(z) > REACH ? ', beyond the strip' : '';
  const told = `${z.toFixed(1).replace('-', '−')} robust standard deviations from the usual${beyond}`;
  return (
    <svg class="strip" viewBox={`0 0 ${WIDTH} 20`} width={WIDTH} height={20} role="img" aria-label={told}>
      <title>{told}</title>
      <line class="grid" x1={4} x2={WIDTH - 4} y1={10} y2={10} />
      <rect class="band-area" x={x(-1)} y={4} width={x(1) - x(-1)} height={12} rx={3} />
      <line class="middle" x1={x(0)} x2={x(0)} y1={4} y2={16} />
      {isMarked ? (
        <path class="unusual-mark" d={`M${x(z)} 4l6 6l-6 6l-6 -6z`} data-z={z} />
      ) : (
        <circle class="data-mark" cx={x(z)} cy={10} r={4.5} data-z={z} />
      )}
    </svg>
  );
}
