import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeUpEvents } from '../../src/sync/events/take-up.ts';
import { listUnknownPersons } from '../../src/sync/events/unknown-person.ts';
import { spo2 } from '../service/documents.ts';
import { type EventHarness, openEventHarness } from '../support/event-harness.ts';
import { night } from '../support/nights.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
let harness: EventHarness;

beforeAll(async () => {
  harness = await openEventHarness(folder, {
    delays: { unreadable: [1, 2, 3], confirm: 1, confirmDelete: 1, failed: [1, 2, 3] },
    lookAgainMs: 5,
  });
  // One account alone may be whoever an event tells of.
  await harness.person('neighbour', {});
});
afterAll(() => harness.close());

test('an event brings its document, and its row in the ledger says when it happened, came and was committed', async () => {
  const ada = await harness.person('ada', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  expect(await ada.tell({ event_type: 'create' })).toEqual({
    at: '2025-03-10T15:30:00.000Z',
    event_type: 'create',
    data_type: 'daily_spo2',
    user_id: 'ada',
    object_id: 'spo2-1',
    outcome: 'stored',
    ms: 0,
  });
  expect(await harness.rows(`SELECT id, day, spo2_percentage_average FROM daily_spo2 WHERE user_id = 'ada'`)).toEqual([
    { id: 'spo2-1', day: '2025-03-09', spo2_percentage_average: 97 },
  ]);
  expect(await harness.rows(`SELECT * EXCLUDE (received_at, committed_at) FROM sync.events WHERE user_id = 'ada'`)).toEqual([
    {
      event_time: '2025-03-10 15:00:00',
      event_type: 'create',
      data_type: 'daily_spo2',
      object_id: 'spo2-1',
      service_user_id: 'service-ada',
      user_id: 'ada',
      outcome: 'stored',
      reason: null,
      settled_at: '2025-03-10 15:30:00',
      account_since: '2025-02-19 21:20:00',
    },
  ]);
  expect(await harness.rows(`SELECT received_at < committed_at AS ordered FROM sync.events WHERE user_id = 'ada'`)).toEqual([
    { ordered: true },
  ]);
});

test('an event of what its person has not allowed is parked with the scope, and nothing is asked for', async () => {
  const mia = await harness.person('mia', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  harness.granted.set('mia', ['personal', 'daily']);
  expect(await mia.tell({ event_type: 'create' })).toMatchObject({ outcome: 'parked' });
  expect(await mia.outcomes()).toEqual([
    { event_type: 'create', object_id: 'spo2-1', outcome: 'parked', reason: 'scope spo2Daily was not granted' },
  ]);
  expect(harness.faults.asked.filter(({ token }) => token === 'mia-token')).toEqual([]);
});

test('an event whose document is as it was changes nothing', async () => {
  const ben = await harness.person('ben', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await ben.store('daily_spo2', [spo2('2025-03-09', 'spo2-1')]);
  const before = await harness.rows(`SELECT sk, fetched_at FROM daily_spo2 WHERE user_id = 'ben'`);
  expect(await ben.tell({})).toMatchObject({ outcome: 'unchanged' });
  expect(await harness.rows(`SELECT sk, fetched_at FROM daily_spo2 WHERE user_id = 'ben'`)).toEqual(before);
});

test('a delete event removes the row and its samples and leaves a tombstone', async () => {
  const cleo = await harness.person('cleo', { sleep: [night('sleep-1'), night('nap-1')] });
  await cleo.tell({ data_type: 'sleep', object_id: 'sleep-1' });
  await cleo.tell({ data_type: 'sleep', object_id: 'nap-1' });
  cleo.documents.sleep = [night('sleep-1')];
  expect(await cleo.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'nap-1' })).toMatchObject({
    outcome: 'removed',
    removedRows: 1,
  });
  expect(await harness.rows(`SELECT id FROM sleep WHERE user_id = 'cleo'`)).toEqual([{ id: 'sleep-1' }]);
  expect(await harness.rows(`SELECT count(*) AS samples FROM sleep_heart_rate WHERE user_id = 'cleo'`)).toEqual([{ samples: 3 }]);
  expect(await harness.rows(`SELECT collection, id FROM sync.tombstones WHERE user_id = 'cleo'`)).toEqual([
    { collection: 'sleep', id: 'nap-1' },
  ]);
});

test('a delete event of a document that was never stored leaves a tombstone all the same', async () => {
  const dan = await harness.person('dan', { daily_spo2: [] });
  expect(await dan.tell({ event_type: 'delete', object_id: 'spo2-7' })).toMatchObject({ outcome: 'removed', removedRows: 0 });
  expect(await harness.rows(`SELECT id FROM sync.tombstones WHERE user_id = 'dan'`)).toEqual([{ id: 'spo2-7' }]);
});

test('a delete event of a document that is there again stores it', async () => {
  const eve = await harness.person('eve', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  expect(await eve.tell({ event_type: 'delete' })).toMatchObject({ outcome: 'stored' });
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'eve'`)).toEqual([{ id: 'spo2-1' }]);
});

test('a document that is made again after it was deleted is stored again, and its tombstone goes', async () => {
  const fay = await harness.person('fay', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await fay.tell({ event_type: 'create' });
  fay.documents.daily_spo2 = [];
  await fay.tell({ event_type: 'delete' });
  fay.documents.daily_spo2 = [spo2('2025-03-08', 'spo2-1')];
  expect(await fay.tell({ event_type: 'create' })).toMatchObject({ outcome: 'stored' });
  expect(await harness.rows(`SELECT id, day FROM daily_spo2 WHERE user_id = 'fay'`)).toEqual([{ id: 'spo2-1', day: '2025-03-08' }]);
  expect(await harness.rows(`SELECT * FROM sync.tombstones WHERE user_id = 'fay'`)).toEqual([]);
});

test('a late update of a document that was deleted meanwhile ends as removed', async () => {
  const gil = await harness.person('gil', { daily_spo2: [spo2('2025-03-08', 'spo2-0')] });
  await gil.tell({ event_type: 'delete' });
  expect(await gil.tell({ event_type: 'update' })).toMatchObject({ outcome: 'removed' });
});

test('activity is another name of daily_activity, and the event keeps the name it came with', async () => {
  const { oneOfEach } = await import('../service/documents.ts');
  const hal = await harness.person('hal', { daily_activity: oneOfEach.daily_activity! });
  expect(await hal.tell({ data_type: 'activity', object_id: 'activity-1' })).toMatchObject({ outcome: 'stored', data_type: 'activity' });
  expect(await harness.rows(`SELECT id, steps FROM daily_activity WHERE user_id = 'hal'`)).toEqual([{ id: 'activity-1', steps: 9405 }]);
  expect(harness.heartRateOf).toContain('hal');
});

test('stored sleep and activity ask for heart rate, anything else does not', async () => {
  const ida = await harness.person('ida', { sleep: [night('sleep-1')], daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await ida.tell({});
  await ida.tell({ data_type: 'sleep', object_id: 'sleep-1' });
  await ida.tell({ data_type: 'sleep', object_id: 'sleep-1' });
  expect(harness.heartRateOf.filter(user => user === 'ida')).toEqual(['ida']);
});

test('a route of which the first answer was a 404 is asked first again once a document shows that it exists', async () => {
  const { oneOfEach } = await import('../service/documents.ts');
  const uma = await harness.person('uma', { session: structuredClone(oneOfEach.session!) });
  const route = '/v2/usercollection/session';
  harness.faults.on(`${route}/session-1`, (_, nth) => (nth === 1 ? { status: 404, json: { detail: 'Document not found.' } } : undefined));
  expect(await uma.tell({ event_type: 'create', data_type: 'session', object_id: 'session-1' })).toMatchObject({ outcome: 'stored' });
  await expect.poll(() => harness.pipeline.client.hasDocumentRoute({ path: 'session' })).toBe(true);
  const before = harness.faults.asked.length;
  expect(await uma.tell({ data_type: 'session', object_id: 'session-1' })).toMatchObject({ outcome: 'unchanged' });
  expect(harness.faults.asked.slice(before).map(({ path }) => path)).toEqual([`${route}/session-1`]);
});

test('an event of a kind that this version does not hold is recorded and not asked for', async () => {
  const jan = await harness.person('jan', {});
  const before = harness.faults.asked.length;
  expect(await jan.tell({ data_type: 'meal' })).toMatchObject({ outcome: 'unknown_type', user_id: 'jan' });
  expect(await jan.tell({ data_type: 'constructor' })).toMatchObject({ outcome: 'unknown_type' });
  expect(harness.faults.asked.length).toBe(before);
});

test('an event of an unknown user is recorded with the command that maps it, and after that command events count at once', async () => {
  const kim = await harness.person('kim', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await kim.account({ serviceUserId: null });
  expect(await kim.tell({})).toMatchObject({ outcome: 'unknown_user', user_id: null });
  expect(await kim.outcomes()).toEqual([
    {
      event_type: 'update',
      object_id: 'spo2-1',
      outcome: 'unknown_user',
      reason: 'no account is mapped to this service user: ringneck account map NAME service-kim',
    },
  ]);
  await kim.account({ serviceUserId: 'service-kim' });
  expect(await kim.tell({})).toMatchObject({ outcome: 'stored', user_id: 'kim' });
});

test('events that waited for a person are fetched again once the person is mapped, and are not unknown any more', async () => {
  const zoe = await harness.person('zoe', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await zoe.account({ serviceUserId: null });
  await zoe.tell({});
  await zoe.tell({ object_id: 'spo2-9' });
  const waiting = () =>
    listUnknownPersons(harness.pipeline.warehouse).then(all => all.filter(one => one.service_user_id === 'service-zoe'));
  expect(await waiting()).toEqual([
    { service_user_id: 'service-zoe', events: 2, last_event_at: expect.stringMatching(/^2025-03-10T15:30/) },
  ]);
  await zoe.account({ serviceUserId: 'service-zoe' });
  await takeUpEvents(harness.pipeline);
  const outcomes = async () => (await zoe.outcomes()).map(row => (row as { outcome: string }).outcome);
  await until('both have another outcome', async () => !(await outcomes()).includes('unknown_user'));
  expect(await outcomes()).toEqual(['stored', 'parked']);
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'zoe'`)).toEqual([{ id: 'spo2-1' }]);
  expect(await waiting()).toEqual([]);
});

