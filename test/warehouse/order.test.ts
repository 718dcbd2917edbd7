import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { NOW, newPath, openWarehouse, resourceNamed } from '../support/warehouse.ts';
import { SESSION, STRESS } from '../support/wire.ts';

const folder = tempFolder();
const path = newPath(folder);
let warehouse: Warehouse;
let clock = NOW;
let user = 'u0';
const begun: number[] = [];

beforeAll(async () => {
  warehouse = await openWarehouse(path, { now: () => clock });
});
afterAll(() => warehouse.close());

// Every test has a user of its own, in one file.
let users = 0;
afterEach(() => {
  for (const moment of begun.splice(0)) warehouse.clock.release(moment);
  user = `u${++users}`;
});

/** A request that is sent now, and stays under way until the test ends. */
function send(): number {
  const moment = warehouse.clock.lease();
  begun.push(moment);
  return moment;
}

function answered(moment: number): void {
  begun.splice(begun.indexOf(moment), 1);
  warehouse.clock.release(moment);
}

const version = (summary: string, id = 't-1') => ({ ...STRESS, id, day_summary: summary });

const answer = (requestedAt: number, documents: readonly unknown[], removed: readonly string[] = []) =>
  warehouse.storeDocuments({ userId: user, resource: resourceNamed('daily_stress'), requestedAt, documents, removed });

const stored = () => warehouse.read(`SELECT id, day_summary FROM daily_stress WHERE user_id = '${user}' ORDER BY id`);
const tombstones = () => warehouse.read(`SELECT id FROM sync.tombstones WHERE user_id = '${user}'`);
const rejectedIds = () => warehouse.read(`SELECT id FROM sync.rejected WHERE user_id = '${user}'`);

async function restart(): Promise<void> {
  begun.length = 0;
  await warehouse.close();
  warehouse = await openWarehouse(path, { now: () => clock });
}

test('of two answers in one group the newer stays, whatever order they come in', async () => {
  const [older, newer] = [send(), send()];
  const counts = await Promise.all([answer(newer, [version('new')]), answer(older, [version('old')])]);
  expect(counts.map(({ stored, outdated }) => ({ stored, outdated }))).toEqual([
    { stored: 1, outdated: 0 },
    { stored: 0, outdated: 1 },
  ]);
  expect(await stored()).toEqual([['t-1', 'new']]);
});

test('of two answers in two groups the newer stays', async () => {
  const [older, newer] = [send(), send()];
  await answer(newer, [version('new')]);
  expect(await answer(older, [version('old')])).toMatchObject({ stored: 0, outdated: 1 });
  expect(await stored()).toEqual([['t-1', 'new']]);
});

test('content that a newer answer confirmed is not overwritten by an older one, within one group', async () => {
  await answer(send(), [version('same')]);
  const [older, newer] = [send(), send()];
  await Promise.all([answer(newer, [version('same')]), answer(older, [version('old')])]);
  expect(await stored()).toEqual([['t-1', 'same']]);
});

test('content that a newer answer confirmed is not overwritten by an older one, across groups', async () => {
  await answer(send(), [version('same')]);
  const [older, newer] = [send(), send()];
  expect(await answer(newer, [version('same')])).toMatchObject({ unchanged: 1, stored: 0 });
  expect(await answer(older, [version('old')])).toMatchObject({ outdated: 1 });
  expect(await stored()).toEqual([['t-1', 'same']]);
});

test('a change and its taking back in one group leave what was there, and an older answer does not undo it', async () => {
  await answer(send(), [version('first')]);
  const [a, b, c] = [send(), send(), send()];
  await Promise.all([answer(a, [version('second')]), answer(c, [version('first')]), answer(b, [version('third')])]);
  expect(await stored()).toEqual([['t-1', 'first']]);
});

test('what a newer answer confirmed is forgotten once no older request is under way, and then a later one stores', async () => {
  await answer(send(), [version('same')]);
  const newer = send();
  await answer(newer, [version('same')]);
  answered(newer);
  expect(await answer(send(), [version('next')])).toMatchObject({ stored: 1 });
  expect(await stored()).toEqual([['t-1', 'next']]);
});

