import { expect, test } from 'vitest';
import { openConsoleHere } from '../support/console-harness.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const DAYS = Array.from({ length: 16 }, (_, i) => new Date(Date.UTC(2025, 0, 1 + i)).toISOString().slice(0, 10));

/** Sixteen nights; HRV 50 and 52 in turn, but 80 in the last; time asleep 6 h, then 7 h 30. */
const NIGHTS = DAYS.map((day, i) =>
  sleepOf(day, `${day}T00:30:00+01:00`, `${day}T08:30:00+01:00`, {
    average_hrv: i === 15 ? 80 : 50 + 2 * (i % 2),
    total_sleep_duration: i === 15 ? 27_000 : 21_600,
    latency: i === 15 ? 2760 : 300,
    time_in_bed: 28_800,
  }),
);

const PEOPLE = {
  ann: { sleep: NIGHTS },
  ben: {
    sleep: [
      // 10 minutes deep, 5 light, 5 REM, 5 awake, a digit that is none, 34.5 minutes light.
      sleepOf('2025-10-26', '2025-10-26T01:30:00+02:00', '2025-10-26T01:30:00+01:00', {
        sleep_phase_30_sec: `${'1'.repeat(20) + '2'.repeat(10) + '3'.repeat(10) + '4'.repeat(10)}7${'2'.repeat(69)}`,
        movement_30_sec: '1'.repeat(10) + '4'.repeat(10) + '1'.repeat(100),
        heart_rate: {
          interval: 300,
          items: [null, null, 60, 58, null, 57.5, 61, null, null, null, 59, 60],
          timestamp: '2025-10-26T01:30:00+02:00',
        },
        hrv: { interval: 300, items: [40, null, 42, 44, 41, 40, 39, 38, 40, 41, 42, 43], timestamp: '2025-10-26T01:30:00+02:00' },
        total_sleep_duration: 3270,
      }),
      sleepOf('2025-10-26', '2025-10-26T14:00:00+01:00', '2025-10-26T14:30:00+01:00', { type: 'late_nap', total_sleep_duration: 1500 }),
      sleepOf('2025-10-28', '2025-10-28T14:00:00+01:00', '2025-10-28T14:30:00+01:00', { type: 'late_nap', total_sleep_duration: 1500 }),
    ],
  },
};

let opened: Promise<string> | undefined;
const asAnn = async (person: string | null = null, now = Date.now) => {
  opened ??= placePeople(PEOPLE);
  const console = await openConsoleHere(await opened, { now });
  return console.enter(person === null ? {} : { role: 'person', person });
};
const textOf = (sentence: { text: string }[]) => sentence.map(({ text }) => text).join('');

test('a day that there is not is refused in our words, wherever it is asked for', async () => {
  const ann = await asAnn();
  for (const day of ['2025-02-30', '2025-99-99', '0000-00-00']) {
    for (const [path, query, said] of [
      [`GET people/ann/night/${day}`, '', 'day: a day, as 2025-11-22'],
      [`GET people/ann/day/${day}`, '', 'day: a day, as 2025-11-22'],
      ['GET people/ann/raster', `?from=${day}`, 'from: a day, as 2025-11-22'],
    ] as const) {
      const { status, body } = await ann.ask(path, query);
      expect([status, body.error.message], `${path}${query}`).toEqual([400, said]);
    }
  }
});

test('a night is told against what is usual for the person', async () => {
  const ann = await asAnn();
  const { status, body } = await ann.ask('GET people/ann/night/newest');
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: 'ann', day: '2025-01-16', first_day: '2025-01-01', last_day: '2025-01-16', newest_night: '2025-01-16' });
  // Of 15 nights before 8 of 50 and 7 of 52: median 50, distances 0 (8 times) and 2 (7 times): MAD 0, so 2 % of 50 is the spread that is believed.
  expect(body.usual.find(({ metric }: { metric: string }) => metric === 'average_hrv')).toEqual({
    ...{ metric: 'average_hrv', value: 80, median: 50, spread: 0, z: 30, nights: 15, note: '' },
  });
  expect(body.unusual).toEqual(['average_hrv']);
  expect(textOf(body.sentence)).toBe(
    '7 h 30 asleep, 1 h 30 more than usual. Heart rate variability (80 ms) is well above what is usual for ann. Falling asleep took 46 min. ',
  );
});

