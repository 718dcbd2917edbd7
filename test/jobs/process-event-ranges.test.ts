import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { plannedEntry } from '../../src/ledger/window-rows.ts';
import { finishAbsent } from '../../src/sync/events/absent-documents.ts';
import { type EventHarness, openEventHarness } from '../support/event-harness.ts';
import { night } from '../support/nights.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { resourceNamed } from '../support/warehouse.ts';

const folder = tempFolder();
const SLEEP = '/v2/usercollection/sleep';
const limited = { status: 429, headers: { 'retry-after': '3600' }, json: { detail: 'too many' } };
let harness: EventHarness;

// A service with the routes of section 4 alone: it has no document route for sleep.
beforeAll(async () => {
  harness = await openEventHarness(folder, {
    settings: { specificationOnly: true },
    delays: { unreadable: [1, 2, 3], confirm: 1, confirmDelete: 1, failed: [1, 2, 3] },
  });
});
afterAll(() => harness.close());

const askedSince = (before: number, user: string) =>
  harness.faults.asked
    .slice(before)
    .filter(({ token }) => token === `${user}-token`)
    .map(({ path, query }) => `${path}${query.has('start_date') ? ` ${query.get('start_date')} ${query.get('end_date')}` : ''}`);

const storedOf = (user: string) => harness.rows(`SELECT id FROM sleep WHERE user_id = '${user}' ORDER BY id`);

/** Holds the answers of the sleep collection until they are released. */
function holdReads(user: string): { started: () => number; release: () => void } {
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  let reads = 0;
  harness.faults.on(SLEEP, async ({ token }) => {
    if (token === `${user}-token`) reads++;
    await released;
    return undefined;
  });
  onTestFinished(() => harness.faults.on(SLEEP, () => undefined));
  return { started: () => reads, release };
}

test('where the document route is missing the last 30 days are read, and later events do not ask that route first', async () => {
  const ada = await harness.person('ada', { sleep: [night('sleep-1'), night('sleep-2', '2025-03-08')] });
  const before = harness.faults.asked.length;
  expect(await ada.tell({ data_type: 'sleep', object_id: 'sleep-1', event_type: 'create' })).toMatchObject({ outcome: 'stored' });
  // The document that has come is asked for once more: it tells whether the route exists.
  expect(askedSince(before, 'ada')).toEqual([`${SLEEP}/sleep-1`, `${SLEEP} 2025-02-08 2025-03-13`, `${SLEEP}/sleep-1`]);
  const then = harness.faults.asked.length;
  expect(await ada.tell({ data_type: 'sleep', object_id: 'sleep-2', event_type: 'create' })).toMatchObject({ outcome: 'unchanged' });
  expect(askedSince(then, 'ada')).toEqual([`${SLEEP} 2025-03-06 2025-03-10`]);
  expect(await storedOf('ada')).toEqual([{ id: 'sleep-1' }, { id: 'sleep-2' }]);
});

test('a document route is tried until it gives a clear answer: a 429 and a 500 are none, a 404 is one', async () => {
  const moment = (id: string) => ({
    id,
    day: '2025-03-09',
    end_datetime: '2025-03-09T10:10:00.000+01:00',
    start_datetime: '2025-03-09T10:00:00.000+01:00',
    type: 'rest',
  });
  const documentRoute = '/v2/usercollection/session/*';
  const missing = { status: 404, json: { detail: 'Not Found' } };
  // The first is the event's own question.
  harness.faults.on(documentRoute, [missing, limited, { status: 500, json: {} }, missing]);
  onTestFinished(() => harness.faults.on(documentRoute, () => undefined));
  const asked: number[] = [];
  // One person each: who was answered 429 has to wait.
  for (const name of ['abe', 'bea', 'cid', 'dot']) {
    const person = await harness.person(name, { session: [moment(`session-of-${name}`)] });
    const before = harness.faults.asked.length;
    await person.tell({ data_type: 'session', object_id: `session-of-${name}`, event_type: 'create' });
    asked.push(askedSince(before, name).filter(path => path.startsWith('/v2/usercollection/session/')).length);
  }
  expect(asked).toEqual([2, 1, 1, 0]);
});