test('after a restart an answer older than what is stored does not overwrite it', async () => {
  const older = send();
  await answer(send(), [version('new')]);
  await restart();
  expect(await answer(older, [version('old')])).toMatchObject({ outdated: 1 });
  expect(await stored()).toEqual([['t-1', 'new']]);
});

test('with the clock set back an hour, also over a restart, later requests are still newer', async () => {
  await answer(send(), [version('first')]);
  clock = NOW - 3_600_000;
  expect(await answer(send(), [version('second')])).toMatchObject({ stored: 1 });
  await restart();
  expect(await answer(send(), [version('third')])).toMatchObject({ stored: 1 });
  await answer(send(), [], ['t-1']);
  await restart();
  expect(await answer(send(), [version('fourth')])).toMatchObject({ stored: 1 });
  expect(await stored()).toEqual([['t-1', 'fourth']]);
  clock = NOW;
});

test('a document that is gone leaves with its samples and leaves a tombstone', async () => {
  const session = resourceNamed('session');
  await warehouse.storeDocuments({ userId: user, resource: session, requestedAt: send(), documents: [SESSION, { ...SESSION, id: 'm-2' }] });
  await warehouse.storeDocuments({ userId: user, resource: session, requestedAt: send(), documents: [], removed: ['m-1'] });
  expect(await warehouse.read(`SELECT id FROM session WHERE user_id = '${user}'`)).toEqual([['m-2']]);
  expect(
    await warehouse.read(
      `SELECT d.id, count(*) FROM session_heart_rate s LEFT JOIN session d USING (sk) WHERE s.user_id = '${user}' GROUP BY ALL`,
    ),
  ).toEqual([['m-2', 3]]);
  expect(await tombstones()).toEqual([['m-1']]);
});

test('an older answer does not bring back what is gone; a newer one does, and takes the tombstone away', async () => {
  await answer(send(), [version('first')]);
  const older = send();
  await answer(send(), [], ['t-1']);
  expect(await answer(older, [version('first')])).toMatchObject({ outdated: 1 });
  expect(await stored()).toEqual([]);
  expect(await tombstones()).toEqual([['t-1']]);
  await answer(send(), [version('back')]);
  expect(await stored()).toEqual([['t-1', 'back']]);
  expect(await tombstones()).toEqual([]);
});

test('what is gone stays gone for an older answer after a restart', async () => {
  await answer(send(), [version('first')]);
  const older = send();
  await answer(send(), [], ['t-1']);
  await restart();
  expect(await answer(older, [version('first')])).toMatchObject({ outdated: 1 });
  expect(await stored()).toEqual([]);
  expect(await tombstones()).toEqual([['t-1']]);
});

test('gone and back in one group: the document stays as it was, without a tombstone', async () => {
  await answer(send(), [version('first')]);
  const [a, b] = [send(), send()];
  await Promise.all([answer(a, [], ['t-1']), answer(b, [version('first')])]);
  expect(await stored()).toEqual([['t-1', 'first']]);
  expect(await tombstones()).toEqual([]);
});

test('back and gone in one group, the older answer last: it stays gone', async () => {
  const [a, b] = [send(), send()];
  await Promise.all([answer(b, [], ['t-1']), answer(a, [version('first')])]);
  expect(await stored()).toEqual([]);
  expect(await tombstones()).toEqual([['t-1']]);
});

test('an older "it is gone" does not remove a newer document', async () => {
  const older = send();
  await answer(send(), [version('new')]);
  expect(await answer(older, [], ['t-1'])).toMatchObject({ outdated: 1, removed: 0 });
  expect(await stored()).toEqual([['t-1', 'new']]);
  expect(await tombstones()).toEqual([]);
});

test('an older bad version is not kept as rejected beside a newer good one', async () => {
  const older = send();
  await answer(send(), [version('good')]);
  expect(await answer(older, [{ ...version('bad'), day: 'x' }])).toMatchObject({ rejected: 0, outdated: 1 });
  expect(await rejectedIds()).toEqual([]);
});

