import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { ACTIVITY, READINESS, RESILIENCE, RING, SESSION, SLEEP, SPO2, STRESS, VO2_MAX } from '../support/wire.ts';

const folder = tempFolder();
let warehouse: Warehouse;

beforeAll(async () => {
  warehouse = await openWarehouse(newPath(folder));
});

afterAll(() => warehouse.close());

/** Each test starts from empty tables: what it stores is removed by statements of its own kind. */
beforeEach(async () => {
  await warehouse.close();
  warehouse = await openWarehouse(newPath(folder));
});

const rejected = () => rows(warehouse, 'SELECT user_id, collection, id, reason, document FROM sync.rejected ORDER BY id');
const drift = () => warehouse.read('SELECT collection, path, kind, documents FROM sync.drift ORDER BY collection, path, kind');
const extraOf = async (name: string) =>
  (await warehouse.read(`SELECT id, extra::VARCHAR FROM ${name} ORDER BY id`)).map(row => [row[0], JSON.parse(String(row[1]))]);

const { id: _id, ...WITHOUT_ID } = STRESS;
const { day: _day, ...WITHOUT_DAY } = STRESS;

test.each([
  ['no id', WITHOUT_ID, 'sha256:mWc2Gfamj0Gb083kRQBYjK', 'id is missing or no text'],
  ['a null id', { ...STRESS, id: null }, 'sha256:D6f-vXmozl3YBr0ioFFBhf', 'id is missing or no text'],
  ['an empty id', { ...STRESS, id: '' }, 'sha256:-XxBCIGK-ygfxvBoeGECfi', 'id is missing or no text'],
  ['a number for an id', { ...STRESS, id: 7 }, 'sha256:B-hoLPoCLVy7RoysYe921W', 'id is missing or no text'],
  ['no day', WITHOUT_DAY, 't-1', 'day is missing or not a calendar day'],
  ['a null day', { ...STRESS, day: null }, 't-1', 'day is missing or not a calendar day'],
  ['a day that is none', { ...STRESS, day: '2025-02-30' }, 't-1', 'day is missing or not a calendar day'],
  ['a date-time for a day', { ...STRESS, day: '2025-02-03T00:00:00Z' }, 't-1', 'day is missing or not a calendar day'],
  ['a number for a day', { ...STRESS, day: 20250203 }, 't-1', 'day is required and has a wrong type'],
])('a document with %s is rejected whole; its neighbours are stored', async (_, bad, id, reason) => {
  const counts = await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'before' }, bad, { ...STRESS, id: 'after' }]);
  expect(counts).toMatchObject({ stored: 2, unchanged: 0, outdated: 0, rejected: 1, removed: 0, samples: 0 });
  expect(await rejected()).toEqual([{ user_id: 'ann', collection: 'daily_stress', id, reason, document: bad }]);
  expect(await warehouse.read('SELECT id FROM daily_stress ORDER BY id')).toEqual([['after'], ['before']]);
});

test.each([
  ['text', 'document', 'sha256:ZKyOYVUgzRrkOrDUfPyedQ'],
  ['a number', 7, 'sha256:eQJpm-Qsio5G-7tFAXJlF-'],
  ['null', null, 'sha256:dCNOmK_nSY-12vHzasLXis'],
  ['a list', [STRESS], 'sha256:XMsbuXsDEB81Gk1KuCwLB9'],
])('%s for a document is rejected', async (_, bad, id) => {
  await store(warehouse, 'daily_stress', [bad, { ...STRESS, id: 'after' }]);
  expect(await rejected()).toEqual([{ user_id: 'ann', collection: 'daily_stress', id, reason: 'not an object', document: bad }]);
  expect(await warehouse.read('SELECT id FROM daily_stress')).toEqual([['after']]);
});