test('one range read serves all events that wait for it, those that come meanwhile share the next', async () => {
  const ids = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'];
  const ben = await harness.person('ben', { sleep: ids.map((id, i) => night(id, `2025-03-0${i + 1}`)) });
  const { started, release } = holdReads('ben');
  const lines = harness.lines.length;
  await ben.announce({ data_type: 'sleep', object_id: 'n1' });
  await expect.poll(started).toBe(1);
  for (const id of ids.slice(1)) await ben.announce({ data_type: 'sleep', object_id: id });
  await expect.poll(async () => (await harness.queue.getJobCounts('active')).active).toBe(6);
  release();
  await harness.settled(lines + 6);
  expect(started()).toBe(2);
  expect(await ben.outcomes()).toMatchObject(ids.map((id, i) => ({ object_id: id, outcome: i === 0 ? 'stored' : 'unchanged' })));
});

test('an old document makes no read of years: ranges with a gap between them are read apart', async () => {
  const cem = await harness.person('cem', { sleep: [night('old', '2019-05-05', { period: 1 }), night('new')] });
  await cem.store('sleep', [night('old', '2019-05-05')]);
  const { started, release } = holdReads('cem');
  const [before, lines] = [harness.faults.asked.length, harness.lines.length];
  await cem.announce({ data_type: 'sleep', object_id: 'new' });
  await expect.poll(started).toBe(1);
  await cem.announce({ data_type: 'sleep', object_id: 'old' });
  await cem.announce({ data_type: 'sleep', object_id: 'new' });
  await expect.poll(async () => (await harness.queue.getJobCounts('active')).active).toBe(3);
  release();
  await harness.settled(lines + 3);
  const [first, ...others] = askedSince(before, 'cem').filter(path => path.includes(' '));
  expect(first).toBe(`${SLEEP} 2025-02-08 2025-03-13`);
  // Two jobs side by side: either may be the first to wait.
  expect(others.toSorted()).toEqual([`${SLEEP} 2019-05-03 2019-05-07`, `${SLEEP} 2025-02-08 2025-03-13`]);
  expect(await cem.outcomes()).toMatchObject([{ outcome: 'stored' }, { outcome: 'stored' }, { outcome: 'unchanged' }]);
});

test('a deleted document is removed once it was absent from two complete reads', async () => {
  const dan = await harness.person('dan', { sleep: [night('sleep-1')] });
  await dan.store('sleep', [night('sleep-1'), night('nap-1')]);
  const before = harness.faults.asked.length;
  expect(await dan.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'nap-1' })).toMatchObject({
    outcome: 'removed',
    removedRows: 1,
  });
  expect(askedSince(before, 'dan')).toEqual([`${SLEEP} 2025-03-07 2025-03-11`, `${SLEEP} 2025-02-07 2025-04-08`]);
  expect(await storedOf('dan')).toEqual([{ id: 'sleep-1' }]);
  expect(await harness.rows(`SELECT id FROM sync.tombstones WHERE user_id = 'dan'`)).toEqual([{ id: 'nap-1' }]);
});

test('answers to another range, as a cache gives them that ignores the query, remove nothing that a delete event names', async () => {
  const gil = await harness.person('gil', { sleep: [night('sleep-1')] });
  await gil.store('sleep', [night('sleep-1')]);
  harness.faults.on(SLEEP, { json: { data: [night('old-1', '2024-11-05')], next_token: null } });
  onTestFinished(() => harness.faults.on(SLEEP, () => undefined));
  expect(await gil.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'sleep-1' })).toMatchObject({ outcome: 'parked' });
  expect(await storedOf('gil')).toEqual([{ id: 'sleep-1' }]);
});

