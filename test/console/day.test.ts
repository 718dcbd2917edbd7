import { expect, test } from 'vitest';
import { bucketsOf, gapsOf, tableOf } from '../../src/console/page/charts/day-model.ts';
import { localDay } from '../../src/console/server/local-day.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const at = (text: string) => Date.parse(text) / 1000;
const lengthOf = ({ start, end }: { start: number; end: number }) => (end - start) / 3600;

test('a date lasts from midnight to midnight of the person’s clock', () => {
  const kathmandu = [{ start: at('2025-01-01T00:00:00Z'), offset: 20_700 }];
  expect(localDay('2025-03-09', kathmandu)).toEqual({
    start: at('2025-03-09T00:00:00+05:45'),
    end: at('2025-03-10T00:00:00+05:45'),
    clocks: [{ start: at('2025-03-09T00:00:00+05:45'), offset: 20_700 }],
  });
  expect(localDay('2025-03-09', [])).toMatchObject({ start: at('2025-03-09T00:00:00Z'), clocks: [{ offset: 0 }] });
});

test('it has 25 hours when clocks go back, 23 when they go forward, and a seam where the first document tells it', () => {
  const back = [
    { start: at('2025-10-01T00:00:00Z'), offset: 7200 },
    { start: at('2025-10-26T06:00:00Z'), offset: 3600 },
  ];
  expect(lengthOf(localDay('2025-10-26', back))).toBe(25);
  expect(localDay('2025-10-26', back).clocks).toEqual([
    { start: at('2025-10-25T22:00:00Z'), offset: 7200 },
    { start: at('2025-10-26T06:00:00Z'), offset: 3600 },
  ]);
  expect(lengthOf(localDay('2025-10-25', back))).toBe(24);
  const forward = [
    { start: at('2025-03-01T00:00:00Z'), offset: 3600 },
    { start: at('2025-03-30T05:00:00Z'), offset: 7200 },
  ];
  expect(lengthOf(localDay('2025-03-30', forward))).toBe(23);
});

test('west over midnight it begins once, and has the hours of the date before in it', () => {
  // From UTC+1, where the 2nd has begun at 23:00 UTC, to UTC−4, where it is the 1st again until 04:00 UTC.
  const west = [
    { start: at('2025-09-01T00:00:00Z'), offset: 3600 },
    { start: at('2025-10-02T02:11:00Z'), offset: -14_400 },
  ];
  expect(localDay('2025-10-02', west)).toEqual({
    start: at('2025-10-01T23:00:00Z'),
    end: at('2025-10-03T04:00:00Z'),
    clocks: [
      { start: at('2025-10-01T23:00:00Z'), offset: 3600 },
      { start: at('2025-10-02T02:11:00Z'), offset: -14_400 },
    ],
  });
});

const DAY = {
  sleep: [sleepOf('2025-03-09', '2025-03-09T01:05:00+01:00', '2025-03-09T07:01:00+01:00')],
  workout: [
    {
      ...{ id: 'w', day: '2025-03-09', activity: 'running', intensity: 'hard', source: 'manual', label: '<b>lap</b>' },
      ...{ start_datetime: '2025-03-09T18:00:00+01:00', end_datetime: '2025-03-09T18:30:00+01:00' },
    },
  ],
  enhanced_tag: [
    { id: 't', start_day: '2025-03-09', start_time: '2025-03-09T20:00:00+01:00', tag_type_code: 'tag_generic_alcohol', comment: '=1' },
    { id: 'u', start_day: '2025-03-11', start_time: '2025-03-11T20:00:00+01:00', tag_type_code: 'tag_generic_sick' },
  ],
  daily_activity: [
    {
      ...{ id: 'a', day: '2025-03-09', timestamp: '2025-03-09T04:00:00+01:00', class_5_min: '110001' },
      met: {
        interval: 60,
        items: [...new Array(10).fill(1), ...new Array(10).fill(null), ...new Array(10).fill(3)],
        timestamp: '2025-03-09T04:00:00+01:00',
      },
    },
  ],
};
/** Of the night: five minutes with a sample, five without, five with one. */
const [NIGHT] = DAY.sleep;
const HEART = { ...NIGHT, heart_rate: { interval: 300, items: [52, null, 49], timestamp: '2025-03-09T01:05:00+01:00' } };

