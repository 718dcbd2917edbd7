import { METRICS, type Metric } from './metrics.ts';

/** Which metric is shown. */
export function MetricChoice({ metric, choose }: { metric: Metric; choose(metric: string): void }) {
  return (
    <label class="second">
      Metric{' '}
      <select value={metric} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {Object.entries(METRICS).map(([key, { name }]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
