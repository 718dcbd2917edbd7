import { expect, test } from 'vitest';
import { type MissingNight, tellMissing, tellUnusual } from '../../src/console/server/night-words.ts';
import { unusualOf } from '../../src/console/server/unusual.ts';

const rows = (values: Record<string, number | null>) => Object.entries(values).map(([metric, z]) => ({ metric, z }));
const names = (values: Record<string, number | null>) => unusualOf(rows(values)).map(({ metric }) => metric);

test('one of the four that move together is not unusual below 3, two are from 2 on', () => {
  expect(names({ temperature_deviation: 2.9, sleep_score: -2.9 })).toEqual([]);
  expect(names({ temperature_deviation: 2.9, average_breath: 1.99, efficiency: 2.5 })).toEqual([]);
  expect(names({ temperature_deviation: 2, average_hrv: -2.5, efficiency: 2.9 })).toEqual(['average_hrv', 'temperature_deviation']);
});

test('any metric is unusual from 3 on, what is not judged never', () => {
  expect(names({ steps: -3, sleep_score: null, deep_sleep_duration: 2.99 })).toEqual(['steps']);
  expect(names({ average_breath: 3.1, temperature_deviation: 2.1, lowest_heart_rate: 1 })).toEqual([
    'average_breath',
    'temperature_deviation',
  ]);
});

test('what is unusual is one sentence, with values and their units', () => {
  const usual = [
    { metric: 'average_breath', value: 17.503, median: 16.4, z: 4.2, nights: 28 },
    { metric: 'temperature_deviation', value: 0.77, median: 0.08, z: 2.2, nights: 28 },
    { metric: 'active_calories', value: 90, median: 385, z: -3.3, nights: 28 },
  ];
  expect(tellUnusual(usual, 'you')).toBe(
    'Breathing (17.5 /min) and temperature (+0.77 °C) are well above, active energy (90 kcal) is well below what is usual for you',
  );
  expect(tellUnusual([], 'you')).toBe('');
});

test.each<[string, Partial<MissingNight>, string]>([
  ['read and empty', { state: 'empty' }, 'The service has no sleep for this day: it was asked after the day was over.'],
  [
    'not worn',
    { state: 'empty', isWorn: false, nonWear: 64_800 },
    'The service has no sleep for this day: it was asked after the day was over. The ring was not worn for 18 h 00 of this day.',
  ],
  ['refused', { state: 'not_authorised', reason: '403' }, 'The service does not give this person’s sleep: 403.'],
  ['failed', { state: 'failed', reason: '500 Oops' }, 'The sleep of this day could not be read: 500 Oops.'],
  ['under way', { state: 'pending' }, 'The sleep of this day is being read.'],
  [
    'not over',
    { unended: 1, state: 'stored' },
    'A sleep of this day is stored that has not ended: the night comes when the ring has brought the rest of it.',
  ],
  ['today', { isToday: true, state: 'not_asked' }, 'The day is not over: its night may still come.'],
  [
    'today, after a nap',
    { isToday: true, state: 'stored', naps: 1 },
    'The day is not over: its night may still come. Only a nap came so far.',
  ],
  ['today, read where it is tomorrow by UTC', { isToday: true, state: 'empty' }, 'The day is not over: its night may still come.'],
  ['today, refused after naps', { isToday: true, state: 'not_authorised', naps: 2 }, 'The service does not give this person’s sleep.'],
  ['naps alone', { state: 'stored', naps: 2 }, 'No main sleep came for this day, only 2 naps.'],
])('a night that is missing: %s', (_name, given, words) => {
  expect(tellMissing({ state: null, reason: null, nonWear: null, isWorn: true, unended: 0, naps: 0, isToday: false, ...given })).toBe(
    words,
  );
});
