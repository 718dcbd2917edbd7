import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseJson } from '../../src/base/json.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { normalise } from '../support/equal-in-meaning.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { ACTIVITY, READINESS, RESILIENCE, RING, SESSION, SLEEP, SPO2, STRESS, VO2_MAX } from '../support/wire.ts';
import { drift, extraOf, rejected } from './tolerance.ts';

const folder = tempFolder();
let warehouse: Warehouse;

beforeEach(async () => {
  warehouse = await openWarehouse(newPath(folder));
});

afterEach(() => warehouse.close());

/** Microseconds. */
const at = (text: string) => Date.parse(text) * 1000;

test('a required field that is null or absent is null in its column, and drift', async () => {
  const { total_calories: _, met: __, ...partial } = ACTIVITY;
  await store(warehouse, 'daily_activity', [{ ...partial, steps: null, timestamp: null, contributors: null }]);
  expect(
    await warehouse.read(
      'SELECT steps, total_calories, "timestamp", timestamp_offset, met_start, met_count, contributors_stay_active, extra FROM daily_activity',
    ),
  ).toEqual([[null, null, null, null, null, null, null, null]]);
  expect(await drift(warehouse)).toEqual([
    ['daily_activity', 'contributors', 'missing', 1],
    ['daily_activity', 'met', 'missing', 1],
    ['daily_activity', 'steps', 'missing', 1],
    ['daily_activity', 'timestamp', 'missing', 1],
    ['daily_activity', 'total_calories', 'missing', 1],
  ]);
});

test('the end of a sleep that goes on is null, and that is no drift; without the key it is', async () => {
  const { bedtime_end: _, ...endless } = SLEEP;
  await store(warehouse, 'sleep', [{ ...SLEEP, id: 'goes on', bedtime_end: null }]);
  expect(await drift(warehouse)).toEqual([]);
  await store(warehouse, 'sleep', [{ ...endless, id: 'endless' }]);
  expect(await drift(warehouse)).toEqual([['sleep', 'bedtime_end', 'missing', 1]]);
});

test('a promised field that is missing in an optional object is drift too', async () => {
  await store(warehouse, 'daily_spo2', [{ ...SPO2, spo2_percentage: {} }]);
  expect(await warehouse.read('SELECT spo2_percentage_average, extra FROM daily_spo2')).toEqual([[null, null]]);
  expect(await drift(warehouse)).toEqual([['daily_spo2', 'spo2_percentage.average', 'missing', 1]]);
});

test('an optional field of a wrong type is null in its column, and whole in extra', async () => {
  await store(warehouse, 'sleep', [
    {
      ...SLEEP,
      average_hrv: 61.5,
      average_breath: '14',
      lowest_heart_rate: 1e20,
      movement_30_sec: 114,
      readiness: { contributors: { hrv_balance: true, sleep_balance: 80 }, score: [79] },
      heart_rate: { interval: 300, items: [50, 'x'], timestamp: '2025-01-14T23:20:42.000-03:30' },
      hrv: 'none',
    },
  ]);
  expect(
    await warehouse.read(
      `SELECT average_hrv, average_breath, lowest_heart_rate, movement_30_sec, readiness_contributors_hrv_balance,
         readiness_contributors_sleep_balance, readiness_score, heart_rate_start, heart_rate_count, hrv_count FROM sleep`,
    ),
  ).toEqual([[null, null, null, null, null, 80, null, at('2025-01-15T02:50:42Z'), 2, null]]);
  expect(await extraOf(warehouse, 'sleep')).toEqual([
    [
      's-1',
      {
        average_breath: '14',
        average_hrv: 61.5,
        heart_rate: { interval: 300, items: [50, 'x'], timestamp: '2025-01-14T23:20:42.000-03:30' },
        hrv: 'none',
        lowest_heart_rate: 100000000000000000000,
        movement_30_sec: 114,
        readiness: { contributors: { hrv_balance: true }, score: [79] },
      },
    ],
  ]);
  expect(await warehouse.read('SELECT value FROM sleep_heart_rate ORDER BY ts')).toEqual([[50], [null]]);
  expect(await drift(warehouse)).toEqual(
    [
      'average_breath',
      'average_hrv',
      'heart_rate',
      'hrv',
      'lowest_heart_rate',
      'movement_30_sec',
      'readiness.contributors.hrv_balance',
      'readiness.score',
    ].map(path => ['sleep', path, 'wrong type', 1]),
  );
  expect(await rejected(warehouse)).toEqual([]);
});