test('a delete event of a document that is still in the range stores it', async () => {
  const eve = await harness.person('eve', { sleep: [night('sleep-1', '2025-03-09', { period: 7 })] });
  await eve.store('sleep', [night('sleep-1')]);
  expect(await eve.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'sleep-1' })).toMatchObject({ outcome: 'stored' });
  expect(await harness.rows(`SELECT period FROM sleep WHERE user_id = 'eve'`)).toEqual([{ period: 7 }]);
});

test('an update of a document that moved by more than two days stores it under its new day', async () => {
  const fay = await harness.person('fay', { sleep: [night('sleep-1', '2025-02-20'), night('moved-1', '2025-03-01')] });
  await fay.store('sleep', [night('sleep-1', '2025-02-20'), night('moved-1', '2025-02-20')]);
  const before = harness.faults.asked.length;
  expect(await fay.tell({ data_type: 'sleep', object_id: 'moved-1' })).toMatchObject({ outcome: 'stored' });
  // First about the day that is known, then far about it.
  expect(askedSince(before, 'fay')).toEqual([`${SLEEP} 2025-02-18 2025-02-22`, `${SLEEP} 2025-01-21 2025-03-22`]);
  expect(await harness.rows(`SELECT id, day::VARCHAR AS day FROM sleep WHERE user_id = 'fay' ORDER BY id`)).toEqual([
    { id: 'moved-1', day: '2025-03-01' },
    { id: 'sleep-1', day: '2025-02-20' },
  ]);
});

test('an update of a document that is absent from every read removes nothing where no route tells of it alone', async () => {
  const fin = await harness.person('fin', { sleep: [night('sleep-1'), night('moved-1', '2024-05-01')] });
  await fin.store('sleep', [night('sleep-1'), night('moved-1')]);
  const before = harness.faults.asked.length;
  expect(await fin.tell({ data_type: 'sleep', object_id: 'moved-1' })).toMatchObject({ outcome: 'parked' });
  expect(askedSince(before, 'fin')).toHaveLength(4);
  await fin.tell({ event_type: 'create', data_type: 'sleep', object_id: 'never-1' });
  expect(await fin.outcomes()).toMatchObject([
    {
      object_id: 'moved-1',
      outcome: 'parked',
      reason: 'not found from 2025-02-07 to 2025-04-08, but it may have moved to other days: the next sweep decides',
    },
    { object_id: 'never-1', outcome: 'parked', reason: 'found neither by its identifier nor from 2025-02-08 to 2025-03-13' },
  ]);
  expect(await storedOf('fin')).toEqual([{ id: 'moved-1' }, { id: 'sleep-1' }]);
});

test('a document that shows up between two reads is stored', async () => {
  const gil = await harness.person('gil', { sleep: [night('sleep-1')] });
  let reads = 0;
  harness.faults.on(SLEEP, ({ token }) => {
    if (token === 'gil-token' && ++reads === 3) gil.documents.sleep = [night('sleep-1'), night('late-1')];
    return undefined;
  });
  onTestFinished(() => harness.faults.on(SLEEP, () => undefined));
  expect(await gil.tell({ event_type: 'create', data_type: 'sleep', object_id: 'late-1' })).toMatchObject({ outcome: 'stored' });
  expect(reads).toBe(3);
});

test('an answer without any document removes the only one that is stored for a delete event, for an update it proves nothing', async () => {
  const hal = await harness.person('hal', { sleep: [] });
  await hal.store('sleep', [night('sleep-1')]);
  await hal.tell({ event_type: 'update', data_type: 'sleep', object_id: 'sleep-1' });
  expect(await storedOf('hal')).toEqual([{ id: 'sleep-1' }]);
  await hal.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'sleep-1' });
  expect(await storedOf('hal')).toEqual([]);
  expect(await hal.outcomes()).toMatchObject([
    {
      outcome: 'parked',
      reason:
        'not found by its identifier, and nothing at all came from 2025-02-07 to 2025-04-08, which proves nothing: the next sweep decides',
    },
    { outcome: 'removed' },
  ]);
});