test.each([
  ['daily_activity', 'text for a whole number', { ...ACTIVITY, steps: '10230' }, 'steps'],
  ['daily_activity', 'a fraction for a whole number', { ...ACTIVITY, steps: 61.5 }, 'steps'],
  ['daily_activity', 'a whole number beyond what is exact', { ...ACTIVITY, steps: 9007199254740992 }, 'steps'],
  ['daily_activity', 'text for a number', { ...ACTIVITY, average_met_minutes: '1.5' }, 'average_met_minutes'],
  ['daily_activity', 'a list for an object', { ...ACTIVITY, contributors: [] }, 'contributors'],
  ['daily_activity', 'a list for a sample', { ...ACTIVITY, met: [1, 2] }, 'met'],
  ['daily_activity', 'a bad item in a sample', { ...ACTIVITY, met: { ...ACTIVITY.met, items: [1, 'x'] } }, 'met'],
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
])('%s: %s in a required field is rejected', async (name, _, bad, path) => {
  await store(warehouse, name, [bad]);
  expect(await rejected()).toEqual([
    { user_id: 'ann', collection: name, id: bad.id, reason: `${path} is required and has a wrong type`, document: bad },
  ]);
  expect(await warehouse.read(`SELECT id FROM ${name}`)).toEqual([]);
});

test('a rejected document leaves its row when a good version comes, and has one row only', async () => {
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, steps: 'many' }]);
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, steps: 'more' }]);
  expect((await rejected()).map(row => (row as { document: { steps: unknown } }).document.steps)).toEqual(['more']);
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  expect(await rejected()).toEqual([]);
  expect(await warehouse.read('SELECT id, steps FROM daily_activity')).toEqual([['a-1', 10230]]);
});

test('a bad version keeps the good one that is stored, and stands beside it', async () => {
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, steps: 'many' }]);
  expect(await rejected()).toHaveLength(1);
  expect(await warehouse.read('SELECT id, steps FROM daily_activity')).toEqual([['a-1', 10230]]);
});

test('a document that was rejected and is then gone leaves no row behind', async () => {
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, steps: 'many' }]);
  await store(warehouse, 'daily_activity', [], ['a-1']);
  expect(await rejected()).toEqual([]);
});

const DAY = 86_400_000_000;
const JANUARY_10 = 1_736_467_200_000_000;

/** One answer that is all of a range of days of January 2025, the last one excluded. */
async function readRange(from: number, to: number, documents: readonly unknown[], isComplete = true) {
  const requestedAt = warehouse.moments.begin();
  try {
    return await warehouse.storeDocuments({
      userId: 'ann',
      resource: warehouse.mapping('daily_stress').resource,
      requestedAt,
      documents,
      range: { startAt: JANUARY_10 + (from - 10) * DAY, endAt: JANUARY_10 + (to - 10) * DAY },
      ...(isComplete ? { completes: { since: requestedAt, days: { from: `2025-01-${from}`, to: `2025-01-${to - 1}` } } } : {}),
    });
  } finally {
    warehouse.moments.end(requestedAt);
  }
}

const rejectedTexts = async () => (await warehouse.read('SELECT document::VARCHAR FROM sync.rejected ORDER BY 1')).map(([text]) => text);

test('documents without an id are each kept whole, and once, however often they come', async () => {
  const many = Array.from({ length: 108 }, (_, n) => ({ n }));
  expect(await readRange(10, 20, many)).toMatchObject({ rejected: 108, undated: 108 });
  expect(await rejectedTexts()).toHaveLength(108);
  expect(await readRange(10, 20, many)).toMatchObject({ rejected: 108, undated: 108 });
  expect(await rejectedTexts()).toHaveLength(108);
});

