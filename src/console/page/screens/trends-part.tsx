import { useEffect } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { TrendChart } from '../charts/trend-chart.tsx';
import { isWeekly, lastOf, type Point, pointsOf, type Trend, tableOf } from '../charts/trend-model.ts';
import { MARKED } from '../charts/usual-chart.tsx';
import { setQuery, usePlace } from '../location.ts';
import { Figure } from '../parts/figure.tsx';
import { addDays, dayNumber, shortDay } from '../parts/format.ts';
import { MetricChoice } from '../parts/metric-choice.tsx';
import { isMetric, type Metric, metricWithUnit, wordsOf } from '../parts/metrics.ts';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';

/** Days that may be shown. */
const RANGES: readonly number[] = [30, 90, 180, 365, 1095];
const USUAL_RANGE = 90;
const NAMES: Readonly<Record<number, string>> = { 365: '1 year', 1095: '3 years' };
const SIX: readonly Metric[] = [
  ...(['average_hrv', 'lowest_heart_rate', 'temperature_deviation'] as const),
  ...(['total_sleep_duration', 'average_breath', 'sleep_score'] as const),
];

interface TrendsProps {
  id: string;
  /** The day that is shown, which is marked. */
  day: string;
  /** The last one of which there is something. */
  last: string;
}

/** Up to six metrics over a range that has the day that is shown; which ones and how long says the address. */
export function Trends({ id, day, last }: TrendsProps) {
  const { query } = usePlace();
  const range = rangeOf(query.get('range'));
  const chosen = (query.get('metrics') ?? '').split(',').filter(isMetric);
  const metrics = (chosen.length ? [...new Set(chosen)] : SIX).slice(0, 6);
  // Whole ranges back from the last day, so that they stay where they are while one steps through days.
  const to = addDays(last, -range * Math.max(0, Math.floor((dayNumber(last) - dayNumber(day)) / range)));
  const from = addDays(to, 1 - range);
  const answer = useAnswer('GET people/:id/trends', { id, metrics: metrics.join(','), from, to });
  useRangeKeys(range);
  return (
    <section aria-label="Trends">
      <div class="trends-head">
        <h2>Trends</h2>
        <label>
          Range{' '}
          <select value={String(range)} onChange={({ currentTarget }) => setRange(Number(currentTarget.value))}>
            {RANGES.map(days => (
              <option key={days} value={String(days)}>
                {NAMES[days] ?? `${days} days`}
              </option>
            ))}
          </select>
        </label>
        <span class="second">
          <kbd>[</kbd> <kbd>]</kbd> shorter, longer
        </span>
      </div>
      <Shown of={answer}>
        {given => (
          <div class="trends">
            {given.trends.map((trend, place) => (
              <TrendCard key={trend.metric} {...{ id, day, trend, given }} choose={metric => choose(metrics, place, metric)} />
            ))}
          </div>
        )}
      </Shown>
    </section>
  );
}

function rangeOf(text: string | null): number {
  const days = Number(/^(\d+)d$/.exec(text ?? '')?.[1]);
  return RANGES.includes(days) ? days : USUAL_RANGE;
}

const setRange = (days: number) => setQuery({ range: days === USUAL_RANGE ? null : `${days}d` }, { replace: true });

function choose(metrics: readonly Metric[], place: number, metric: string): void {
  const before = metrics[place];
  // What stands elsewhere already changes places with it.
  const next = metrics.map((one, at) => (at === place ? metric : one === metric && before ? before : one));
  setQuery({ metrics: next.join() === SIX.join() ? null : next.join(',') }, { replace: true });
}

function useRangeKeys(range: number): void {
  useEffect(() => {
    const onKeyDown = ({ key, target, altKey, ctrlKey, metaKey }: KeyboardEvent) => {
      if (altKey || ctrlKey || metaKey || (target instanceof HTMLElement && target.matches('input, select, textarea'))) return;
      const at = RANGES.indexOf(range) + (key === ']' ? 1 : key === '[' ? -1 : Number.NaN);
      const next = RANGES[at];
      if (next !== undefined) setRange(next);
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [range]);
}

interface TrendCardProps {
  id: string;
  day: string;
  trend: Trend;
  given: AnswerOf<'GET people/:id/trends'>;
  choose(metric: string): void;
}

function TrendCard({ id, day, trend, given: { from, to, sql }, choose: chooseMetric }: TrendCardProps) {
  const { metric } = trend;
  if (!isMetric(metric)) return null;
  const { name, unit } = wordsOf(metric);
  const weekly = isWeekly(from, to);
  const points = pointsOf(trend, from, to);
  return (
    <Figure
      title={name}
      note={[unit, weekly ? 'weekly means' : ''].filter(part => part).join(', ') || undefined}
      finding={findingOf(metric, trend, points, weekly)}
      table={() => tableOf(points, weekly, unit || (wordsOf(metric).digits === 'duration' ? 's' : ''))}
      sql={sql}
      file={`${id}-${metric}-${from}-${to}`}
    >
      <TrendChart {...{ metric, points, from, to }} shown={day} label={`${name}, ${shortDay(from)} to ${shortDay(to)}`} />
      <MetricChoice metric={metric} choose={chooseMetric} />
    </Figure>
  );
}

function findingOf(metric: Metric, trend: Trend, points: readonly Point[], weekly: boolean): string {
  const known = trend.value.filter(value => value !== null).length;
  if (known === 0) return 'No value in this range.';
  const last = lastOf(points);
  const far = trend.z.filter(z => z !== null && Math.abs(z) >= MARKED).length;
  const parts = [`${known} days with a value`];
  if (!weekly && points.length > known) parts.push(`${points.length - known} without`);
  parts.push(`${far} far from the usual`);
  return `${last?.value == null ? '' : `Last ${weekly ? 'week ' : ''}${metricWithUnit(metric, last.value)}. `}${parts.join(', ')}.`;
}