test('an answer without any document removes nothing where others are stored in the range, whatever the event says', async () => {
  const ida = await harness.person('ida', { sleep: [] });
  await ida.store('sleep', [night('sleep-1'), night('nap-1', '2025-03-08')]);
  for (const event_type of ['delete', 'update', 'create'] as const) {
    expect(await ida.tell({ event_type, data_type: 'sleep', object_id: 'nap-1' })).toMatchObject({ outcome: 'parked' });
  }
  expect(await storedOf('ida')).toEqual([{ id: 'nap-1' }, { id: 'sleep-1' }]);
});

test('what was stored after a read began is not removed by its absence from it', async () => {
  const jan = await harness.person('jan', { sleep: [night('sleep-1')] });
  await jan.store('sleep', [night('sleep-1'), night('nap-1')]);
  let reads = 0;
  harness.faults.on(SLEEP, async ({ token }) => {
    // The second read has been sent, and does not have it; meanwhile a newer answer does.
    if (token === 'jan-token' && ++reads === 2) await jan.store('sleep', [night('nap-1', '2025-03-09', { period: 3 })]);
    return undefined;
  });
  onTestFinished(() => harness.faults.on(SLEEP, () => undefined));
  expect(await jan.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'nap-1' })).toMatchObject({ outcome: 'unchanged' });
  expect(await storedOf('jan')).toEqual([{ id: 'nap-1' }, { id: 'sleep-1' }]);
});

test('a document that a later page brings is found, and one bad document beside it is rejected alone', async () => {
  const kim = await harness.person('kim', {
    sleep: [
      ...Array.from({ length: 60 }, (_, i) => night(`n${i}`, '2025-03-01')),
      { ...night('bad-1', '2025-03-02'), day: '2025-03-02x' },
      night('z'),
    ],
  });
  expect(await kim.tell({ data_type: 'sleep', object_id: 'z' })).toMatchObject({ outcome: 'stored' });
  await kim.tell({ data_type: 'sleep', object_id: 'bad-1' });
  expect((await kim.outcomes())[1]).toMatchObject({
    outcome: 'parked',
    reason: 'the document cannot be stored: sync.rejected has it and says why',
  });
  expect(await harness.rows(`SELECT count(*) AS nights FROM sleep WHERE user_id = 'kim'`)).toEqual([{ nights: 61 }]);
});

test('a ring that is gone is removed by its own route, which the specification lists', async () => {
  const lou = await harness.person('lou', { ring_configuration: [{ id: 'ring-1', color: 'silver' }] });
  expect(await lou.tell({ data_type: 'ring_configuration', object_id: 'ring-1' })).toMatchObject({ outcome: 'stored' });
  lou.documents.ring_configuration = [];
  expect(await lou.tell({ event_type: 'delete', data_type: 'ring_configuration', object_id: 'ring-1' })).toMatchObject({
    outcome: 'removed',
  });
});

test('a ring that is never readable is parked where its collection is not offered', async () => {
  const max = await harness.person('max', { ring_configuration: [] });
  expect(await max.tell({ event_type: 'create', data_type: 'ring_configuration', object_id: 'ring-9' })).toMatchObject({
    outcome: 'parked',
  });
  expect((await max.outcomes())[0]).toMatchObject({
    reason: expect.stringMatching(/^GET \/v2\/usercollection\/ring_configuration: answered 404/),
  });
});

test('a document made again under a day long past is found at the last look, which goes back to the first day that was to be read', async () => {
  const nia = await harness.person('nia', { sleep: [night('beside'), night('made-again', '2025-01-10')] });
  const [startAt, endAt] = [Date.UTC(2025, 0, 1) * 1000, Date.UTC(2025, 2, 11) * 1000];
  await harness.pipeline.warehouse.record([plannedEntry({ runId: 'first', userId: 'nia', collection: 'sleep', startAt, endAt })]);
  const before = harness.faults.asked.length;
  expect(await nia.tell({ event_type: 'create', data_type: 'sleep', object_id: 'made-again' })).toMatchObject({ outcome: 'stored' });
  const recent = `${SLEEP} 2025-02-08 2025-03-13`;
  expect(askedSince(before, 'nia')).toEqual([recent, recent, recent, `${SLEEP} 2024-12-30 2025-03-13`]);
  expect(await harness.rows(`SELECT id, day::VARCHAR AS day FROM sleep WHERE user_id = 'nia' AND id = 'made-again'`)).toEqual([
    { id: 'made-again', day: '2025-01-10' },
  ]);
});