test('of two accounts of one person the active one has its events', async () => {
  const two = await harness.person('two', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await two.account({ userId: 'one', state: 'removed' });
  expect(await two.tell({})).toMatchObject({ user_id: 'two', outcome: 'stored' });
});

test('an id that is no word of a shell is not put into a command', async () => {
  const lea = await harness.person('lea', {});
  await lea.tell({ user_id: 'x; rm -rf /' });
  expect(await harness.rows(`SELECT reason FROM sync.events WHERE service_user_id = 'x; rm -rf /'`)).toEqual([
    { reason: 'no account is mapped to this service user: ringneck account map NAME <service_user_id>' },
  ]);
});

test('events of an account that is paused or parked are parked with the reason, and nobody is asked', async () => {
  const max = await harness.person('max', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  const before = harness.faults.asked.length;
  await max.account({ state: 'paused', reason: 'paused by command' });
  await max.tell({});
  await max.account({ state: 'parked', reason: 'forbidden: answered 403' });
  await max.tell({});
  expect(await max.outcomes()).toMatchObject([
    { outcome: 'parked', reason: 'the account is paused: paused by command' },
    { outcome: 'parked', reason: 'the account is parked: forbidden: answered 403' },
  ]);
  expect(harness.faults.asked.length).toBe(before);
  await max.account({ state: 'active' });
  expect(await max.tell({})).toMatchObject({ outcome: 'stored' });
});

test('without a token the event is parked with the command', async () => {
  const nia = await harness.person('nia', {});
  harness.tokens.delete('nia');
  await nia.tell({});
  expect(await nia.outcomes()).toMatchObject([{ outcome: 'parked', reason: 'no token: ringneck account add nia' }]);
});

test('a time that cannot be read leaves its column empty', async () => {
  const ole = await harness.person('ole', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  expect(await ole.tell({ event_time: 'yesterday, about noon' })).toMatchObject({ outcome: 'stored' });
  expect(await harness.rows(`SELECT event_time FROM sync.events WHERE user_id = 'ole'`)).toEqual([{ event_time: null }]);
});

test('a document that comes under another identifier is not stored', async () => {
  const pam = await harness.person('pam', {});
  harness.faults.on('/v2/usercollection/daily_spo2/other', { json: spo2('2025-03-09', 'spo2-1') });
  await pam.tell({ object_id: 'other' });
  expect(await pam.outcomes()).toMatchObject([{ outcome: 'parked', reason: 'the service answered with a document of another identifier' }]);
  expect(await harness.rows(`SELECT * FROM daily_spo2 WHERE user_id = 'pam'`)).toEqual([]);
});

test('a document that cannot be stored parks its event and names the table where it is', async () => {
  const quin = await harness.person('quin', { daily_spo2: [{ id: 'spo2-1', day: 'someday' }] });
  await quin.tell({});
  expect(await quin.outcomes()).toMatchObject([
    { outcome: 'parked', reason: 'the document cannot be stored: sync.rejected has it and says why' },
  ]);
  expect(await harness.rows(`SELECT id, reason FROM sync.rejected WHERE user_id = 'quin'`)).toEqual([
    { id: 'spo2-1', reason: 'day is missing or not a calendar day' },
  ]);
});

const hostile = [
  '../daily_sleep/daily-sleep-1',
  '..',
  '.',
  '%2e%2e%2fsleep',
  '?start_date=2020-01-01',
  '#',
  "'; DROP TABLE sleep; --",
  'a\u0000b',
  'a\ud800b',
  '/',
  '\\..\\..',
  'line\nbreak',
  '𝒾𝒹',
];

test.each(hostile)('the identifier %j asks for no other path and is recorded', async id => {
  const user = `hostile-${hostile.indexOf(id)}`;
  const person = await harness.person(user, { daily_spo2: [spo2('2025-03-09', 'spo2-1')], daily_sleep: [] });
  const before = harness.faults.asked.length;
  const line = await person.tell({ object_id: id });
  expect(line).toMatchObject({ outcome: 'parked', object_id: id });
  for (const { path } of harness.faults.asked.slice(before)) expect(path).toMatch(/^\/v2\/usercollection\/daily_spo2(\/[^/]+)?$/);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'parked', object_id: id.toWellFormed().replace('\u0000', '\ufffd') }]);
});