test('61.5 in a column of whole numbers is nowhere rounded', async () => {
  await store(warehouse, 'daily_readiness', [{ ...READINESS, score: 61.5 }]);
  expect(await warehouse.read('SELECT score, extra::VARCHAR FROM daily_readiness')).toEqual([[null, '{"score":61.5}']]);
});

test('whole numbers to 2⁵³ are exact, on both sides of zero', async () => {
  await store(warehouse, 'ring_configuration', [
    { ...RING, size: 9007199254740991 },
    { ...RING, id: 'b', size: -9007199254740991 },
    { ...RING, id: 'c', size: -1 },
    { ...RING, id: 'd', size: 4294967296 },
  ]);
  expect(await warehouse.read('SELECT size FROM ring_configuration ORDER BY sk')).toEqual([
    [9007199254740991],
    [-9007199254740991],
    [-1],
    [4294967296],
  ]);
});

test.each([
  ['without an offset', '2025-02-28T21:14:00'],
  ['on a day that is none', '2025-02-30T21:14:00+00:00'],
  ['finer than a microsecond', '2025-02-28T21:14:00.0000001+00:00'],
  ['too far away to be exact', '9999-12-31T23:59:59.999+00:00'],
])('a timestamp %s is null in its column, raw in extra', async (_, timestamp) => {
  await store(warehouse, 'vo2_max', [{ ...VO2_MAX, timestamp }]);
  expect(await warehouse.read('SELECT "timestamp", timestamp_offset, vo2_max FROM vo2_max')).toEqual([[null, null, 44]]);
  expect(await extraOf(warehouse, 'vo2_max')).toEqual([['v-1', { timestamp }]]);
  expect(await drift(warehouse)).toEqual([['vo2_max', 'timestamp', 'bad format', 1]]);
});

const MET = ACTIVITY.met;

test.each([
  ['without a timestamp', { interval: 60, items: [1] }, 'missing'],
  ['with null items', { interval: 60, items: null, timestamp: MET.timestamp }, 'missing'],
  ['with a timestamp without an offset', { ...MET, timestamp: '2025-03-30T04:00:00' }, 'bad format'],
  ['with an interval of nothing', { ...MET, interval: 0 }, 'out of range'],
  ['with an interval that goes backwards', { ...MET, interval: -60 }, 'out of range'],
  ['with an interval too small to tell its samples apart', { ...MET, interval: 1e-9 }, 'out of range'],
  ['that would last for ever', { ...MET, interval: 1e300 }, 'out of range'],
])('a required sample %s is whole in extra, and the document stored', async (_, met, kind) => {
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, met }]);
  expect(await warehouse.read('SELECT met_start, met_count, steps FROM daily_activity')).toEqual([[null, null, 10230]]);
  expect(await extraOf(warehouse, 'daily_activity')).toEqual([['a-1', { met }]]);
  expect(await drift(warehouse)).toEqual([['daily_activity', 'met', kind, 1]]);
});

test('a strange item of a sample is null in its place, and the sample whole in extra', async () => {
  await store(warehouse, 'session', [
    { ...SESSION, motion_count: { interval: 5, items: [1, {}], timestamp: SESSION.heart_rate.timestamp } },
  ]);
  expect(await warehouse.read('SELECT heart_rate_count, motion_count_count FROM session')).toEqual([[3, 2]]);
  expect(await warehouse.read('SELECT count(*) FROM session_heart_rate')).toEqual([[3]]);
  expect(await warehouse.read('SELECT value FROM session_motion_count ORDER BY ts')).toEqual([[1], [null]]);
  expect(await warehouse.read(`SELECT extra->>'$.motion_count.items' FROM session`)).toEqual([['[1,{}]']]);
  expect(await warehouse.read('SELECT path, kind, example FROM sync.drift')).toEqual([
    ['motion_count', 'wrong type', '$.motion_count.items[1]'],
  ]);
});