test('with 13 nights before, a night is not judged; with 14 it is', async () => {
  const ann = await asAnn();
  const hrvOf = async (day: string) => {
    const { body } = await ann.ask(`GET people/ann/night/${day}`);
    return body.usual.find(({ metric }: { metric: string }) => metric === 'average_hrv');
  };
  expect(await hrvOf('2025-01-14')).toMatchObject({
    value: 52,
    median: null,
    z: null,
    nights: 13,
    note: 'not enough nights yet (13 of 14)',
  });
  expect(await hrvOf('2025-01-15')).toMatchObject({ value: 50, median: 51, z: expect.closeTo(-1 / 1.4826, 9), nights: 14, note: '' });
});

test('a sleep has its stages, its samples with those that are missing, and both of its clocks', async () => {
  const ann = await asAnn();
  const { body } = await ann.ask('GET people/ben/night/2025-10-26');
  const [night, nap, ...others] = body.sleeps;
  expect(others).toEqual([]);
  expect(nap).toMatchObject({
    type: 'late_nap',
    is_main: false,
    heart_rate: null,
    movement: '',
    stages: { start: [], seconds: [], stage: [] },
  });
  // 2025-10-25T23:30:00Z
  const start = 1_761_435_000;
  expect(night).toMatchObject({
    ...{ is_main: true, start, start_offset: 7200, end: start + 3600, end_offset: 3600, asleep: 3270 },
    stages: {
      start: [start, start + 600, start + 900, start + 1200, start + 1500, start + 1530],
      seconds: [600, 300, 300, 300, 30, 2070],
      stage: ['deep', 'light', 'rem', 'awake', null, 'light'],
    },
    heart_rate: { start, interval: 300, values: [null, null, 60, 58, null, 57.5, 61, null, null, null, 59, 60] },
    hrv: { start, interval: 300, values: [40, null, 42, 44, 41, 40, 39, 38, 40, 41, 42, 43] },
  });
  expect(textOf(body.sentence)).toBe(
    '0 h 55 asleep; what is usual is not known yet (0 of 14 nights). The clock moved back by 1 h 00 in this night; at which moment is not in the data. ',
  );
});

test('a day without a night says why', async () => {
  const ann = await asAnn();
  const missing = async (day: string) => (await ann.ask(`GET people/ben/night/${day}`)).body;
  expect(await missing('2025-10-27')).toMatchObject({
    sleeps: [],
    missing: 'Whether there is a sleep of this day is not known: it has not been asked for since the day was over.',
  });
  const napOnly = await missing('2025-10-28');
  expect(napOnly).toMatchObject({ missing: 'No main sleep came for this day, only a nap.', sleeps: [{ type: 'late_nap' }] });
  expect(textOf(napOnly.sentence)).toBe('No night. No main sleep came for this day, only a nap.');
});

test('a person is told of themselves, and finds nobody else', async () => {
  const ann = await asAnn('ann');
  const { body } = await ann.ask('GET people/ann/night/2025-01-16');
  expect(textOf(body.sentence)).toContain('is well above what is usual for you. ');
  expect(await ann.ask('GET people/ben/night/newest')).toMatchObject({
    status: 404,
    body: { error: { kind: 'missing', message: 'Nobody is called ben.', help: 'The overview lists everybody.' } },
  });
});

test('a day that is none, and somebody who is nobody, are named', async () => {
  const ann = await asAnn();
  expect((await ann.ask('GET people/ann/night/yesterday')).status).toBe(400);
  expect((await ann.ask('GET people/nobody/night/newest')).status).toBe(404);
  expect((await ann.ask("GET people/'%3B--/night/newest")).status).toBe(404);
});

test('the query that is shown answers the same', async () => {
  const ann = await asAnn();
  const { body } = await ann.ask('GET people/ann/night/2025-01-16');
  expect(body.sql.usual).toContain("WHERE user_id = 'ann'");
  expect(body.sql.usual).not.toContain('$');
});

test('of a day that is not over by the person’s clock the night is awaited', async () => {
  // 01:00 on the 17th where ann is.
  const ann = await asAnn(null, () => Date.UTC(2025, 0, 17, 0, 0));
  const missingOf = async (day: string) => (await ann.ask(`GET people/ann/night/${day}`)).body.missing;
  expect(await missingOf('2025-01-17')).toBe('The day is not over: its night may still come.');
  expect(await missingOf('2024-12-31')).toBe(
    'Whether there is a sleep of this day is not known: it has not been asked for since the day was over.',
  );
});
