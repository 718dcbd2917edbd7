import { describe, expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { emptiedWarehouse, utc } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

describe('nights', () => {
  const DAY = '2025-03-11';
  const which = async (...documents: object[]) => {
    await store(
      warehouse,
      'sleep',
      documents.map(document => ({ day: DAY, period: 0, low_battery_alert: false, ...document })),
    );
    return {
      night: (await rows(warehouse, 'SELECT sleep_id FROM nights')).map(row => (row as { sleep_id: string }).sleep_id),
      naps: (await rows(warehouse, 'SELECT sleep_id FROM naps ORDER BY sleep_id')).map(row => (row as { sleep_id: string }).sleep_id),
    };
  };
  const long = { type: 'long_sleep', ...utc('2025-03-10T22:00', '2025-03-11T06:00'), time_in_bed: 28800 };
  const nap = { type: 'sleep', ...utc('2025-03-11T13:00', '2025-03-11T14:00'), time_in_bed: 3600, total_sleep_duration: 3000 };

  test('the longest long_sleep of a day is its night, other sleeps are naps, deleted and rest are neither', async () => {
    expect(
      await which(
        { ...long, id: 'shorter', ...utc('2025-03-10T14:00', '2025-03-10T21:59'), total_sleep_duration: 20000 },
        { ...long, id: 'longer', total_sleep_duration: 20001 },
        { ...nap, id: 'nap' },
        { ...long, id: 'deleted', type: 'deleted', total_sleep_duration: 40000 },
        { ...long, id: 'rest', type: 'rest', total_sleep_duration: 40000 },
      ),
    ).toEqual({ night: ['longer'], naps: ['nap', 'shorter'] });
  });

  test('a long_sleep comes before anything else, however long that was', async () => {
    expect(
      await which(
        { ...long, id: 'long', time_in_bed: 11000, total_sleep_duration: 10900 },
        { ...long, id: 'untyped', type: null, ...utc('2025-03-11T06:00', '2025-03-11T13:59'), total_sleep_duration: 25000 },
        { ...long, id: 'late', type: 'late_nap', ...utc('2025-03-10T14:00', '2025-03-10T22:00'), total_sleep_duration: 26000 },
      ),
    ).toEqual({ night: ['long'], naps: ['late', 'untyped'] });
  });

  test('a day with naps alone has no night', async () => {
    const late = { ...nap, id: 'late', type: 'late_nap', ...utc('2025-03-10T14:00', '2025-03-10T18:30'), time_in_bed: 16200 };
    expect(await which({ ...nap, id: 'nap' }, late)).toEqual({ night: [], naps: ['late', 'nap'] });
  });

  test('a short sleep in the night is the night where there is no longer one', async () => {
    expect(
      await which(
        { ...nap, id: 'short night', ...utc('2025-03-11T02:00', '2025-03-11T04:30'), time_in_bed: 9000, total_sleep_duration: 2000 },
        { ...nap, id: 'nap' },
      ),
    ).toEqual({ night: ['short night'], naps: ['nap'] });
  });

  test.each([
    ['2025-03-10T20:29', '2025-03-10T21:29', false],
    ['2025-03-10T20:30', '2025-03-10T21:30', true],
    ['2025-03-11T08:29', '2025-03-11T09:29', true],
    ['2025-03-11T08:30', '2025-03-11T09:30', false],
  ])('in the night means that the middle lies between 21:00 and 9:00: from %s to %s %s', async (from, to, isNight) => {
    expect((await which({ ...nap, id: 'x', ...utc(from, to) })).night).toEqual(isNight ? ['x'] : []);
  });

  test('without a kind, more than three hours in bed make a night, at any time of the day', async () => {
    expect(
      await which(
        { id: 'day sleeper', ...utc('2025-03-11T09:00', '2025-03-11T15:00'), time_in_bed: 21600 },
        { id: 'three hours', ...utc('2025-03-11T15:00', '2025-03-11T18:00'), time_in_bed: 10800, total_sleep_duration: 10000 },
      ),
    ).toEqual({ night: ['day sleeper'], naps: ['three hours'] });
  });

  test('what overlaps the main sleep is the same night again and no nap, what touches it is one', async () => {
    expect(
      await which(
        { ...long, id: 'old', total_sleep_duration: 27000 },
        { ...long, id: 'edited', ...utc('2025-03-10T22:10', '2025-03-11T06:00'), total_sleep_duration: 27001 },
        { ...nap, id: 'within', ...utc('2025-03-11T02:00', '2025-03-11T03:00') },
        { ...nap, id: 'into its end', ...utc('2025-03-11T05:59', '2025-03-11T07:00') },
        { ...nap, id: 'into its start', type: 'late_nap', ...utc('2025-03-10T17:00', '2025-03-10T22:11') },
        { ...nap, id: 'around it', ...utc('2025-03-10T22:00', '2025-03-11T06:30') },
        { ...nap, id: 'after', ...utc('2025-03-11T06:00', '2025-03-11T06:45') },
        { ...nap, id: 'before', type: 'late_nap', ...utc('2025-03-10T21:00', '2025-03-10T22:10'), total_sleep_duration: 600 },
      ),
    ).toEqual({ night: ['edited'], naps: ['after', 'before'] });
    expect(await rows(warehouse, 'SELECT sleep_id, naps, nap_duration FROM daily')).toEqual([
      { sleep_id: 'edited', naps: 2, nap_duration: 3600 },
    ]);
    expect(await rows(warehouse, 'SELECT main, nap, count(*) AS sleeps FROM counted_sleeps GROUP BY ALL ORDER BY ALL')).toEqual([
      { main: false, nap: false, sleeps: 5 },
      { main: false, nap: true, sleeps: 2 },
      { main: true, nap: false, sleeps: 1 },
    ]);
  });

  test('of two documents of one night, alike in all, the one stored last is it', async () => {
    await store(warehouse, 'sleep', [{ day: DAY, period: 0, low_battery_alert: false, ...long, id: 'a', total_sleep_duration: 20000 }]);
    expect(await which({ ...long, id: 'b', total_sleep_duration: 20000 })).toEqual({ night: ['b'], naps: [] });
    expect(await which({ ...long, id: 'a', total_sleep_duration: 20000, efficiency: 90 })).toEqual({ night: ['a'], naps: [] });
  });

  test('of equals the longer in bed, then the earlier is the night', async () => {
    expect(
      await which(
        { ...long, id: 'b', total_sleep_duration: 20000, time_in_bed: 25000 },
        { ...long, id: 'c', total_sleep_duration: 20000, ...utc('2025-03-10T21:59', '2025-03-11T06:00') },
        { ...long, id: 'e', total_sleep_duration: 20000, ...utc('2025-03-10T21:58', '2025-03-11T06:00') },
        { ...long, id: 'a', total_sleep_duration: null, time_in_bed: 30000 },
      ),
    ).toMatchObject({ night: ['e'] });
  });

  test('a sleep that goes on is neither night nor nap, and has its stages so far', async () => {
    expect(
      await which(
        { ...long, id: 'going on', bedtime_end: null, sleep_phase_5_min: '42', total_sleep_duration: 300 },
        { ...nap, id: 'nap' },
      ),
    ).toEqual({ night: [], naps: ['nap'] });
    expect(await rows(warehouse, 'SELECT ts, seconds, stage FROM sleep_stages ORDER BY ts')).toEqual([
      { ts: '2025-03-10 22:00:00', seconds: 300, stage: 'awake' },
      { ts: '2025-03-10 22:05:00', seconds: 300, stage: 'light' },
    ]);
  });
});