test('a day has what was measured by 5 minutes, what happened, and where the ring was not worn', async () => {
  const ann = await (await openConsoleHere(await placePeople({ ann: { ...DAY, sleep: [HEART] } }, { ann: { birth_year: 1985 } }))).enter();
  const { status, body } = await ann.ask('GET people/ann/day/2025-03-09');
  expect(status).toBe(200);
  const local = (time: string) => at(`2025-03-09T${time}+01:00`);
  expect(body).toMatchObject({
    ...{ id: 'ann', day: '2025-03-09', is_clock_known: true, start: local('00:00'), end: local('00:00') + 86_400 },
    clocks: [{ start: local('00:00'), offset: 3600 }],
    heart_rate: {
      start: [local('01:05'), local('01:15')],
      ...{ lowest: [52, 49], median: [52, 49], highest: [52, 49], measurements: [1, 1], source: ['sleep', 'sleep'] },
    },
    met: {
      start: ['04:00', '04:05', '04:10', '04:15', '04:20', '04:25'].map(local),
      met: [1, 1, null, null, 3, 3],
    },
    // The digits 110001, of 5 minutes each.
    non_wear: { start: [local('04:10')], seconds: [900] },
    events: [
      { kind: 'sleep', start: local('01:05'), end: local('07:01'), name: 'night', detail: null },
      { kind: 'workout', start: local('18:00'), end: local('18:30'), name: 'running', detail: '<b>lap</b>' },
      { kind: 'tag', start: local('20:00'), end: null, name: 'tag_generic_alcohol', detail: '=1' },
    ],
    // 208 less 0.7 times 40 years.
    maximum: { heart_rate: 180, origin: 'from the year of birth in participants' },
  });
});

test('hours that come twice are told apart in the table, by the offset of each', async () => {
  const offsets: [string, string, string][] = [
    ['2025-10-25', '2025-10-25T00:00:00+02:00', '2025-10-25T06:00:00+02:00'],
    ['2025-10-26', '2025-10-26T00:00:00+02:00', '2025-10-26T02:30:00+01:00'],
  ];
  const served = await openConsoleHere(await placePeople({ ada: { sleep: offsets.map(one => sleepOf(...one)) } }));
  const { ask } = await served.enter({ role: 'reader' });
  const [time, offset] = tableOf((await ask('GET people/ada/day/2025-10-26')).body);
  const rows = time!.values.flatMap((text, row) => (text === '2025-10-26 02:45' ? [offset!.values[row]] : []));
  expect([time!.values.length, rows]).toEqual([300, ['UTC+2', 'UTC+1']]);
});

test('a night that is stored again under another id is no nap, and is drawn once', async () => {
  const night = (id: string, from: string, changes: object) =>
    sleepOf('2025-03-09', `2025-03-09T${from}:00+01:00`, '2025-03-09T07:00:00+01:00', { id, ...changes });
  const sleep = [
    night('s', '01:00', { total_sleep_duration: 20_000, sleep_phase_30_sec: '1'.repeat(720) }),
    night('again', '01:05', { total_sleep_duration: 19_000, sleep_phase_30_sec: '4'.repeat(710) }),
    sleepOf('2025-03-09', '2025-03-09T14:00:00+01:00', '2025-03-09T14:30:00+01:00', { type: 'late_nap' }),
  ];
  const ann = await (await openConsoleHere(await placePeople({ ann: { sleep } }))).enter();
  const { events } = (await ann.ask('GET people/ann/day/2025-03-09')).body;
  expect(events.map(({ start, name }: Record<string, unknown>) => [start, name])).toEqual([
    [at('2025-03-09T01:00:00+01:00'), 'night'],
    [at('2025-03-09T14:00:00+01:00'), 'nap'],
  ]);
  const { sleeps, stages } = (await ann.ask('GET people/ann/raster')).body;
  expect(sleeps.is_main).toEqual([true, false]);
  expect(stages.letters).toBe('d?');
});

test('hours of today that have not come are no gap, those since the last measurement are', async () => {
  const folder = await placePeople({ ann: { ...DAY, sleep: [HEART] } });
  const gapsAt = async (now: string, day = '2025-03-09') => {
    const ann = await (await openConsoleHere(folder, { now: () => Date.parse(now) })).enter();
    const { body } = await ann.ask(`GET people/ann/day/${day}`);
    const gaps = gapsOf(body, bucketsOf(body), ({ met }) => met);
    return gaps.map(({ start, end }) => [start, end].map(one => new Date(one * 1000).toISOString().slice(11, 16)));
  };
  // MET came from 03:00 to 03:30 by UTC, with 10 minutes left out.
  const [before, within] = [
    ['23:00', '03:00'],
    ['03:10', '03:20'],
  ];
  expect(await gapsAt('2025-03-09T09:00:00Z')).toEqual([before, within, ['03:30', '09:00']]);
  expect(await gapsAt('2025-03-09T03:31:00Z')).toEqual([before, within]);
  // A clock of ours that is behind hides nothing that was measured.
  expect(await gapsAt('2025-03-09T01:00:00Z')).toEqual([before, within]);
  expect(await gapsAt('2025-03-10T09:00:00Z')).toEqual([before, within, ['03:30', '23:00']]);
});
