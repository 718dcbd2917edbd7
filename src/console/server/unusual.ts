import { isMetric, type Metric } from '../page/parts/metrics.ts';

/** A metric and by how many robust standard deviations it lies above what is usual; null: not known, or not to be judged. */
export interface Judged {
  metric: string;
  z: number | null;
}

/** From here on a mark is a diamond: quiet, for a third of all nights have one. */
export const MARKED = 2;
const ALONE = 3;
/** What moves together when something is going on. */
const TOGETHER: readonly Metric[] = ['temperature_deviation', 'average_breath', 'average_hrv', 'lowest_heart_rate'];

/**
 * What is called unusual: a metric by itself from 3 on, and two or more of temperature, breathing, HRV and lowest heart rate from 2 on.
 * The farthest first.
 */
export function unusualOf<Row extends Judged>(rows: readonly Row[]): (Row & { metric: Metric; z: number })[] {
  const judged = rows.flatMap(row => (row.z !== null && isMetric(row.metric) ? [{ ...row, metric: row.metric, z: row.z }] : []));
  const together = judged.filter(({ metric, z }) => TOGETHER.includes(metric) && Math.abs(z) >= MARKED);
  return judged
    .filter(row => Math.abs(row.z) >= ALONE || (together.length >= 2 && together.includes(row)))
    .sort((a, b) => Math.abs(b.z) - Math.abs(a.z));
}