test('after a restart an older bad version is not kept as rejected beside a newer good one', async () => {
  const older = send();
  await answer(send(), [version('good')]);
  await restart();
  expect(await answer(older, [{ ...version('bad'), day: 'x' }])).toMatchObject({ rejected: 0, outdated: 1 });
  expect(await rejectedIds()).toEqual([]);
});

test('an older good version does not take a newer bad one away', async () => {
  const older = send();
  await answer(send(), [{ ...version('bad'), day: 'x' }]);
  expect(await answer(older, [version('good')])).toMatchObject({ stored: 1 });
  expect(await rejectedIds()).toEqual([['t-1']]);
});

test('one id that comes twice in one answer is one document, the last', async () => {
  await answer(send(), [version('first'), version('second')]);
  expect(await stored()).toEqual([['t-1', 'second']]);
});

test('the same id of another user is another document', async () => {
  await answer(send(), [version('mine')]);
  await warehouse.storeDocuments({
    userId: `${user}-other`,
    resource: resourceNamed('daily_stress'),
    requestedAt: send(),
    documents: [version('theirs')],
    removed: [],
  });
  await answer(send(), [], ['t-1']);
  expect(await stored()).toEqual([]);
  expect(await warehouse.read(`SELECT day_summary FROM daily_stress WHERE user_id = '${user}-other'`)).toEqual([['theirs']]);
});

test('unchanged content keeps its number and its moment', async () => {
  const first = send();
  await answer(first, [version('same')]);
  const before = await warehouse.read(`SELECT sk, fetched_at FROM daily_stress WHERE user_id = '${user}'`);
  expect(before[0]![1]).toBe(first);
  await answer(send(), [{ day_summary: 'same', recovery_high: null, day: STRESS.day, id: 't-1' }]);
  expect(await warehouse.read(`SELECT sk, fetched_at FROM daily_stress WHERE user_id = '${user}'`)).toEqual(before);
});

// Heart rate: seconds of one minute, as bpm by second.

const T = 1_736_899_200;
type Bpms = Record<number, number>;
const pulse = (requestedAt: number, from: number, to: number, bpms: Bpms, userId = user) =>
  warehouse.storeHeartRate({
    userId,
    from: (T + from) * 1_000_000,
    to: (T + to) * 1_000_000,
    requestedAt,
    rows: Object.entries(bpms).map(([second, bpm]) => ({
      timestamp: new Date((T + Number(second)) * 1000).toISOString(),
      timestamp_unix: (T + Number(second)) * 1000,
      bpm,
      source: 'rest',
    })),
  });

async function pulses(userId = user): Promise<Bpms> {
  const found = await warehouse.read(`SELECT epoch(ts)::BIGINT - ${T}, bpm FROM heart_rate WHERE user_id = '${userId}' ORDER BY ts`);
  expect(new Set(found.map(([second]) => second)).size).toBe(found.length);
  return Object.fromEntries(found) as Bpms;
}

test('a range replaces what it holds, and nothing beside it', async () => {
  await pulse(send(), 0, 10, { 0: 60, 5: 61, 9: 62 });
  await pulse(send(), 10, 20, { 10: 70 });
  const counts = await pulse(send(), 5, 10, { 6: 80 });
  expect(counts).toEqual({
    stored: 1,
    unchanged: 0,
    outdated: 0,
    rejected: 0,
    undated: 0,
    removed: 2,
    samples: 1,
    changes: [],
    came: [],
    differing: 0,
  });
  expect(await pulses()).toEqual({ 0: 60, 6: 80, 10: 70 });
});

test('rows that are equal keep their moment, also beside rows that are not', async () => {
  const first = send();
  await pulse(first, 0, 10, { 0: 60, 1: 61, 2: 62 });
  const second = send();
  expect(await pulse(second, 0, 10, { 0: 60, 1: 71, 3: 63 })).toEqual({
    stored: 2,
    unchanged: 1,
    outdated: 0,
    rejected: 0,
    undated: 0,
    removed: 1,
    samples: 2,
    changes: [],
    came: [],
    differing: 0,
  });
  expect(await warehouse.read(`SELECT bpm, fetched_at FROM heart_rate WHERE user_id = '${user}' ORDER BY ts`)).toEqual([
    [60, first],
    [71, second],
    [63, second],
  ]);
  expect(await pulse(send(), 0, 10, { 0: 60, 1: 71, 3: 63 })).toMatchObject({ stored: 0, unchanged: 3 });
});