test('what was rejected and does not come again leaves with a complete reading of its days, or of the range that brought it', async () => {
  await readRange(10, 20, [
    { n: 1 },
    { ...WITHOUT_ID, day: '2025-01-12' },
    { ...WITHOUT_ID, day: '2025-01-18' },
    { ...WITHOUT_DAY, id: 't-9' },
  ]);
  await readRange(10, 20, [], false);
  expect(await rejectedTexts()).toHaveLength(4);
  // What has no day may belong to a day beside these.
  await readRange(11, 15, []);
  expect(await rejectedTexts()).toEqual(['{"day":"2025-01-18","day_summary":"normal"}', '{"id":"t-9","day_summary":"normal"}', '{"n":1}']);
  await readRange(10, 20, [{ n: 1 }, { n: 2 }]);
  expect(await rejectedTexts()).toEqual(['{"n":1}', '{"n":2}']);
});

test('an older reading takes nothing away that a newer one has rejected', async () => {
  const older = warehouse.moments.begin();
  await readRange(10, 20, [{ n: 1 }]);
  await warehouse.storeDocuments({
    userId: 'ann',
    resource: warehouse.mapping('daily_stress').resource,
    requestedAt: older,
    documents: [],
    range: { startAt: JANUARY_10, endAt: JANUARY_10 + 10 * DAY },
    completes: { since: older, days: { from: '2025-01-10', to: '2025-01-19' } },
  });
  warehouse.moments.end(older);
  expect(await rejectedTexts()).toEqual(['{"n":1}']);
});

test('what another, newer answer has rejected too is missing from the older one all the same', async () => {
  const older = warehouse.moments.begin();
  await readRange(10, 20, [{ n: 1 }]);
  const { resource } = warehouse.mapping('daily_stress');
  expect(await warehouse.storeDocuments({ userId: 'ann', resource, requestedAt: older, documents: [{ n: 1 }] })).toMatchObject({
    rejected: 0,
    outdated: 1,
    undated: 1,
  });
  warehouse.moments.end(older);
});

test('a required field that is null or absent is null in its column, and drift', async () => {
  const { total_calories: _, met: __, ...partial } = ACTIVITY;
  await store(warehouse, 'daily_activity', [{ ...partial, steps: null, timestamp: null, contributors: null }]);
  expect(
    await warehouse.read(
      'SELECT steps, total_calories, "timestamp", timestamp_offset, met_start, met_count, contributors_stay_active, extra FROM daily_activity',
    ),
  ).toEqual([[null, null, null, null, null, null, null, null]]);
  expect(await drift()).toEqual([
    ['daily_activity', 'contributors', 'missing', 1],
    ['daily_activity', 'met', 'missing', 1],
    ['daily_activity', 'steps', 'missing', 1],
    ['daily_activity', 'timestamp', 'missing', 1],
    ['daily_activity', 'total_calories', 'missing', 1],
  ]);
});