test('an event of a deletion finds a document that only moved, and keeps it', async () => {
  const oda = await harness.person('oda', { sleep: [night('beside', '2025-03-03'), night('moved', '2025-02-14')] });
  await oda.store('sleep', [night('beside', '2025-03-03'), night('moved', '2025-03-04')]);
  expect(await oda.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'moved' })).toMatchObject({ outcome: 'stored' });
  expect(await harness.rows(`SELECT id, day::VARCHAR AS day FROM sleep WHERE user_id = 'oda' ORDER BY id`)).toEqual([
    { id: 'beside', day: '2025-03-03' },
    { id: 'moved', day: '2025-02-14' },
  ]);
});

test('two documents of one day that are both deleted are removed, for others of the collection still come', async () => {
  const ria = await harness.person('ria', { sleep: [night('beside', '2025-01-20')] });
  await ria.store('sleep', [night('beside', '2025-01-20'), night('first', '2025-03-03'), night('second', '2025-03-03')]);
  const [startAt, endAt] = [Date.UTC(2025, 0, 1) * 1000, Date.UTC(2025, 2, 11) * 1000];
  await harness.pipeline.warehouse.record([plannedEntry({ runId: 'ria', userId: 'ria', collection: 'sleep', startAt, endAt })]);
  const before = harness.faults.asked.length;
  expect(await ria.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'first' })).toMatchObject({ outcome: 'removed' });
  // An empty answer about a day with another stored document counts for nothing.
  const all = [`${SLEEP} 2025-01-03 2025-04-02`, `${SLEEP} 2024-12-30 2025-01-04`];
  expect(askedSince(before, 'ria')).toEqual([`${SLEEP} 2025-03-01 2025-03-05`, ...all, ...all]);
  expect(await ria.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'second' })).toMatchObject({ outcome: 'removed' });
  expect(await storedOf('ria')).toEqual([{ id: 'beside' }]);
});

test.each(['update', 'create', 'delete'] as const)('an event of type %s finds a document that has moved by months', async event_type => {
  const name = `sam-${event_type}`;
  const sam = await harness.person(name, { sleep: [night('beside', '2025-03-03'), night('moved', '2024-11-20')] });
  await sam.store('sleep', [night('beside', '2025-03-03'), night('moved', '2025-03-04')]);
  const [startAt, endAt] = [Date.UTC(2024, 10, 1) * 1000, Date.UTC(2025, 2, 11) * 1000];
  await harness.pipeline.warehouse.record([plannedEntry({ runId: name, userId: name, collection: 'sleep', startAt, endAt })]);
  expect(await sam.tell({ event_type, data_type: 'sleep', object_id: 'moved' })).toMatchObject({ outcome: 'stored' });
  expect(await harness.rows(`SELECT id, day::VARCHAR AS day FROM sleep WHERE user_id = '${name}' ORDER BY id`)).toEqual([
    { id: 'beside', day: '2025-03-03' },
    { id: 'moved', day: '2024-11-20' },
  ]);
});

