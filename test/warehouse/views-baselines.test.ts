import { describe, expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';
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
    for (const [i, value] of [0.2, 0.1, 0.3, 0.1, 0.3, 1e100, -1e300, 0.2].entries()) {
      await store(warehouse, 'daily_readiness', [{ id: `c${i}`, day: `2025-03-0${1 + i}`, temperature_deviation: value }]);
    }
    expect(
      await rows(
        warehouse,
        `SELECT day, value, days_7, round(z_7, 6) AS z_7 FROM baselines
         WHERE metric = 'temperature_deviation' AND day > '2025-03-04' ORDER BY day`,
      ),
    ).toEqual([
      { day: '2025-03-05', value: 0.3, days_7: 5, z_7: null },
      { day: '2025-03-06', value: 1e100, days_7: 5, z_7: null },
      { day: '2025-03-07', value: -1e300, days_7: 5, z_7: null },
      // The 1st has left.
      { day: '2025-03-08', value: 0.2, days_7: 5, z_7: 0 },
    ]);
  });

  test('over 7 days: of calendar days, with 4 values at least, a z-score with 5, and the day itself not in its own', async () => {
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
      // The days before have four values. Then 50, 54, 46, 50, 60: mean 52, squares 4 + 4 + 36 + 4 + 64 = 112, by 4: root of 28.
      { day: '2025-03-07', value: 60, days_7: 5, mean_7: 52, sd_7: 5.291503, z_7: null },
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

  const dayAfter = (first: string, days: number) => new Date(Date.parse(first) + days * 86_400_000).toISOString().slice(0, 10);

  /** A night and a readiness for each day from 1 January 2025 on. */
  async function storeNights(nights: readonly { temperature: number; heartRate: number; breath: number; hrv: number }[]) {
    const days = nights.map((night, i) => ({ ...night, day: dayAfter('2025-01-01', i) }));
    await store(
      warehouse,
      'daily_readiness',
      days.map(({ day, temperature }) => ({ id: day, day, temperature_deviation: temperature })),
    );
    await store(
      warehouse,
      'sleep',
      days.map(({ day, heartRate, breath, hrv }) => ({
        ...{ id: day, day, type: 'long_sleep', lowest_heart_rate: heartRate, average_breath: breath, average_hrv: hrv },
        ...{ bedtime_start: `${day}T01:00:00+00:00`, bedtime_end: `${day}T07:00:00+00:00` },
      })),
    );
  }

  const robust = (where: string) =>
    rows(
      warehouse,
      `SELECT day, metric, median_28, round(mad_28, 6) AS mad_28, round(robust_z_28, 6) AS robust_z_28 FROM baselines
       WHERE metric IN ('temperature_deviation', 'lowest_heart_rate', 'average_breath', 'average_hrv') AND ${where} ORDER BY day, metric`,
    );

  test('a robust z-score is of the median of the 28 days before, by 1.4826 of their median distance from it', async () => {
    const usual = Array.from({ length: 28 }, (_, i) =>
      i % 2 ? { temperature: 0.1, heartRate: 56, breath: 14, hrv: 50 } : { temperature: -0.1, heartRate: 54, breath: 14, hrv: 40 },
    );
    await storeNights([...usual, { temperature: 0.9, heartRate: 60, breath: 14, hrv: 30 }]);
    const day = '2025-01-29';
    expect(await robust(`day = '${day}'`)).toEqual([
      { day, metric: 'average_breath', median_28: 14, mad_28: 0, robust_z_28: 0 },
      // 30 less 45, by 7.413.
      { day, metric: 'average_hrv', median_28: 45, mad_28: 5, robust_z_28: -2.023472 },
      { day, metric: 'lowest_heart_rate', median_28: 55, mad_28: 1, robust_z_28: 3.372454 },
      { day, metric: 'temperature_deviation', median_28: 0, mad_28: 0.1, robust_z_28: 6.070417 },
    ]);
  });

  test('the fourth night of a fever is as unusual as the first, which a mean of the days before would hide', async () => {
    const usual = Array.from({ length: 28 }, (_, i) => ({
      temperature: [-0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.15][i % 7]!,
      heartRate: 55,
      breath: 14,
      hrv: 40,
    }));
    const fever = Array.from({ length: 4 }, () => ({ temperature: 0.9, heartRate: 55, breath: 14, hrv: 40 }));
    await storeNights([...usual, ...fever]);
    expect(
      await rows(
        warehouse,
        `SELECT day, round(z_28, 3) AS z_28, median_28, round(mad_28, 6) AS mad_28, round(robust_z_28, 6) AS robust_z_28 FROM baselines
         WHERE metric = 'temperature_deviation' AND day >= '2025-01-29' ORDER BY day`,
      ),
    ).toEqual([
      { day: '2025-01-29', z_28: 8.838, median_28: 0, mad_28: 0.1, robust_z_28: 6.070417 },
      { day: '2025-01-30', z_28: 4.42, median_28: 0, mad_28: 0.1, robust_z_28: 6.070417 },
      // The lowest two have left for 0.9: 0 and 0.05 are in the middle. 0.875 by 0.111195.
      { day: '2025-01-31', z_28: 3.278, median_28: 0.025, mad_28: 0.075, robust_z_28: 7.869059 },
      // 0.85 by 0.14826.
      { day: '2025-02-01', z_28: 2.685, median_28: 0.05, mad_28: 0.1, robust_z_28: 5.733171 },
    ]);
  });

  test('where the days before were all alike each spread has a floor, or there is no robust z-score', async () => {
    const usual = Array.from({ length: 14 }, () => ({ temperature: 0, heartRate: 55, breath: 14, hrv: 50 }));
    await storeNights([...usual, { temperature: 0.3, heartRate: 58, breath: 14.25, hrv: 53 }]);
    await store(
      warehouse,
      'daily_sleep',
      Array.from({ length: 15 }, (_, i) => ({ id: `ds${i}`, day: dayAfter('2025-01-01', i), score: i === 14 ? 90 : 80 })),
    );
    const day = '2025-01-15';
    expect(await robust(`day = '${day}'`)).toEqual([
      { day, metric: 'average_breath', median_28: 14, mad_28: 0, robust_z_28: 2 },
      // 2 % of 50.
      { day, metric: 'average_hrv', median_28: 50, mad_28: 0, robust_z_28: 3 },
      { day, metric: 'lowest_heart_rate', median_28: 55, mad_28: 0, robust_z_28: 3 },
      { day, metric: 'temperature_deviation', median_28: 0, mad_28: 0, robust_z_28: 3 },
    ]);
    // The 14th day has 13 before it.
    expect(await robust(`day = '2025-01-14' AND median_28 IS NOT NULL`)).toEqual([]);
    expect(
      await rows(warehouse, `SELECT median_28, mad_28, robust_z_28 FROM baselines WHERE metric = 'sleep_score' AND day = '${day}'`),
    ).toEqual([{ median_28: 80, mad_28: 0, robust_z_28: null }]);
  });

  test('of a day at noon steps, calories, score and stress are in no mean and have no z-score; the night before it has', async () => {
    const times = { non_wear_time: 0, sedentary_time: 0, low_activity_time: 0, medium_activity_time: 0, high_activity_time: 0 };
    const days = Array.from({ length: 16 }, (_, i) => dayAfter('2025-01-01', i));
    const isNoon = (i: number) => i === 15;
    await store(
      warehouse,
      'daily_activity',
      days.map((day, i) => ({
        ...{ ...ACTIVITY, ...times, id: day, day, score: isNoon(i) ? 40 : 80 + (i % 2), active_calories: isNoon(i) ? 50 : 400 + (i % 2) },
        // Of a day 24 hours, at noon 8.
        ...{ steps: isNoon(i) ? 1000 : i % 2 ? 9000 : 8000, resting_time: isNoon(i) ? 28_800 : 86_400 },
      })),
    );
    await store(
      warehouse,
      'daily_stress',
      days.map((day, i) => ({ id: day, day, stress_high: isNoon(i) ? 0 : 3600 + 60 * (i % 2) })),
    );
    await store(warehouse, 'sleep', nights(Object.fromEntries(days.map((day, i) => [day, i % 2 ? 60 : 40]))));
    expect(
      await rows(
        warehouse,
        `SELECT metric, value, days_28, round(mean_28, 6) AS mean_28, round(z_28, 6) AS z_28, robust_z_28 IS NULL AS no_robust FROM baselines
         WHERE metric IN ('steps', 'active_calories', 'activity_score', 'stress_high', 'average_hrv') AND day = '2025-01-16' ORDER BY metric`,
      ),
    ).toEqual([
      { metric: 'active_calories', value: 50, days_28: 15, mean_28: 400.466667, z_28: null, no_robust: true },
      { metric: 'activity_score', value: 40, days_28: 15, mean_28: 80.466667, z_28: null, no_robust: true },
      // Before it 8 of 40 and 7 of 60: mean 49.3333, squares 8 × 87.1111 + 7 × 113.7778 = 1493.3333, by 14, the root: 10.327956.
      { metric: 'average_hrv', value: 60, days_28: 16, mean_28: 50, z_28: 1.032796, no_robust: false },
      { metric: 'steps', value: 1000, days_28: 15, mean_28: 8466.666667, z_28: null, no_robust: true },
      { metric: 'stress_high', value: 0, days_28: 15, mean_28: 3628, z_28: null, no_robust: true },
    ]);
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

  test('of each day each metric is what daily says, whichever documents make it a day', async () => {
    const day = '2025-03-05';
    await store(warehouse, 'sleep', [
      {
        ...{ id: 'n', day, type: 'long_sleep', bedtime_start: `${day}T01:00:00+00:00`, bedtime_end: `${day}T07:00:00+00:00` },
        ...{ average_hrv: 41, lowest_heart_rate: 51, average_heart_rate: 58.5, average_breath: 14.5, efficiency: 88 },
        ...{ total_sleep_duration: 21_600, deep_sleep_duration: 5_000, rem_sleep_duration: 4_000 },
      },
      { id: 'p', day, type: 'late_nap', bedtime_start: `${day}T14:00:00+00:00`, bedtime_end: `${day}T15:00:00+00:00`, average_hrv: 60 },
    ]);
    for (const score of [60, 81]) await store(warehouse, 'daily_sleep', [{ id: `s${score}`, day, score }]);
    await store(warehouse, 'daily_readiness', [{ id: 'r', day, score: 72, temperature_deviation: -0.3 }]);
    await store(warehouse, 'daily_activity', [{ ...ACTIVITY, day }]);
    await store(warehouse, 'daily_stress', [{ id: 'd', day, stress_high: 7200 }]);
    await store(warehouse, 'daily_spo2', [{ id: 'o', day, spo2_percentage: { average: 96.5 } }]);
    await store(warehouse, 'daily_resilience', [{ id: 'e', day: '2025-03-02', level: 'solid' }]);
    await store(warehouse, 'workout', [{ id: 'w', day: '2025-03-09' }]);
    await store(warehouse, 'session', [{ id: 'm', day: '2025-03-10' }]);
    await store(warehouse, 'vo2_max', [{ id: 'v', day: '2025-03-12', vo2_max: 44 }]);
    const names = (await rows(warehouse, 'SELECT metric_at(place) AS metric FROM range(1, 17) AS places(place)')).map(row =>
      String((row as { metric: string }).metric),
    );
    const said = names.map(name => `SELECT day, '${name}' AS metric, ${name}::DOUBLE AS value FROM daily`).join(' UNION ALL ');
    const measured = await rows(
      warehouse,
      'SELECT day, metric_at(place) AS metric, value FROM measured_between(NULL, NULL) ORDER BY day, metric',
    );
    expect(measured).toEqual(await rows(warehouse, `FROM (${said}) ORDER BY day, metric`));
    expect(measured).toHaveLength(11 * 16);
    expect(measured.filter(row => (row as { value: number | null }).value !== null)).toEqual(
      [
        ...[['active_calories', 412] as const, ['activity_score', 82] as const, ['average_breath', 14.5] as const],
        ...[['average_heart_rate', 58.5] as const, ['average_hrv', 41] as const, ['deep_sleep_duration', 5000] as const],
        ...[['efficiency', 88] as const, ['lowest_heart_rate', 51] as const, ['readiness_score', 72] as const],
        ...[['rem_sleep_duration', 4000] as const, ['sleep_score', 81] as const, ['spo2_average', 96.5] as const],
        ...[['steps', 10230] as const, ['stress_high', 7200] as const, ['temperature_deviation', -0.3] as const],
        ...[['total_sleep_duration', 21_600] as const],
      ].map(([metric, value]) => ({ day, metric, value })),
    );
  });

  test('of a range as of all days, whatever lies before it', async () => {
    // Two nights, nothing for more than a year, then a night on each day but every seventh.
    const days = Array.from({ length: 110 }, (_, i) => new Date(Date.UTC(2025, 0, 1 + i)).toISOString().slice(0, 10));
    const values = Object.fromEntries(days.map((day, i) => [day, i % 7 === 6 ? null : 40 + ((i * 13) % 9)]));
    await store(warehouse, 'sleep', nights({ '2023-06-01': 70, '2023-06-02': 71, ...values }));
    for (const [first, last] of [
      ['2025-04-05', '2025-04-06'],
      ['2025-01-01', '2025-01-20'],
      ['2023-06-02', '2025-04-20'],
    ]) {
      // What lies before the range takes part in rounding, in the last digits.
      const select = `SELECT * REPLACE (${[7, 28, 90].map(n => `round(sd_${n}, 9) AS sd_${n}, round(z_${n}, 9) AS z_${n}, round(mean_${n}, 9) AS mean_${n}`)})`;
      const all = await rows(warehouse, `${select} FROM baselines WHERE day BETWEEN '${first}' AND '${last}' ORDER BY day, metric`);
      expect(await rows(warehouse, `${select} FROM baselines_between('${first}', '${last}') ORDER BY day, metric`)).toEqual(all);
      expect(all.length).toBeGreaterThan(16);
      const usual = 'SELECT user_id, day, metric, value, median_28, mad_28, robust_z_28';
      expect(await rows(warehouse, `${usual} FROM usual_between('${first}', '${last}') ORDER BY day, metric`)).toEqual(
        await rows(warehouse, `${usual} FROM baselines WHERE day BETWEEN '${first}' AND '${last}' ORDER BY day, metric`),
      );
    }
    const [row] = await rows(
      warehouse,
      `SELECT value, days_90, median_28 FROM baselines_between('2025-04-05', '2025-04-05') WHERE metric = 'average_hrv'`,
    );
    expect(row).toEqual({ value: 47, days_90: 77, median_28: 43.5 });
    // Of the 28 days before 4 have no value.
    expect(await rows(warehouse, `SELECT days_before FROM usual_between('2025-04-05', '2025-04-05') WHERE metric = 'average_hrv'`)).toEqual(
      [{ days_before: 24 }],
    );
  });
});
