import type { Report } from '../../api/report.ts';
import { type RasterModel, type RasterRow, rasterModel } from '../charts/raster-model.ts';
import { RasterHours, RasterStrip, StripLegend } from '../charts/raster-strip.tsx';
import type { Trend } from '../charts/trend-model.ts';
import { MARKED } from '../charts/usual-chart.tsx';
import { clock, dayName } from '../parts/format.ts';
import { isMetric, metricText, wordsOf } from '../parts/metrics.ts';

/** Pixels of a strip beside as many metrics as there can be; what fewer of them leave is the strip's. */
const STRIP = 240;
const COLUMN = 40;
const MOST = 6;

/** The raster, whose rows go on as those of the table: a night is one line. */
export function Nights({ report: { raster, trends, missing } }: { report: Report }) {
  const model = rasterModel(raster, 'own');
  const width = STRIP + COLUMN * (MOST - trends.length);
  return (
    <section class="nights" aria-label="Nights">
      <StripLegend />
      <table>
        <colgroup>
          <col />
          <col width={width} />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col">
              <span class="unseen">Stages, from noon to noon</span>
              <RasterHours width={width} />
            </th>
            <th scope="col">In bed</th>
            {trends.map(({ metric }) => isMetric(metric) && <Head key={metric} {...wordsOf(metric)} />)}
          </tr>
        </thead>
        <tbody>
          {model.rows.map((night, row) => (
            <Night key={night.day} {...{ model, row, night, trends, width }} why={missing[night.day]} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Head({ name, unit }: { name: string; unit: string }) {
  return (
    <th scope="col" class="number">
      {name}
      {unit && <span class="second"> {unit}</span>}
    </th>
  );
}

interface NightProps {
  model: RasterModel;
  row: number;
  night: RasterRow;
  trends: readonly Trend[];
  width: number;
  /** Why there is no night. */
  why: string | undefined;
}

function Night({ model, row, night, trends, width, why }: NightProps) {
  const { day } = night;
  const isDrawn = model.pieces.some(piece => piece.row === row);
  const [weekday = ''] = dayName(day).split(' ');
  return (
    <tr data-day={day} class={weekday === 'Monday' ? 'monday' : undefined}>
      <th scope="row">
        <span class="weekday">{weekday.slice(0, 3)}</span> {Number(day.slice(8))}
      </th>
      <td class="strip-cell">
        {isDrawn || !why ? <RasterStrip model={model} row={row} width={width} /> : <span class="why">— {why}</span>}
      </td>
      <td class="times">{timesOf(night)}</td>
      {trends.map(trend => (
        <Value key={trend.metric} trend={trend} day={day} />
      ))}
    </tr>
  );
}

function timesOf({ start, end, offset, endOffset }: RasterRow): string {
  if (start === null || end === null || offset === null || endOffset === null) return '—';
  return `${clock(start, offset)}–${clock(end, endOffset)}`;
}

function Value({ trend: { metric, day: days, value: values, part: parts, z: zs }, day }: { trend: Trend; day: string }) {
  const at = days.indexOf(day);
  const value = values[at] ?? parts[at] ?? null;
  const z = zs[at] ?? null;
  if (!isMetric(metric)) return null;
  const isMarked = z !== null && Math.abs(z) >= MARKED;
  return (
    <td class={isMarked ? 'number marked' : 'number'} data-metric={metric}>
      {isMarked && '◆ '}
      {value === null ? '—' : metricText(metric, value)}
    </td>
  );
}