test('an older range that arrives later changes only what no newer one has settled', async () => {
  const [older, newer] = [send(), send()];
  await pulse(newer, 5, 15, { 5: 90, 14: 91 });
  await pulse(older, 0, 20, { 0: 60, 5: 61, 7: 62, 14: 63, 15: 64 });
  expect(await pulses()).toEqual({ 0: 60, 5: 90, 14: 91, 15: 64 });
});

test('the same in one group', async () => {
  const [older, middle, newer] = [send(), send(), send()];
  await Promise.all([
    pulse(newer, 5, 10, { 5: 90 }),
    pulse(older, 0, 20, { 0: 60, 5: 61, 7: 62, 12: 63, 19: 64 }),
    pulse(middle, 8, 15, { 8: 80, 12: 81 }),
  ]);
  expect(await pulses()).toEqual({ 0: 60, 5: 90, 12: 81, 19: 64 });
});

test('an older range does not bring back rows that a newer answer, equal to what is stored, did not have', async () => {
  await pulse(send(), 0, 10, { 0: 60 });
  const [older, newer] = [send(), send()];
  await pulse(newer, 0, 10, { 0: 60 });
  expect(await pulse(older, 0, 10, { 0: 60, 3: 99 })).toMatchObject({ stored: 0, outdated: 2 });
  expect(await pulses()).toEqual({ 0: 60 });
});

test('after a restart an older range does not touch rows of a newer one', async () => {
  const older = send();
  await pulse(send(), 0, 10, { 0: 60, 1: 61 });
  await restart();
  await pulse(older, 0, 10, { 0: 50, 2: 52 });
  expect(await pulses()).toEqual({ 0: 60, 1: 61, 2: 52 });
});

test('after a restart an older range replaces the rows that are older still, and those alone', async () => {
  await pulse(send(), 0, 10, { 0: 60, 1: 61, 2: 62, 9: 69 });
  const older = send();
  await pulse(send(), 1, 3, { 1: 91 });
  await restart();
  await pulse(older, 0, 10, { 0: 70, 1: 71, 9: 69 });
  expect(await pulses()).toEqual({ 0: 70, 1: 91, 9: 69 });
  await pulse(older, 0, 10, {});
  expect(await pulses()).toEqual({ 1: 91 });
});

test('one moment that comes twice in one answer is one row, the last; another source is another row', async () => {
  const row = { timestamp: '2025-01-15T00:00:00+00:00', timestamp_unix: T * 1000, bpm: 60, source: 'rest' };
  await warehouse.storeHeartRate({
    userId: user,
    from: T * 1_000_000,
    to: (T + 10) * 1_000_000,
    requestedAt: send(),
    rows: [row, { ...row, source: 'awake' }, { ...row, timestamp: '2025-01-15T01:00:00+01:00', bpm: 66 }],
  });
  expect(await warehouse.read(`SELECT bpm, source, utc_offset FROM heart_rate WHERE user_id = '${user}' ORDER BY source`)).toEqual([
    [60, 'awake', 0],
    [66, 'rest', 3600],
  ]);
});

test('rows of another user are not touched', async () => {
  await pulse(send(), 0, 10, { 0: 60 }, `${user}-other`);
  await pulse(send(), 0, 10, { 0: 70 });
  await pulse(send(), 0, 10, {});
  expect(await pulses()).toEqual({});
  expect(await pulses(`${user}-other`)).toEqual({ 0: 60 });
});

test('the end of a range is left out, its start counted in', async () => {
  await pulse(send(), 0, 10, { 0: 60, 10: 61 });
  expect(await pulses()).toEqual({ 0: 60 });
});