test('a promised field that is missing in an optional object is drift too', async () => {
  await store(warehouse, 'daily_spo2', [{ ...SPO2, spo2_percentage: {} }]);
  expect(await warehouse.read('SELECT spo2_percentage_average, extra FROM daily_spo2')).toEqual([[null, null]]);
  expect(await drift()).toEqual([['daily_spo2', 'spo2_percentage.average', 'missing', 1]]);
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
  ).toEqual([[null, null, null, null, null, 80, null, null, null, null]]);
  expect(await extraOf('sleep')).toEqual([
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
  expect(await warehouse.read('SELECT count(*) FROM sleep_heart_rate')).toEqual([[0]]);
  expect(await drift()).toEqual(
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
  expect(await rejected()).toEqual([]);
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
  expect(await extraOf('vo2_max')).toEqual([['v-1', { timestamp }]]);
  expect(await drift()).toEqual([['vo2_max', 'timestamp', 'bad format', 1]]);
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
  expect(await extraOf('daily_activity')).toEqual([['a-1', { met }]]);
  expect(await drift()).toEqual([['daily_activity', 'met', kind, 1]]);
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
  expect(await drift()).toEqual(
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
  expect(await drift()).toEqual([['daily_stress', 'day_summary', 'unknown value', 1]]);
});

test('a number out of its range is stored, and drift', async () => {
  await store(warehouse, 'daily_resilience', [
    { ...RESILIENCE, contributors: { sleep_recovery: 101, daytime_recovery: -0.5, stress: 50 } },
  ]);
  expect(await warehouse.read('SELECT contributors_sleep_recovery, contributors_daytime_recovery FROM daily_resilience')).toEqual([
    [101, -0.5],
  ]);
  expect(await drift()).toEqual([
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
    ['day_summary', 'unknown value', 3, 1_748_736_000_000_000, 1_748_736_000_000_002],
    ['secret', 'unknown field', 2, 1_748_736_000_000_000, 1_748_736_000_000_000],
  ]);
  expect(JSON.stringify(await rows(warehouse, 'SELECT * FROM sync.drift'))).not.toMatch(/value-|blissful|dull/);
});

test('text with a NUL does not fit a column; it stays in extra', async () => {
  await store(warehouse, 'daily_stress', [{ ...STRESS, day_summary: 'a\u0000b' }]);
  expect(await warehouse.read('SELECT day_summary FROM daily_stress')).toEqual([[null]]);
  expect(await extraOf('daily_stress')).toEqual([['t-1', { day_summary: 'a\u0000b' }]]);
});

test('a lone surrogate, which no JSON of DuckDB can hold, becomes U+FFFD wherever it came', async () => {
  const text = `{"id":"t-1","day":"2025-01-15","day_summary":"x\\ud800","\\udfff":1,"note":"back\\\\ud800slash \\ud83d\\ude00"}`;
  await store(warehouse, 'daily_stress', [JSON.parse(text), JSON.parse(text.replace('2025', '20x5').replace('t-1', 't-2'))]);
  expect(await extraOf('daily_stress')).toEqual([['t-1', { day_summary: 'x\ufffd', note: 'back\\ud800slash 😀', '\ufffd': 1 }]]);
  expect(await warehouse.read('SELECT json_valid(extra), json_keys(extra)[1] FROM daily_stress')).toEqual([[true, 'day_summary']]);
  expect(await warehouse.read(`SELECT id, document->>'note' FROM sync.rejected`)).toEqual([['t-2', 'back\\ud800slash 😀']]);
  expect(await drift()).toEqual([
    ['daily_stress', 'day_summary', 'bad format', 1],
    ['daily_stress', 'note', 'unknown field', 1],
    ['daily_stress', '\ufffd', 'unknown field', 1],
  ]);
});

test('a NUL in a key, in an id and in the id of a removed document harms nothing', async () => {
  const counts = await store(
    warehouse,
    'daily_stress',
    [
      { ...STRESS, 'a\u0000b': 1 },
      { ...STRESS, id: 'x\u0000' },
      { ...STRESS, id: 'lone\ud800' },
    ],
    ['y\u0000', '\udc00'],
  );
  expect(counts).toMatchObject({ stored: 1, unchanged: 0, outdated: 0, rejected: 2, removed: 0, samples: 0 });
  expect(await drift()).toEqual([['daily_stress', 'a\ufffdb', 'unknown field', 1]]);
  expect(await warehouse.read('SELECT id, reason FROM sync.rejected ORDER BY id')).toEqual([
    ['sha256:1E82pKck2v4T1vXfAb-PTM', 'id is missing or no text'],
    ['sha256:NfVu5Vmo7lj2J-1mDTMdUr', 'id is missing or no text'],
  ]);
});

test('quotes, line breaks and other scripts in ids and text are kept', async () => {
  const id = `it's "x"\n; DROP TABLE sleep -- 眠り`;
  await store(warehouse, 'ring_configuration', [{ ...RING, id, color: `o'clock\\n` }]);
  await store(warehouse, 'ring_configuration', [{ ...RING, id, color: `o'clock\\n`, size: 9 }]);
  expect(await warehouse.read('SELECT id, color, size FROM ring_configuration')).toEqual([[id, `o'clock\\n`, 9]]);
});

test('a document nested thousands of levels deep is rejected, its neighbours stored', async () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  const counts = await store(warehouse, 'daily_stress', [
    { ...STRESS, deep },
    { ...STRESS, id: 'after' },
  ]);
  expect(counts).toMatchObject({ stored: 1, rejected: 1 });
  expect(await rejected()).toEqual([
    { user_id: 'ann', collection: 'daily_stress', id: 't-1', reason: 'nested too deeply to be kept', document: null },
  ]);
});

test('an optional sample with a bad item keeps its document and the other samples', async () => {
  await store(warehouse, 'session', [
    { ...SESSION, motion_count: { interval: 5, items: [1, {}], timestamp: SESSION.heart_rate.timestamp } },
  ]);
  expect(await warehouse.read('SELECT heart_rate_count, motion_count_count FROM session')).toEqual([[3, null]]);
  expect(await warehouse.read('SELECT count(*) FROM session_heart_rate')).toEqual([[3]]);
});

test('heart-rate rows without a usable moment, rate or source are rejected whole, the others stored', async () => {
  const good = { timestamp: '2025-01-15T00:00:00+00:00', timestamp_unix: 1_736_899_200_000, bpm: 58, source: 'sleep' };
  const bad = [
    { ...good, timestamp: '2025-01-15T00:00:01' },
    { ...good, timestamp: '2025-01-15T00:00:02+00:00', bpm: 61.5 },
    { ...good, timestamp: '2025-01-15T00:00:03+00:00', source: null },
  ];
  const counts = await warehouse.storeHeartRate({
    userId: 'ann',
    from: 1_736_899_200_000_000,
    to: 1_736_985_600_000_000,
    requestedAt: warehouse.moments.begin(),
    rows: [...bad, good, { ...good, timestamp: 'lone \ud800 and \u0000' }, 'text'],
  });
  expect(counts).toMatchObject({ stored: 1, unchanged: 0, outdated: 0, rejected: 5, removed: 0, samples: 1 });
  expect(await rejected()).toEqual([
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: '2025-01-15T00:00:01',
      reason: 'timestamp is missing or no date-time with offset',
      document: bad[0],
    },
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: '2025-01-15T00:00:02+00:00',
      reason: 'bpm is missing or no whole number',
      document: bad[1],
    },
    { user_id: 'ann', collection: 'heart_rate', id: '2025-01-15T00:00:03+00:00', reason: 'source is missing or no text', document: bad[2] },
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: 'sha256:Hh0PJR06dvorG_yBFkB4Vy',
      reason: 'timestamp is missing or no date-time with offset',
      document: 'text',
    },
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: 'sha256:m7ZwemN4vTAujXzABI_8aH',
      reason: 'timestamp is missing or no date-time with offset',
      document: { ...good, timestamp: 'lone \ufffd and \u0000' },
    },
  ]);
});

