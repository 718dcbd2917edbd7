import { useLayoutEffect } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { RANGES, trendsAt, USUAL_RANGE, USUAL_TRENDS } from '../asked.ts';
import { TrendChart } from '../charts/trend-chart.tsx';
import { isWeekly, lastOf, type Point, pointsOf, type Trend, tableOf } from '../charts/trend-model.ts';
import { MARKED } from '../charts/usual-chart.tsx';
import { setQuery, usePlace } from '../location.ts';
import { Figure } from '../parts/figure.tsx';
import { shortDay } from '../parts/format.ts';
import { areLetterKeysOn } from '../parts/letter-keys.ts';
import { MetricChoice } from '../parts/metric-choice.tsx';
import { isMetric, type Metric, metricWithUnit, wordsOf } from '../parts/metrics.ts';
import { Shown } from '../parts/state.tsx';
import type { Answered } from '../parts/use-answer.ts';

const NAMES: Readonly<Record<number, string>> = { 365: '1 year', 1095: '3 years' };

interface TrendsProps {
  id: string;
  /** The day that is shown, which is marked. */
  day: string;
  answer: Answered<AnswerOf<'GET people/:id/trends'>>;
}

/** Up to six metrics over a range that has the day that is shown; which ones and how long says the address. */
export function Trends({ id, day, answer }: TrendsProps) {
  const { query } = usePlace();
  const { metrics, range } = trendsAt(query);
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

const setRange = (days: number) => setQuery({ range: days === USUAL_RANGE ? null : `${days}d` }, { replace: true });

function choose(metrics: readonly Metric[], place: number, metric: string): void {
  const before = metrics[place];
  // What stands elsewhere already changes places with it.
  const next = metrics.map((one, at) => (at === place ? metric : one === metric && before ? before : one));
  setQuery({ metrics: next.join() === USUAL_TRENDS.join() ? null : next.join(',') }, { replace: true });
}

function useRangeKeys(range: number): void {
  // Before the paint, so that two presses within a frame are two steps.
  useLayoutEffect(() => {
    const onKeyDown = ({ key, target, altKey, ctrlKey, metaKey }: KeyboardEvent) => {
      if (altKey || ctrlKey || metaKey || !areLetterKeysOn()) return;
      if (target instanceof HTMLElement && target.matches('input, select, textarea')) return;
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
