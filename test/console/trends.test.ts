import { expect, test } from 'vitest';
import { pointsOf, stretchesOf, type Trend } from '../../src/console/page/charts/trend-model.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const DAYS = Array.from({ length: 20 }, (_, i) => new Date(Date.UTC(2025, 0, 1 + i)).toISOString().slice(0, 10));
const hrvOf = (i: number) => (i === 4 ? null : 40 + 3 * (i % 5));

let opened: Promise<string> | undefined;
const enter = async () => {
  opened ??= placePeople({
    ann: {
      // No night on the 11th.
      sleep: DAYS.flatMap((day, i) =>
        i === 10 ? [] : [sleepOf(day, `${day}T00:30:00+01:00`, `${day}T08:30:00+01:00`, { average_hrv: hrvOf(i), efficiency: 90 })],
      ),
    },
  });
  return (await openConsoleHere(await opened)).enter();
};

test('metrics by day, in the order asked for, with what is usual from the fifteenth value on', async () => {
  const ann = await enter();
  const { status, body } = await ann.ask('GET people/ann/trends', '?metrics=average_hrv,efficiency&day=2025-01-18&days=17');
  expect(status).toBe(200);
  expect(body.trends.map(({ metric }: Trend) => metric)).toEqual(['average_hrv', 'efficiency']);
  const [hrv] = body.trends;
  expect(body).toMatchObject({ from: '2025-01-04', to: '2025-01-20' });
  expect(hrv.day).toEqual(DAYS.slice(3));
  expect(hrv.value).toEqual([49, null, 40, 43, 46, 49, 52, null, 43, 46, 49, 52, 40, 43, 46, 49, 52]);
  // 14 values are there from the 17th on. Before the 17th: 40 ×3, 43 ×3, 46 ×3, 49 ×3, 52 ×2; distances from 46: 0 ×3, 3 ×6, 6 ×5.
  expect(hrv.median).toEqual([...new Array(13).fill(null), 46, 46, 46, 46]);
  expect(hrv.spread.slice(13)).toEqual(new Array(4).fill(expect.closeTo(3 * 1.4826, 9)));
  const z = [-3, 0, 3, 6].map(above => expect.closeTo(above / (3 * 1.4826), 9));
  expect(hrv.z.slice(13)).toEqual(z);
});

test.each([
  ['newest', '2025-01-06', '2025-01-20'],
  ['2025-01-06', '2025-01-06', '2025-01-20'],
  ['2025-01-05', '2024-12-22', '2025-01-05'],
  ['2030-01-01', '2025-01-06', '2025-01-20'],
])('ranges of 15 days follow each other back from the last day: %s is in %s to %s', async (day, from, to) => {
  const ann = await enter();
  const { body } = await ann.ask('GET people/ann/trends', `?metrics=average_hrv&day=${day}&days=15`);
  expect(body).toMatchObject({ from, to });
});

test('a range ends with the days that there are', async () => {
  const ann = await enter();
  const { body } = await ann.ask('GET people/ann/trends', '?metrics=average_hrv&day=0001-01-01&days=1100');
  expect(body).toMatchObject({ from: '0001-01-01', trends: [{ day: [] }] });
  expect(await ann.ask('GET people/ann/raster', '?to=0001-01-05')).toMatchObject({ status: 200, body: { from: '0001-01-01' } });
  expect(await ann.ask('GET people/ann/day/9999-12-31', '')).toMatchObject({ status: 200 });
});

test.each([
  ['?metrics=average_hrv&day=newest&days=1828', 413, '1828 days are more than are answered at once.'],
  ['?metrics=average_hrv&day=newest&days=0', 400, 'days: Too small: expected number to be >=1'],
  ['?metrics=average_hrv&day=2025-13-01&days=2', 400, 'day: a day, as 2025-11-22'],
  ['?metrics=happiness&day=newest&days=2', 400, 'happiness is no metric.'],
  ["?metrics=x');--&day=newest&days=2", 400, 'metrics: names of metrics, as average_hrv,steps'],
])('what cannot be answered is said: %s', async (query, status, message) => {
  const ann = await enter();
  expect(await ann.ask('GET people/ann/trends', query)).toMatchObject({ status, body: { error: { message } } });
});

test('what an unfinished day has come to is no value of it, by day or by week', async () => {
  // 2025-05-12 is a Monday; of the Wednesday there are 7 hours.
  const activity = (day: string, steps: number, seconds: number) => ({
    ...{ id: day, day, steps, timestamp: `${day}T04:00:00+02:00`, active_calories: 1 },
    ...{ non_wear_time: 0, resting_time: seconds, sedentary_time: 0, low_activity_time: 0, medium_activity_time: 0, high_activity_time: 0 },
  });
  const activities = [activity('2025-05-12', 9000, 86_400), activity('2025-05-13', 11_000, 86_400), activity('2025-05-14', 1000, 25_200)];
  const ann = await (await openConsoleHere(await placePeople({ ann: { daily_activity: activities } }))).enter();
  const { body } = await ann.ask('GET people/ann/trends', '?metrics=steps&day=newest&days=130');
  const [steps] = body.trends;
  expect(steps).toMatchObject({ value: [9000, 11_000, null], part: [null, null, 1000] });
  expect(pointsOf(steps, '2025-05-12', '2025-05-14').map(({ value, part }) => [value, part])).toEqual([
    [9000, null],
    [11_000, null],
    [null, 1000],
  ]);
  expect(pointsOf(steps, body.from, body.to).at(-1)).toMatchObject({ day: '2025-05-12', value: 10_000, part: null, days: 2 });
});

const trendOf = (values: Record<string, number | null>): Trend => {
  const nothing = Object.keys(values).map(() => null);
  return {
    metric: 'steps',
    day: Object.keys(values),
    value: Object.values(values),
    part: nothing,
    median: nothing,
    spread: nothing,
    z: nothing,
  };
};

test('a day without a row is a day without a value, and no line goes over it', () => {
  const points = pointsOf(trendOf({ '2025-01-02': 5, '2025-01-04': null, '2025-01-05': 7, '2025-01-06': 8 }), '2025-01-01', '2025-01-06');
  expect(points.map(({ value }) => value)).toEqual([null, 5, null, null, 7, 8]);
  expect(stretchesOf(points, ({ value }) => value !== null).map(stretch => stretch.map(({ day }) => day))).toEqual([
    ['2025-01-02'],
    ['2025-01-05', '2025-01-06'],
  ]);
});

test('over 120 days a point is the mean of an ISO week', () => {
  // 2025-01-01 is a Wednesday.
  const points = pointsOf(trendOf({ '2025-01-01': 4, '2025-01-05': 6, '2025-01-06': 10 }), '2025-01-01', '2025-05-01');
  expect(points.slice(0, 3).map(({ day, value, days }) => ({ day, value, days }))).toEqual([
    { day: '2024-12-30', value: 5, days: 2 },
    { day: '2025-01-06', value: 10, days: 1 },
    { day: '2025-01-13', value: null, days: 0 },
  ]);
  expect(pointsOf(trendOf({ '2025-01-01': 4 }), '2025-01-01', '2025-04-30')).toHaveLength(120);
});