test('an empty answer for the days of a document removes nothing, whatever other days bring', async () => {
  const ulf = await harness.person('ulf', { sleep: [night('beside', '2024-08-20')] });
  await ulf.store('sleep', [night('beside', '2024-08-20'), night('first', '2025-03-03'), night('second', '2025-03-04')]);
  const [startAt, endAt] = [Date.UTC(2024, 7, 1) * 1000, Date.UTC(2025, 2, 11) * 1000];
  await harness.pipeline.warehouse.record([plannedEntry({ runId: 'ulf', userId: 'ulf', collection: 'sleep', startAt, endAt })]);
  expect(await ulf.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'first' })).toMatchObject({ outcome: 'parked' });
  expect(await storedOf('ulf')).toEqual([{ id: 'beside' }, { id: 'first' }, { id: 'second' }]);
  expect((await ulf.outcomes())[0]).toMatchObject({
    reason:
      'not found by its identifier, and nothing at all came from 2025-01-03 to 2025-04-02, which proves nothing: the next sweep decides',
  });
});

test('a document of a day long before all others makes no read of centuries', async () => {
  const vic = await harness.person('vic', { sleep: [night('beside', '2025-03-03')] });
  await vic.store('sleep', [night('beside', '2025-03-03'), night('mistake', '1025-03-03')]);
  const [startAt, endAt] = [Date.UTC(2025, 0, 1) * 1000, Date.UTC(2025, 2, 11) * 1000];
  await harness.pipeline.warehouse.record([plannedEntry({ runId: 'vic', userId: 'vic', collection: 'sleep', startAt, endAt })]);
  const before = harness.faults.asked.length;
  expect(await vic.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'mistake' })).toMatchObject({ outcome: 'removed' });
  expect(askedSince(before, 'vic')).toEqual([`${SLEEP} 1025-03-01 1025-03-05`, `${SLEEP} 1025-02-01 1025-04-02`]);
});

test('a service that refuses long ranges, or shortens them, is asked for no more than ninety days at once', async () => {
  const tom = await harness.person('tom', { sleep: [night('beside', '2025-03-03'), night('moved', '2024-08-30')] });
  await tom.store('sleep', [night('beside', '2025-03-03'), night('moved', '2025-03-04')]);
  const [startAt, endAt] = [Date.UTC(2024, 7, 1) * 1000, Date.UTC(2025, 2, 11) * 1000];
  await harness.pipeline.warehouse.record([plannedEntry({ runId: 'tom', userId: 'tom', collection: 'sleep', startAt, endAt })]);
  const before = harness.faults.asked.length;
  expect(await tom.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'moved' })).toMatchObject({ outcome: 'stored' });
  expect(askedSince(before, 'tom')).toEqual([
    `${SLEEP} 2025-03-02 2025-03-06`,
    `${SLEEP} 2025-01-04 2025-04-03`,
    `${SLEEP} 2024-10-08 2025-01-05`,
    `${SLEEP} 2024-07-30 2024-10-09`,
  ]);
});

/** Sleep from a service that sends one answer after the third request only when an hour has passed; a new token waits for nothing. */
function limitSleep(user: string, nights: readonly ReturnType<typeof night>[]): void {
  let asked = 0;
  harness.faults.on(SLEEP, ({ token, query }) => {
    if (token === `${user}-token` && ++asked > 2) return limited;
    const [from = '', to = ''] = [query.get('start_date') ?? '', query.get('end_date') ?? ''];
    return { json: { data: nights.filter(({ day }) => from <= String(day) && String(day) <= to), next_token: null } };
  });
  onTestFinished(() => harness.faults.on(SLEEP, () => undefined));
}

const rangesSince = (before: number) =>
  harness.faults.asked.slice(before).map(({ query }) => `${query.get('start_date')} ${query.get('end_date')}`);