test.each([
  ['daily_activity', 'text for a whole number', { ...ACTIVITY, steps: '10230' }, 'steps'],
  ['daily_activity', 'a fraction for a whole number', { ...ACTIVITY, steps: 61.5 }, 'steps'],
  ['daily_activity', 'a whole number beyond what is exact', { ...ACTIVITY, steps: 9007199254740992 }, 'steps'],
  ['daily_activity', 'text for a number', { ...ACTIVITY, average_met_minutes: '1.5' }, 'average_met_minutes'],
  ['daily_activity', 'a list for an object', { ...ACTIVITY, contributors: [] }, 'contributors'],
  ['daily_activity', 'a list for a sample', { ...ACTIVITY, met: [1, 2] }, 'met'],
  ['daily_activity', 'text for an interval', { ...ACTIVITY, met: { ...ACTIVITY.met, interval: '60' } }, 'met'],
  ['daily_activity', 'a number for a timestamp', { ...ACTIVITY, timestamp: 1_743_300_000 }, 'timestamp'],
  ['daily_resilience', 'a number for text', { ...RESILIENCE, level: 3 }, 'level'],
  [
    'daily_resilience',
    'text within an object',
    { ...RESILIENCE, contributors: { ...RESILIENCE.contributors, stress: 'low' } },
    'contributors.stress',
  ],
  ['sleep', 'text for a flag', { ...SLEEP, low_battery_alert: 'no' }, 'low_battery_alert'],
])(
  '%s: %s in a required field is null in its column, whole in extra, and its document comes back as it was',
  async (name, _, odd, path) => {
    expect(await store(warehouse, name, [odd])).toMatchObject({ stored: 1, rejected: 0 });
    const keys = path.split('.');
    const inDocument = keys.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], odd);
    const inExtra = keys.reduce<unknown>(
      (value, key) => (value as Record<string, unknown>)[key],
      ((await extraOf(warehouse, name))[0] as [string, unknown])[1],
    );
    expect(inExtra).toEqual(inDocument);
    expect(await drift(warehouse)).toEqual([[name, path, 'wrong type', 1]]);
    expect(await rejected(warehouse)).toEqual([]);
    const [back] = await warehouse.readDocuments(name, 'true');
    expect(normalise(back!.document)).toEqual(normalise(odd));
  },
);

test('a day with 61.5 steps keeps its samples', async () => {
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, steps: 61.5, met: { ...ACTIVITY.met, items: [1, 'x', 2.5] } }]);
  expect(await warehouse.read('SELECT steps, met_count, active_calories FROM daily_activity')).toEqual([
    [null, 3, ACTIVITY.active_calories],
  ]);
  expect(await warehouse.read('SELECT value FROM daily_activity_met ORDER BY ts')).toEqual([[1], [null], [2.5]]);
});

test('numbers of 16 and more digits that have no column, or do not fit theirs, stay as they were written', async () => {
  const text =
    '{"id":"t-1","day":"2025-02-03","day_summary":"normal","serial":12345678901234567890,"deep":{"list":[0.10000000000000000001,1]},"name":"12345678901234567890"}';
  await store(warehouse, 'daily_stress', [parseJson(text), parseJson('{"no":12345678901234567890}')]);
  await store(warehouse, 'daily_activity', [parseJson(JSON.stringify(ACTIVITY).replace('"steps":10230', '"steps":90071992547409931'))]);
  expect(await warehouse.read('SELECT extra::VARCHAR FROM daily_stress')).toEqual([
    ['{"deep":{"list":[0.10000000000000000001,1]},"name":"12345678901234567890","serial":12345678901234567890}'],
  ]);
  expect(await warehouse.read('SELECT document::VARCHAR FROM sync.rejected')).toEqual([['{"no":12345678901234567890}']]);
  expect(await warehouse.read('SELECT steps, extra::VARCHAR FROM daily_activity')).toEqual([[null, '{"steps":90071992547409931}']]);
});

test('numbers too large or too small for JavaScript stay as they were written, in a document that can be read all the same', async () => {
  const text = '{"id":"t-far","day":"2025-02-03","day_summary":"normal","x":1e400,"y":[-1e999,1e-400]}';
  await store(warehouse, 'daily_stress', [parseJson(text)]);
  expect(await warehouse.read("SELECT extra::VARCHAR, extra->>'x' FROM daily_stress WHERE id = 't-far'")).toEqual([
    ['{"x":1e400,"y":[-1e999,1e-400]}', '1e400'],
  ]);
  await store(warehouse, 'daily_activity', [
    parseJson(JSON.stringify({ ...ACTIVITY, id: 'far' }).replace('"steps":10230', '"steps":1e400')),
  ]);
  expect(await warehouse.read("SELECT steps, extra::VARCHAR FROM daily_activity WHERE id = 'far'")).toEqual([[null, '{"steps":1e400}']]);
});

