import { describe, expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { emptiedWarehouse } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

describe('baselines', () => {
  const nights = (values: Record<string, number | null>) =>
    Object.entries(values).map(([day, average_hrv]) => ({
      ...{ id: day, day, type: 'long_sleep', average_hrv },
      ...{ bedtime_start: `${day}T01:00:00+00:00`, bedtime_end: `${day}T07:00:00+00:00` },
    }));
  const hrv = (columns: string) =>
    rows(warehouse, `SELECT day, value, ${columns} FROM baselines WHERE metric = 'average_hrv' ORDER BY day`);

  test('an absurd value of one person counts as missing and does not end the query of everybody', async () => {
    await store(warehouse, 'daily_readiness', [
      { id: 'a', day: '2025-03-01', temperature_deviation: 1e300 },
      { id: 'b', day: '2025-03-02', temperature_deviation: -1e300 },
    ]);
    for (const [i, value] of [0.1, 0.3, 0.1, 0.3].entries()) {
      await store(warehouse, 'daily_readiness', [{ id: `c${i}`, day: `2025-03-0${3 + i}`, temperature_deviation: value }]);
    }
    expect(
      await rows(
        warehouse,
        `SELECT day, value, days_7, round(mean_7, 6) AS mean_7 FROM baselines
         WHERE metric = 'temperature_deviation' AND day IN ('2025-03-01', '2025-03-06') ORDER BY day`,
      ),
    ).toEqual([
      { day: '2025-03-01', value: 1e300, days_7: 0, mean_7: null },
      { day: '2025-03-06', value: 0.3, days_7: 4, mean_7: 0.2 },
    ]);
  });

  test('an absurd value has no z-score itself', async () => {
    for (const [i, value] of [0.1, 0.3, 0.1, 0.3, 1e100, -1e300, 0.2].entries()) {
      await store(warehouse, 'daily_readiness', [{ id: `c${i}`, day: `2025-03-0${1 + i}`, temperature_deviation: value }]);
    }
    expect(
      await rows(
        warehouse,
        `SELECT day, value, days_7, round(z_7, 6) AS z_7 FROM baselines
         WHERE metric = 'temperature_deviation' AND day > '2025-03-03' ORDER BY day`,
      ),
    ).toEqual([
      { day: '2025-03-04', value: 0.3, days_7: 4, z_7: null },
      { day: '2025-03-05', value: 1e100, days_7: 4, z_7: null },
      { day: '2025-03-06', value: -1e300, days_7: 4, z_7: null },
      { day: '2025-03-07', value: 0.2, days_7: 5, z_7: 0 },
    ]);
  });

  test('over 7 days: of calendar days, with 4 values at least, and the day itself not in its own z-score', async () => {
    // Nothing on the 5th and the 6th. On the 4th: mean 50, squares 0 + 16 + 16 + 0, by 3: deviation 3.265986.
    await store(
      warehouse,
      'sleep',
      nights({
        '2025-03-01': 50,
        '2025-03-02': 54,
        '2025-03-03': 46,
        '2025-03-04': 50,
        '2025-03-07': 60,
        '2025-03-08': 54,
        '2025-03-09': 46,
      }),
    );
    const found = await hrv('days_7, round(mean_7, 6) AS mean_7, round(sd_7, 6) AS sd_7, round(z_7, 6) AS z_7');
    expect(found).toEqual([
      { day: '2025-03-01', value: 50, days_7: 1, mean_7: null, sd_7: null, z_7: null },
      { day: '2025-03-02', value: 54, days_7: 2, mean_7: null, sd_7: null, z_7: null },
      { day: '2025-03-03', value: 46, days_7: 3, mean_7: null, sd_7: null, z_7: null },
      { day: '2025-03-04', value: 50, days_7: 4, mean_7: 50, sd_7: 3.265986, z_7: null },
      { day: '2025-03-05', value: null, days_7: 4, mean_7: 50, sd_7: 3.265986, z_7: null },
      { day: '2025-03-06', value: null, days_7: 4, mean_7: 50, sd_7: 3.265986, z_7: null },
      // 60 less 50, by 3.265986. Then 50, 54, 46, 50, 60: mean 52, squares 4 + 4 + 36 + 4 + 64 = 112, by 4: root of 28.
      { day: '2025-03-07', value: 60, days_7: 5, mean_7: 52, sd_7: 5.291503, z_7: 3.061862 },
      // 54 less 52, by 5.291503. The 1st has left: 54, 46, 50, 60, 54: mean 52.8, squares 1.44 + 46.24 + 7.84 + 51.84 + 1.44 = 108.8, by 4.
      { day: '2025-03-08', value: 54, days_7: 5, mean_7: 52.8, sd_7: 5.215362, z_7: 0.377964 },
      // 46 less 52.8, by 5.215362. 46, 50, 60, 54, 46: mean 51.2, squares 27.04 + 1.44 + 77.44 + 7.84 + 27.04 = 140.8, by 4.
      { day: '2025-03-09', value: 46, days_7: 5, mean_7: 51.2, sd_7: 5.932959, z_7: -1.30384 },
    ]);
  });

  test('over 28 and 90 days with 14 and 45 values at least; where nothing ever varies there is no z-score', async () => {
    const days = Array.from({ length: 46 }, (_, i) => new Date(Date.UTC(2025, 0, 1 + i)).toISOString().slice(0, 10));
    await store(warehouse, 'sleep', nights(Object.fromEntries(days.map((day, i) => [day, i % 2 ? 60 : 40]))));
    await store(
      warehouse,
      'daily_sleep',
      days.map(day => ({ id: day, day, score: 80 })),
    );
    const found = await hrv('days_28, mean_28, round(sd_28, 6) AS sd_28, round(z_28, 6) AS z_28, days_90, mean_90, round(z_90, 6) AS z_90');
    // 14 values of 40 and 60 in turn: squares 14 × 100, by 13, the root: 10.377490. On the 15th day 40 less 50.
    expect(found[12]).toMatchObject({ day: '2025-01-13', days_28: 13, mean_28: null, z_28: null });
    expect(found[13]).toMatchObject({ day: '2025-01-14', days_28: 14, mean_28: 50, sd_28: 10.37749, z_28: null });
    expect(found[14]).toMatchObject({ day: '2025-01-15', value: 40, days_28: 15, z_28: -0.963624 });
    // From the 28th day on 28 values: 28 × 100, by 27, the root: 10.183502. On the 30th 60 less 50.
    expect(found[29]).toMatchObject({ day: '2025-01-30', value: 60, days_28: 28, mean_28: 50, sd_28: 10.183502, z_28: 0.981981 });
    expect(found[43]).toMatchObject({ days_90: 44, mean_90: null });
    // 45 values, 23 of 40 and 22 of 60: mean 2240 / 45, deviation the root of (4500 - 45 × 0.2222²) / 44 = 10.110501. Then 60 less the mean.
    expect(found[44]).toMatchObject({ days_90: 45, mean_90: 49.77777777777778, z_90: null });
    expect(found[45]).toMatchObject({ day: '2025-02-15', value: 60, days_90: 46, z_90: 1.01105 });
    expect(
      await rows(
        warehouse,
        `SELECT DISTINCT value, mean_28, sd_28, z_28, unit FROM baselines WHERE metric = 'sleep_score' AND days_28 > 20`,
      ),
    ).toEqual([{ value: 80, mean_28: 80, sd_28: 0, z_28: null, unit: 'score' }]);
  });

  test('every metric is a column of daily, with a row for each of its days', async () => {
    await store(warehouse, 'daily_sleep', [
      { id: 'a', day: '2025-03-01', score: 80 },
      { id: 'b', day: '2025-03-03', score: 80 },
    ]);
    const named = `SELECT metric, count(*) AS days, bool_and(metric IN (SELECT column_name FROM duckdb_columns() WHERE table_name = 'daily')) AS known
      FROM baselines GROUP BY metric`;
    const found = (await rows(warehouse, named)) as { metric: string; days: number; known: boolean }[];
    expect(found.map(({ days, known }) => [days, known])).toEqual(new Array(16).fill([3, true]));
  });
});