test.each([
  ['is removed where it is nowhere', [night('beside', '2025-03-03')], 'removed', [{ id: 'beside', day: '2025-03-03' }]],
  [
    'is kept where it has moved',
    [night('beside', '2025-03-03'), night('moved', '2024-08-20')],
    'stored',
    [
      { id: 'beside', day: '2025-03-03' },
      { id: 'moved', day: '2024-08-20' },
    ],
  ],
  [
    'is kept where it has come back meanwhile',
    [night('beside', '2025-03-03'), night('moved', '2025-03-04')],
    'unchanged',
    [
      { id: 'beside', day: '2025-03-03' },
      { id: 'moved', day: '2025-03-04' },
    ],
  ],
] as const)(
  'a look through all days that has to wait for an hour goes on where it was, and the document %s',
  async (what, nights, outcome, left) => {
    const name = `uma-${outcome}-${nights.at(-1)?.day}`;
    const uma = await harness.person(name, { sleep: [] });
    await uma.store('sleep', [night('beside', '2025-03-03'), night('moved', '2025-03-04')]);
    const [startAt, endAt] = [Date.UTC(2024, 7, 1) * 1000, Date.UTC(2025, 2, 11) * 1000];
    await harness.pipeline.warehouse.record([plannedEntry({ runId: name, userId: name, collection: 'sleep', startAt, endAt })]);
    const [before, lines] = [harness.faults.asked.length, harness.lines.length];
    limitSleep(name, [night('beside', '2025-03-03')]);
    await uma.announce({ event_type: 'delete', data_type: 'sleep', object_id: 'moved' });
    await expect
      .poll(async () => (await harness.queue.getJobs(['delayed'])).map(job => job?.data))
      .toMatchObject([{ readFrom: '2025-01-04' }]);
    expect(rangesSince(before)).toEqual(['2025-03-02 2025-03-06', '2025-01-04 2025-04-03', '2024-10-08 2025-01-05']);
    const then = harness.faults.asked.length;
    limitSleep(name, nights);
    harness.tokens.set(name, `${name}-new`);
    for (const job of await harness.queue.getJobs(['delayed'])) await job?.promote();
    await harness.settled(lines + 1);
    expect(await uma.outcomes()).toMatchObject([{ outcome }]);
    const rest = ['2024-10-08 2025-01-05', '2024-07-30 2024-10-09'];
    const near = '2025-02-02 2025-04-03';
    expect(rangesSince(then)).toEqual(what === 'is kept where it has moved' ? rest : [...rest, near]);
    expect(await harness.rows(`SELECT id, day::VARCHAR AS day FROM sleep WHERE user_id = '${name}' ORDER BY id`)).toEqual(left);
  },
);

