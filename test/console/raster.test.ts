import { expect, test } from 'vitest';
import { calendarModel, meansInView, rasterModel, stageAt } from '../../src/console/page/charts/raster-model.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const hours = (count: number) => count * 3600;
const textOf = (sentence: { text: string }[]) => sentence.map(({ text }) => text).join('');

/** Two nights, none, then one after a flight, whose clock changes in it, and a nap across noon. */
const PEOPLE = {
  ann: {
    sleep: [
      // 10 minutes deep, 20 REM, 30 awake.
      sleepOf('2025-10-22', '2025-10-21T23:00:00+02:00', '2025-10-22T00:00:00+02:00', {
        sleep_phase_30_sec: `${'1'.repeat(20)}${'3'.repeat(40)}${'4'.repeat(60)}`,
      }),
      sleepOf('2025-10-23', '2025-10-23T01:00:00+02:00', '2025-10-23T02:00:00+02:00'),
      sleepOf('2025-10-25', '2025-10-25T00:15:00+05:45', '2025-10-25T01:15:00+05:30', { sleep_phase_30_sec: `${'2'.repeat(119)}7` }),
      sleepOf('2025-10-25', '2025-10-25T11:45:00+05:30', '2025-10-25T12:30:00+05:30', { type: 'late_nap', sleep_phase_5_min: '222224444' }),
    ],
    daily_sleep: [{ id: 'd', day: '2025-10-23', score: 78, timestamp: '2025-10-23T00:00:00+02:00', contributors: {} }],
  },
};

let placed: Promise<string> | undefined;
async function askRaster(query = '') {
  placed ??= placePeople(PEOPLE);
  const visitor = await (await openConsoleHere(await placed)).enter();
  return visitor.ask('GET people/ann/raster', query);
}

test('the stages of all sleeps come in stretches, their scores beside them', async () => {
  const { status, body } = await askRaster();
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: 'ann', from: '2025-10-22', to: '2025-10-25' });
  expect(body.sleeps).toEqual({
    day: ['2025-10-22', '2025-10-23', '2025-10-25', '2025-10-25'],
    is_main: [true, true, true, false],
    start: [Date.UTC(2025, 9, 21, 21), Date.UTC(2025, 9, 22, 23), Date.UTC(2025, 9, 24, 18, 30), Date.UTC(2025, 9, 25, 6, 15)].map(
      ms => ms / 1000,
    ),
    end: [Date.UTC(2025, 9, 21, 22), Date.UTC(2025, 9, 23), Date.UTC(2025, 9, 24, 19, 45), Date.UTC(2025, 9, 25, 7)].map(ms => ms / 1000),
    offset: [7200, 7200, 20_700, 19_800],
    end_offset: [7200, 7200, 19_800, 19_800],
    stretches: [3, 1, 2, 2],
  });
  expect(body.stages).toEqual({ seconds: [600, 1200, 1800, 3600, 3570, 30, 1500, 1200], letters: 'dra?l?la' });
  expect(body.scores).toEqual({ day: ['2025-10-23'], score: [78] });
  expect(textOf(body.sentence)).toBe(
    '3 nights of 4 days. ann’s clock moved 2 times: the new offset stands at the right edge, at the night with which it began.',
  );
});

test('nights lie by the clock with which they began, and are cut at noon', async () => {
  const { body } = await askRaster();
  const model = rasterModel(body, 'own');
  expect(model.rows.map(({ day, hasNight }) => [day, hasNight])).toEqual([
    ['2025-10-22', true],
    ['2025-10-23', true],
    ['2025-10-24', false],
    ['2025-10-25', true],
  ]);
  expect(model.moves).toEqual([
    { row: 0, offset: 7200 },
    { row: 3, offset: 20_700 },
    { row: 3, offset: 19_800 },
  ]);
  // From noon: 23:00 is 11 hours, 00:15 is 12.25, the nap from 11:45 belongs to two rows, of which the second is not shown.
  expect(model.pieces).toEqual([
    { row: 0, from: hours(11), to: hours(11) + 600, stage: 'd' },
    { row: 0, from: hours(11) + 600, to: hours(11.5), stage: 'r' },
    { row: 0, from: hours(11.5), to: hours(12), stage: 'a' },
    { row: 1, from: hours(13), to: hours(14), stage: '?' },
    { row: 3, from: hours(12.25), to: hours(12.25) + 3570, stage: 'l' },
    { row: 3, from: hours(12.25) + 3570, to: hours(13.25), stage: '?' },
    { row: 3, from: hours(23.75), to: hours(24), stage: 'l' },
  ]);
  expect([hours(11), hours(11) + 599, hours(11) + 600, hours(12)].map(seconds => stageAt(model, 0, seconds))).toEqual([
    'd',
    'd',
    'r',
    undefined,
  ]);
  const utc = rasterModel(body, 'utc');
  expect(utc.pieces[0]).toEqual({ row: 0, from: hours(9), to: hours(9) + 600, stage: 'd' });
  // 06:15 to 07:00 in UTC.
  expect(utc.pieces.slice(-2).map(({ from, to }) => [from, to])).toEqual([
    [hours(18.25), hours(18.25) + 1500],
    [hours(18.25) + 1500, hours(19)],
  ]);
});

test('the calendar has a square for each day, by ISO weeks', async () => {
  const { body } = await askRaster('?from=2025-10-19&to=2025-10-27');
  expect(calendarModel(body).map(({ day, week, weekday, score }) => [day, week, weekday, score])).toEqual([
    ['2025-10-19', 0, 6, null],
    ['2025-10-20', 1, 0, null],
    ['2025-10-21', 1, 1, null],
    ['2025-10-22', 1, 2, null],
    ['2025-10-23', 1, 3, 78],
    ['2025-10-24', 1, 4, null],
    ['2025-10-25', 1, 5, null],
    ['2025-10-26', 1, 6, null],
    ['2025-10-27', 2, 0, null],
  ]);
});

test('more than three years, or days the wrong way round, are refused with what to ask', async () => {
  expect((await askRaster('?from=2020-01-01&to=2025-01-01')).body.error).toEqual({
    ...{ kind: 'large', message: '1828 days are more than are answered at once.', help: 'Ask for 1100 days at most.' },
  });
  expect((await askRaster('?from=2025-10-25&to=2025-10-22')).status).toBe(400);
  expect((await askRaster('?from=2025-99-99')).status).toBe(400);
});

test('the two days of a first month do not stand in place of the mean of the next', () => {
  const days = calendarModel({
    from: '2025-11-29',
    to: '2026-02-02',
    scores: { day: ['2025-11-30', '2025-12-01', '2025-12-31'], score: [60, 80, 90] },
  });
  expect(meansInView(days, { left: 36, size: 18 }).map(({ month, mean }) => [month, mean])).toEqual([
    ['2025-12', 85],
    ['2026-01', null],
    ['2026-02', null],
  ]);
});