test('heart-rate rows with a new source, another Unix time or an unknown field are stored, and drift', async () => {
  const good = { timestamp: '2025-01-15T00:00:00+00:00', timestamp_unix: 1_736_899_200_000, bpm: 58, source: 'sleep' };
  const { timestamp_unix: _, ...without } = good;
  const sent = [
    { ...good, source: 'sauna' },
    { ...good, timestamp_unix: 1 },
    { ...without, timestamp: '2025-01-15T00:00:01+00:00' },
    { ...good, timestamp: '2025-01-15T00:00:02+00:00', timestamp_unix: 1_736_899_202_000, quality: 'good' },
  ];
  const range = { userId: 'ann', from: 1_736_899_200_000_000, to: 1_736_985_600_000_000 };
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.moments.begin(), rows: sent });
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.moments.begin(), rows: sent });
  expect(await warehouse.read('SELECT count(*) FROM heart_rate')).toEqual([[4]]);
  expect(await drift()).toEqual([
    ['heart_rate', 'quality', 'unknown field', 1],
    ['heart_rate', 'source', 'unknown value', 1],
    ['heart_rate', 'timestamp_unix', 'disagreement', 1],
    ['heart_rate', 'timestamp_unix', 'missing', 1],
  ]);
});

test('a rejected heart-rate row leaves when its range comes again without it', async () => {
  const range = { userId: 'ann', from: 1_736_899_200_000_000, to: 1_736_985_600_000_000 };
  const good = { timestamp: '2025-01-15T00:00:00+00:00', timestamp_unix: 1_736_899_200_000, bpm: 58, source: 'sleep' };
  const older = warehouse.moments.begin();
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.moments.begin(), rows: [{ ...good, bpm: 'x' }] });
  expect(await rejected()).toHaveLength(1);
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.moments.begin(), rows: [good] });
  expect(await rejected()).toEqual([]);
  await warehouse.storeHeartRate({ ...range, requestedAt: older, rows: [{ ...good, bpm: 'y' }] });
  expect(await rejected()).toEqual([]);
  warehouse.moments.end(older);
});