test('what its own route said of a document before a wait is not asked for again: the look that follows has the requests', async () => {
  const route = '/v2/usercollection/daily_spo2';
  const zoe = await harness.person('zoe', { daily_spo2: [] });
  const spo2 = (id: string) => ({ id, day: '2025-03-04', spo2_percentage: { average: 97.5 }, breathing_disturbance_index: 3 });
  await zoe.store('daily_spo2', [spo2('beside'), spo2('gone')]);
  let allowed = 4;
  harness.faults.on(`${route}/*`, () => (allowed-- > 0 ? { status: 404, json: { detail: 'Document not found.' } } : limited));
  harness.faults.on(route, () => (allowed-- > 0 ? { json: { data: [spo2('beside')], next_token: null } } : limited));
  onTestFinished(() => {
    harness.faults.on(`${route}/*`, () => undefined);
    harness.faults.on(route, () => undefined);
  });
  const [before, lines] = [harness.faults.asked.length, harness.lines.length];
  await zoe.announce({ data_type: 'daily_spo2', object_id: 'gone' });
  const waiting = async () => (await harness.queue.getJobs(['delayed'])).filter(job => JSON.stringify(job?.data).includes('routeSaid'));
  await expect.poll(async () => (await waiting()).map(job => job?.data)).toMatchObject([{ misses: 3, routeSaid: 'gone' }]);
  const documents = Array(4).fill(`${route}/gone`);
  expect(harness.faults.asked.slice(before).map(({ path }) => path)).toEqual([...documents, route]);
  allowed = 2;
  harness.tokens.set('zoe', 'zoe-new');
  const then = harness.faults.asked.length;
  for (const job of await waiting()) await job?.promote();
  await expect.poll(() => harness.faults.asked.length).toBe(then + 3);
  // The second look, which removes it, asks its route once more.
  expect(harness.faults.asked.slice(then).map(({ path }) => path)).toEqual([route, `${route}/gone`, route]);
  allowed = 1;
  harness.tokens.set('zoe', 'zoe-newer');
  await expect.poll(async () => (await waiting()).length).toBe(1);
  for (const job of await waiting()) await job?.promote();
  await harness.settled(lines + 1);
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'zoe'`)).toEqual([{ id: 'beside' }]);
});

test('where ranges that were read together are refused, each event has the answer for its own days', async () => {
  const documents = [
    night('held', '2025-02-20'),
    night('first', '2025-03-01', { period: 1 }),
    night('second', '2025-03-04', { period: 2 }),
  ];
  const wes = await harness.person('wes', { sleep: documents });
  await wes.store('sleep', [night('held', '2025-02-20'), night('first', '2025-03-01'), night('second', '2025-03-04')]);
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  harness.faults.on(SLEEP, async ({ query }) => {
    await released;
    const days = (Date.parse(query.get('end_date') ?? '') - Date.parse(query.get('start_date') ?? '')) / 86_400_000 + 1;
    return days > 5 ? { status: 400, json: { detail: 'at most 5 days' } } : undefined;
  });
  onTestFinished(() => harness.faults.on(SLEEP, () => undefined));
  const [before, lines] = [harness.faults.asked.length, harness.lines.length];
  await wes.announce({ data_type: 'sleep', object_id: 'held' });
  await expect.poll(() => harness.faults.asked.length).toBe(before + 1);
  for (const id of ['first', 'second']) await wes.announce({ data_type: 'sleep', object_id: id });
  await expect.poll(async () => (await harness.queue.getJobCounts('active')).active).toBe(3);
  release();
  await harness.settled(lines + 3);
  const asked = askedSince(before, 'wes');
  expect(asked.slice(0, 2)).toEqual([`${SLEEP} 2025-02-18 2025-02-22`, `${SLEEP} 2025-02-27 2025-03-06`]);
  expect(asked.slice(2).toSorted()).toEqual([`${SLEEP} 2025-02-27 2025-03-03`, `${SLEEP} 2025-03-02 2025-03-06`]);
  expect(await harness.rows(`SELECT id, period FROM sleep WHERE user_id = 'wes' ORDER BY id`)).toEqual([
    { id: 'first', period: 1 },
    { id: 'held', period: 0 },
    { id: 'second', period: 2 },
  ]);
});

test('two documents that are far from each other and both deleted do not keep each other', async () => {
  const quy = await harness.person('quy', { sleep: [] });
  await quy.store('sleep', [night('first', '2025-02-20'), night('second', '2025-03-02')]);
  for (const id of ['first', 'second']) {
    expect(await quy.tell({ event_type: 'delete', data_type: 'sleep', object_id: id })).toMatchObject({ outcome: 'removed' });
  }
  expect(await storedOf('quy')).toEqual([]);
});

test('what was stored far away since its own route called it gone is not removed by a reading of its old days', async () => {
  const pia = await harness.person('pia', { sleep: [] });
  await pia.store('sleep', [night('returned', '2024-11-02')]);
  const { clock } = harness.pipeline.warehouse;
  const read = {
    range: { from: '2025-02-02', to: '2025-04-03' },
    requestedAt: clock.lease(),
    parts: [{ range: { from: '2025-02-02', to: '2025-04-03' }, documents: 1 }],
  };
  const event = {
    receivedAt: clock.next(),
    event: {
      event_type: 'update' as const,
      data_type: 'sleep',
      object_id: 'returned',
      user_id: 'service-pia',
      event_time: '2025-03-10T15:00:00Z',
    },
    tries: { misses: 4, absences: 1, failures: 0, refusals: 0 },
    userId: 'pia',
    resource: resourceNamed('sleep'),
    token: 'pia-token',
    isGone: true,
  };
  await finishAbsent(harness.pipeline, event, read, { unreadable: [1, 2, 3], confirm: 1, confirmDelete: 1 });
  clock.release(read.requestedAt);
  expect(await storedOf('pia')).toEqual([{ id: 'returned' }]);
});