test('a number of many digits fills a column of numbers, and a sample', async () => {
  const text = JSON.stringify({ ...READINESS, temperature_deviation: 7 }).replace(
    '"temperature_deviation":7',
    '"temperature_deviation":0.12345678901234567890',
  );
  await store(warehouse, 'daily_readiness', [parseJson(text)]);
  expect(await warehouse.read('SELECT temperature_deviation, extra FROM daily_readiness')).toEqual([[0.12345678901234568, null]]);
  const session = JSON.stringify({ ...SESSION, motion_count: { interval: 5, items: [7, 8], timestamp: SESSION.heart_rate.timestamp } });
  await store(warehouse, 'session', [parseJson(session.replace('[7,8]', '[1.00000000000000000001,8]'))]);
  expect(await warehouse.read('SELECT value FROM session_motion_count ORDER BY ts')).toEqual([[1], [8]]);
});

test('unknown fields at every depth stay, nested as on the wire', async () => {
  const text = JSON.stringify({
    ...SLEEP,
    chronotype: 'owl',
    readiness: { ...SLEEP.readiness, note: { by: 'app' }, contributors: { ...SLEEP.readiness.contributors, mood: 3 } },
    heart_rate: { ...SLEEP.heart_rate, device: 'ring' },
    absent: null,
  }).replace('"chronotype"', '"__proto__":{"polluted":true},"constructor":1,"chronotype"');
  await store(warehouse, 'sleep', [JSON.parse(text)]);
  expect(await warehouse.read('SELECT extra::VARCHAR FROM sleep')).toEqual([
    [
      '{"__proto__":{"polluted":true},"chronotype":"owl","constructor":1,"heart_rate":{"device":"ring"},' +
        '"readiness":{"contributors":{"mood":3},"note":{"by":"app"}}}',
    ],
  ]);
  expect(await drift(warehouse)).toEqual(
    ['__proto__', 'chronotype', 'constructor', 'heart_rate.device', 'readiness.contributors.mood', 'readiness.note'].map(path => [
      'sleep',
      path,
      'unknown field',
      1,
    ]),
  );
  const [stored] = await warehouse.readDocuments('sleep', 'true');
  expect(Object.hasOwn(stored!.document, '__proto__')).toBe(true);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  expect(JSON.parse(JSON.stringify(stored!.document))).toMatchObject({ chronotype: 'owl', heart_rate: { device: 'ring', interval: 300 } });
});

test('a new value of an enumeration is stored, and drift without the value', async () => {
  await store(warehouse, 'daily_stress', [{ ...STRESS, day_summary: 'blissful' }]);
  expect(await warehouse.read('SELECT day_summary, extra FROM daily_stress')).toEqual([['blissful', null]]);
  expect(await drift(warehouse)).toEqual([['daily_stress', 'day_summary', 'unknown value', 1]]);
});

test('a number out of its range is stored, and drift', async () => {
  await store(warehouse, 'daily_resilience', [
    { ...RESILIENCE, contributors: { sleep_recovery: 101, daytime_recovery: -0.5, stress: 50 } },
  ]);
  expect(await warehouse.read('SELECT contributors_sleep_recovery, contributors_daytime_recovery FROM daily_resilience')).toEqual([
    [101, -0.5],
  ]);
  expect(await drift(warehouse)).toEqual([
    ['daily_resilience', 'contributors.daytime_recovery', 'out of range', 1],
    ['daily_resilience', 'contributors.sleep_recovery', 'out of range', 1],
  ]);
});

test('drift is counted for each stored version, not again for one that is unchanged', async () => {
  await store(warehouse, 'daily_stress', [
    { ...STRESS, day_summary: 'blissful', secret: 'value-1' },
    { ...STRESS, id: 't-2', day_summary: 'dull', secret: 'value-2' },
  ]);
  await store(warehouse, 'daily_stress', [{ ...STRESS, day_summary: 'blissful', secret: 'value-1' }]);
  await store(warehouse, 'daily_stress', [{ ...STRESS, day_summary: 'odd' }]);
  expect(await warehouse.read('SELECT path, kind, documents, first_seen_at, last_seen_at FROM sync.drift ORDER BY path')).toEqual([
    ['day_summary', 'unknown value', 3, 1_748_736_000_000_000, 1_748_736_000_000_000],
    ['secret', 'unknown field', 2, 1_748_736_000_000_000, 1_748_736_000_000_000],
  ]);
  expect(JSON.stringify(await rows(warehouse, 'SELECT * FROM sync.drift'))).not.toMatch(/value-|blissful|dull/);
});