const WEEK = { userId: 'ann', from: 1_736_899_200_000_000, to: 1_737_504_000_000_000 };

test('heart-rate rows of no moment are each kept once, and leave when the range comes again without them', async () => {
  const read = (rows: readonly unknown[], range = WEEK) =>
    warehouse.storeHeartRate({ ...range, requestedAt: warehouse.moments.begin(), rows });
  const rows = [
    { bpm: 60, source: 'rest' },
    { bpm: 61, source: 'rest' },
    // Two of one moment.
    { timestamp: '2025-01-15T00:00:02+00:00', bpm: 'x', source: 'rest' },
    { timestamp: '2025-01-15T00:00:02+00:00', bpm: 'x', source: 'awake' },
  ];
  expect(await read(rows)).toMatchObject({ stored: 0, rejected: 4, undated: 2 });
  expect(await read(rows)).toMatchObject({ stored: 0, rejected: 4, undated: 2 });
  expect(await rejectedTexts()).toHaveLength(4);
  // They may belong to the rest of the week.
  await read([], { ...WEEK, to: WEEK.from + 86_400_000_000 });
  expect(await warehouse.read('SELECT day, document::VARCHAR FROM sync.rejected ORDER BY 2')).toEqual([
    [null, '{"bpm":60,"source":"rest"}'],
    [null, '{"bpm":61,"source":"rest"}'],
    ['2025-01-15', '{"timestamp":"2025-01-15T00:00:02+00:00","bpm":"x","source":"awake"}'],
  ]);
  await read([{ bpm: 61, source: 'rest' }]);
  expect(await rejectedTexts()).toEqual(['{"bpm":61,"source":"rest"}']);
});

test('of heart-rate rows that cannot be stored a thousand are kept of an account; all are counted', async () => {
  const rows = Array.from({ length: 1_200 }, (_, n) => ({
    timestamp: new Date(1_736_899_200_000 + n * 300_000).toISOString(),
    bpm: 61.5,
    source: 'rest',
  }));
  const read = (some: readonly unknown[]) => warehouse.storeHeartRate({ ...WEEK, requestedAt: warehouse.moments.begin(), rows: some });
  // The ledger does not tell the day of those that are not kept.
  expect(await read(rows)).toMatchObject({ stored: 0, rejected: 1_200, undated: 200 });
  expect(await rejectedTexts()).toHaveLength(1_000);
  expect(await read(rows.slice(0, 1_001))).toMatchObject({ rejected: 1_001, undated: 1 });
  expect(await rejectedTexts()).toHaveLength(1_000);
  expect(await read(rows.slice(0, 10))).toMatchObject({ rejected: 10, undated: 0 });
  expect(await rejectedTexts()).toHaveLength(10);
});
