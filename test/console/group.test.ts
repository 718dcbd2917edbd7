import { expect, test } from 'vitest';
import { openConsoleHere } from '../support/console-harness.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const night = (day: string, average_hrv: number | null) =>
  sleepOf(day, `${day}T00:30:00+01:00`, `${day}T08:30:00+01:00`, { average_hrv, total_sleep_duration: 25_200 });

const activity = (day: string, steps: number, seconds: number) => ({
  id: `a-${day}`,
  day,
  steps,
  high_activity_time: 0,
  medium_activity_time: 0,
  low_activity_time: 0,
  sedentary_time: 0,
  resting_time: seconds,
  non_wear_time: 0,
});

let placed: Promise<string> | undefined;
/** ann has a night without a value and a day without a night, o'neil an unfinished day, zoe nothing in these days. */
const enter = async (grant = {}) => {
  placed ??= placePeople({
    ann: { sleep: [night('2025-01-01', 40), night('2025-01-02', null), night('2025-01-04', 52)] },
    "o'neil": {
      sleep: [night('2025-01-03', 61)],
      daily_activity: [activity('2025-01-03', 9000, 86_400), activity('2025-01-04', 1200, 40_000)],
    },
    zoe: { sleep: [night('2024-12-01', 33)] },
  });
  return (await openConsoleHere(await placed)).enter(grant);
};

const DAYS = '&from=2025-01-01&to=2025-01-04&sort=name';

test('a metric of everybody by day, null where there is none; what an unfinished day has come to is none', async () => {
  const reader = await enter({ role: 'reader' });
  const { status, body } = await reader.ask('GET group', `?metric=average_hrv${DAYS}`);
  expect(status).toBe(200);
  expect(body).toMatchObject({ metric: 'average_hrv', from: '2025-01-01', to: '2025-01-04', total: 3, page: 1, pages: 1 });
  expect(body.day).toEqual(['2025-01-01', '2025-01-02', '2025-01-03', '2025-01-04']);
  expect(body.people).toEqual([
    { id: 'ann', values: [40, null, null, 52] },
    { id: "o'neil", values: [null, null, 61, null] },
    { id: 'zoe', values: [null, null, null, null] },
  ]);
  const steps = await reader.ask('GET group', `?metric=steps${DAYS}`);
  expect(steps.body.people[1]).toEqual({ id: "o'neil", values: [null, null, 9000, null] });
});

test('the query that is shown answers the same', async () => {
  const visitor = await enter();
  for (const metric of ['average_hrv', 'steps']) {
    const { body } = await visitor.ask('GET group', `?metric=${metric}${DAYS}`);
    const { body: lines } = await visitor.ask('POST sql', '', { id: 'group', sql: body.sql });
    const [, { batch }] = lines
      .trim()
      .split('\n')
      .map((line: string) => JSON.parse(line));
    const [users, days, values]: string[][] = batch;
    const told = body.people.flatMap(({ id, values: of }: { id: string; values: (number | null)[] }) =>
      of.flatMap((value, at) => (value === null ? [] : [[id, body.day[at], value]])),
    );
    expect(users!.map((user, row) => [user, days![row], Number(values![row])])).toEqual(told);
  }
});

test('a person sees the own row alone', async () => {
  const { body } = await (await enter({ role: 'person', person: 'ann' })).ask('GET group', `?metric=average_hrv${DAYS}`);
  expect(body.people).toEqual([{ id: 'ann', values: [40, null, null, 52] }]);
  expect(JSON.stringify(body)).not.toMatch(/neil|zoe/);
});

test('what cannot be answered is said', async () => {
  const visitor = await enter();
  const refused = async (query: string) => {
    const { status, body } = await visitor.ask('GET group', query);
    return [status, body.error.message, body.error.help];
  };
  expect(await refused('?metric=happiness')).toEqual([400, 'happiness is no metric.', 'The metrics are those of baselines.metric.']);
  expect(await refused('?metric=steps&from=2020-01-01&to=2025-01-01')).toEqual([
    413,
    '1828 days are more than are answered at once.',
    'Ask for 1100 days at most.',
  ]);
});

test('of many people there are 60 on a page', async () => {
  const names = Array.from({ length: 61 }, (_, at) => `p${String(at + 1).padStart(2, '0')}`);
  const data = await placePeople(Object.fromEntries(names.map(name => [name, { sleep: [night('2025-01-01', 50)] }])));
  const visitor = await (await openConsoleHere(data)).enter();
  const { body } = await visitor.ask('GET group', '?metric=average_hrv&from=2025-01-01&to=2025-01-01&sort=name&page=2');
  expect(body).toMatchObject({ total: 61, page: 2, pages: 2, people: [{ id: 'p61', values: [50] }] });
});