/** What happens at the service between the first look at a document and the second, which follows within moments. */
function whenAskedAgain(id: string, happens: () => void): void {
  let looks = 0;
  harness.faults.on(`/v2/usercollection/daily_spo2/${id}`, () => {
    if (++looks === 2) happens();
    return undefined;
  });
}

test('an update that comes before it can be read is looked at once more, and its row in the ledger is the later one', async () => {
  const person = await harness.person('early', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await person.store('daily_spo2', [spo2('2025-03-09', 'spo2-1')]);
  const soon = { event_time: '2025-03-10T16:29:30+01:00' };
  const { length } = harness.lines;
  whenAskedAgain('spo2-1', () => {
    person.documents.daily_spo2 = [{ ...spo2('2025-03-09', 'spo2-1'), breathing_disturbance_index: 17 }];
  });
  await person.announce(soon);
  await harness.settled(length + 2);
  expect(harness.lines.slice(length).map(({ outcome }) => outcome)).toEqual(['unchanged', 'stored']);
  expect(await person.outcomes()).toEqual([{ event_type: 'update', object_id: 'spo2-1', outcome: 'stored', reason: null }]);
  expect(await harness.rows(`SELECT breathing_disturbance_index AS bdi FROM daily_spo2 WHERE user_id = 'early'`)).toEqual([{ bdi: 17 }]);
});

test('a delete that comes before the document is gone is looked at once more; what stays as it was keeps its first row', async () => {
  const person = await harness.person('still', { daily_spo2: [spo2('2025-03-09', 'spo2-1'), spo2('2025-03-08', 'spo2-2')] });
  await person.store('daily_spo2', person.documents.daily_spo2!);
  const soon = { event_type: 'delete' as const, event_time: '2025-03-10T16:29:30+01:00' };
  const { length } = harness.lines;
  whenAskedAgain('spo2-1', () => {
    person.documents.daily_spo2 = [spo2('2025-03-08', 'spo2-2')];
  });
  await person.announce({ ...soon, object_id: 'spo2-2' });
  await person.announce(soon);
  await harness.settled(length + 3);
  await until('all are done', async () => (await harness.queue.getDelayedCount()) + (await harness.queue.getActiveCount()) === 0);
  expect(await person.outcomes()).toEqual([
    { event_type: 'delete', object_id: 'spo2-2', outcome: 'unchanged', reason: null },
    { event_type: 'delete', object_id: 'spo2-1', outcome: 'removed', reason: null },
  ]);
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'still'`)).toEqual([{ id: 'spo2-2' }]);
});
