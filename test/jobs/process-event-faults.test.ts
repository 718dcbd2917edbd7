import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { RingneckError } from '../../src/base/errors.ts';
import { createLog } from '../../src/base/log.ts';
import { getAccount, setAccountState } from '../../src/ledger/accounts.ts';
import type { EventOptions } from '../../src/sync/events/advance-event.ts';
import { takeUpEvents } from '../../src/sync/events/take-up.ts';
import { spo2 } from '../service/documents.ts';
import { type EventHarness, openEventHarness } from '../support/event-harness.ts';
import { night } from '../support/nights.ts';
import { failStatements } from '../support/statement-faults.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { stepsOf } from '../support/whole.ts';

const folder = tempFolder();
const SPO2 = '/v2/usercollection/daily_spo2';
const SLEEP = '/v2/usercollection/sleep';
let harness: EventHarness;
let logged = '';
let isFull = false;

const write = (line: string) => {
  logged += line;
};
const log = createLog({ level: 'info', pretty: false, stream: { write } });
// The real schedule, but for failures.
const options: EventOptions = { delays: { failed: [1, 2, 3], refused: 1 } };

beforeAll(async () => {
  const beforeGroup = () => {
    if (isFull) throw new RingneckError('no room on the disk');
  };
  harness = await openEventHarness(folder, { ...options, log, beforeGroup });
});
afterAll(() => harness.close());

/** The one job that waits for its time: how long it does, and what it holds. */
async function delayed(): Promise<{ seconds: number; promote(): Promise<void>; data: unknown }> {
  await until('one job is delayed', async () => (await harness.queue.getDelayedCount()) === 1);
  const [job] = await harness.queue.getDelayed();
  return { seconds: Math.round(job!.delay / 1000), promote: () => job!.promote(), data: job!.data };
}

test.each([5, 30, 120])('a document that becomes readable only after %i s is stored then', async readableAt => {
  const user = `late-${readableAt}`;
  const person = await harness.person(user, { daily_spo2: [] });
  const lines = harness.lines.length;
  await person.announce({ event_type: 'create' });
  for (const seconds of [5, 30, 120]) {
    const waiting = await delayed();
    expect(waiting.seconds).toBe(seconds);
    if (seconds === readableAt) person.documents.daily_spo2 = [spo2('2025-03-09', 'spo2-1')];
    await waiting.promote();
    if (seconds === readableAt) break;
  }
  await harness.settled(lines + 1);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'stored' }]);
});

test('while an event waits for its document, new events of the same document are handled at once', async () => {
  const person = await harness.person('impatient', { daily_spo2: [] });
  const lines = harness.lines.length;
  await person.announce({ event_type: 'create' });
  const waiting = await delayed();
  person.documents.daily_spo2 = [spo2('2025-03-09', 'spo2-1')];
  expect(await person.tell({ event_type: 'update' })).toMatchObject({ outcome: 'stored' });
  await waiting.promote();
  await harness.settled(lines + 2);
  expect(await person.outcomes()).toMatchObject([
    { event_type: 'create', outcome: 'unchanged' },
    { event_type: 'update', outcome: 'stored' },
  ]);
});

test('a stored document of which the service knows no more is removed after two complete reads, half a minute apart', async () => {
  const person = await harness.person('faded', { daily_spo2: [spo2('2025-03-08')] });
  await person.store('daily_spo2', [spo2('2025-03-08'), spo2('2025-03-09', 'spo2-1')]);
  const lines = harness.lines.length;
  await person.announce({ event_type: 'update' });
  for (const seconds of [5, 30, 120, 30]) {
    const waiting = await delayed();
    expect(waiting.seconds).toBe(seconds);
    await waiting.promote();
  }
  await harness.settled(lines + 1);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'removed' }]);
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'faded'`)).toEqual([{ id: 'spo2-2025-03-08' }]);
});

test('a delete event of a document that has no route removes it after two complete readings, five seconds apart', async () => {
  harness.faults.on(`${SLEEP}/*`, { status: 404, json: { detail: 'Not Found' } });
  onTestFinished(() => harness.faults.on(`${SLEEP}/*`, () => undefined));
  const person = await harness.person('routeless', { sleep: [night('sleep-1')] });
  await person.store('sleep', [night('sleep-1'), night('nap-1')]);
  const lines = harness.lines.length;
  await person.announce({ event_type: 'delete', data_type: 'sleep', object_id: 'nap-1' });
  const waiting = await delayed();
  expect(waiting.seconds).toBe(5);
  expect(await harness.rows(`SELECT id FROM sleep WHERE user_id = 'routeless' ORDER BY id`)).toEqual([{ id: 'nap-1' }, { id: 'sleep-1' }]);
  await waiting.promote();
  await harness.settled(lines + 1);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'removed' }]);
  expect(await harness.rows(`SELECT id FROM sleep WHERE user_id = 'routeless'`)).toEqual([{ id: 'sleep-1' }]);
  const readings = harness.faults.asked.filter(({ path, token }) => path === SLEEP && token === 'routeless-token');
  expect(readings).toHaveLength(2);
});

test('a document that only the collection has is found there', async () => {
  const person = await harness.person('hidden', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  harness.faults.on(`${SPO2}/spo2-1`, ({ token }) =>
    token === 'hidden-token' ? { status: 404, json: { detail: 'Document not found.' } } : undefined,
  );
  const lines = harness.lines.length;
  await person.announce({});
  for (let i = 0; i < 3; i++) await (await delayed()).promote();
  await harness.settled(lines + 1);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'stored' }]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('a 404 that is a page of something on the way removes nothing', async () => {
  const person = await harness.person('proxied', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await person.store('daily_spo2', [spo2('2025-03-09', 'spo2-1')]);
  harness.faults.on(`${SPO2}/spo2-1`, ({ token }) =>
    token === 'proxied-token' ? { status: 404, text: '<html>nothing here</html>' } : undefined,
  );
  expect(await person.tell({ event_type: 'delete' })).toMatchObject({ outcome: 'parked' });
  expect(await person.outcomes()).toMatchObject([
    { reason: expect.stringMatching(/^the service did not answer: .*answered 404, but not in the form of the service/) },
  ]);
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'proxied'`)).toEqual([{ id: 'spo2-1' }]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test.each(['.', '..'])('an event whose identifier is %s is settled, and no other path is asked', async objectId => {
  const person = await harness.person(`steps-${objectId.length}`, { daily_spo2: [spo2('2025-03-09', objectId)] });
  const before = harness.faults.asked.length;
  expect(await person.tell({ object_id: objectId })).toMatchObject({ outcome: 'parked' });
  expect(await person.outcomes()).toMatchObject([
    { reason: 'no document can be asked for by this identifier: it would name another path' },
  ]);
  expect(harness.faults.asked.length).toBe(before);
});

test('a limit that lasts longer than a request may wait sends the job away until then, and costs it nothing', async () => {
  const person = await harness.person('limited', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  const other = await harness.person('free', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  harness.faults.on(`${SPO2}/spo2-1`, ({ token }) =>
    token === 'limited-token' ? { status: 429, headers: { 'retry-after': '600' }, json: { detail: 'too many' } } : undefined,
  );
  await person.announce({});
  const waiting = await delayed();
  expect(waiting.seconds).toBeGreaterThanOrEqual(595);
  expect(waiting.seconds).toBeLessThanOrEqual(600);
  expect(waiting.data).toMatchObject({ misses: 0 });
  expect(waiting.data).not.toHaveProperty('failures');
  // Another account is not concerned.
  expect(await other.tell({})).toMatchObject({ outcome: 'stored' });
  // A new token is behind a gate of its own.
  harness.faults.on(`${SPO2}/spo2-1`, { json: spo2('2025-03-09', 'spo2-1') });
  harness.tokens.set('limited', 'limited-new');
  const lines = harness.lines.length;
  await waiting.promote();
  await harness.settled(lines + 1);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'stored' }]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('a dead token parks the account and its events, an expired permission of one collection only the event', async () => {
  const dead = await harness.person('dead', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  dead.setState('expired');
  await dead.tell({});
  await dead.tell({});
  expect(await dead.outcomes()).toMatchObject([
    { outcome: 'parked', reason: expect.stringMatching(/^GET \/v2\/usercollection\/daily_spo2\/\{document_id\}: answered 401/) },
    { outcome: 'parked', reason: expect.stringMatching(/^the account is parked: unauthorized: GET/) },
  ]);
  expect(await harness.rows(`SELECT state FROM sync.accounts WHERE user_id = 'dead'`)).toEqual([{ state: 'parked' }]);

  const narrow = await harness.person('narrow', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  harness.faults.on(`${SPO2}/spo2-1`, ({ token }) => (token === 'narrow-token' ? { status: 403, json: { detail: 'scope' } } : undefined));
  expect(await narrow.tell({})).toMatchObject({ outcome: 'parked' });
  expect(await harness.rows(`SELECT state FROM sync.accounts WHERE user_id = 'narrow'`)).toEqual([{ state: 'active' }]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('one refusal of a collection parks no event: the second look finds the document', async () => {
  const person = await harness.person('refused-once', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  let refusals = 0;
  harness.faults.on(`${SPO2}/spo2-1`, ({ token }) =>
    token === 'refused-once-token' && refusals++ === 0 ? { status: 403, json: { detail: 'scope' } } : undefined,
  );
  expect(await person.tell({})).toMatchObject({ outcome: 'stored' });
  expect(refusals).toBe(2);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('events that were parked while their account was refused are fetched again once it is active', async () => {
  const person = await harness.person('lapsed', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  person.setState('expired');
  await person.tell({});
  await person.tell({});
  await takeUpEvents(harness.pipeline);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'parked' }, { outcome: 'parked' }]);
  person.setState('active');
  const { warehouse } = harness.pipeline;
  await setAccountState(warehouse, await getAccount(warehouse, 'lapsed'), 'active', null);
  const lines = harness.lines.length;
  await takeUpEvents(harness.pipeline);
  await harness.settled(lines + 2);
  // Together they make one fetch; where the second comes later it finds what the first has stored.
  const [first, second] = await person.outcomes();
  expect(first).toMatchObject({ outcome: 'stored' });
  expect(second).toMatchObject({ outcome: expect.stringMatching(/^(stored|unchanged)$/) });
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'lapsed'`)).toEqual([{ id: 'spo2-1' }]);
  await takeUpEvents(harness.pipeline);
  expect(await harness.queue.getJobCounts('waiting', 'active', 'delayed')).toEqual({ waiting: 0, active: 0, delayed: 0 });
});

test('a service that does not answer is asked again, later and later, and then the event is parked where everybody sees it', async () => {
  const person = await harness.person('silent', {});
  const before = harness.faults.asked.length;
  harness.faults.on(`${SPO2}/spo2-1`, { status: 500 });
  expect(await person.tell({})).toMatchObject({ outcome: 'parked' });
  expect(harness.faults.asked.length - before).toBe(4);
  expect(await person.outcomes()).toMatchObject([{ reason: expect.stringMatching(/^the service did not answer: GET .* answered 500/) }]);
  harness.faults.on(`${SPO2}/spo2-1`, [{ status: 500 }, { text: 'not json' }, { json: spo2('2025-03-09', 'spo2-1') }]);
  expect(await person.tell({})).toMatchObject({ outcome: 'stored' });
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test.each([
  ['[]', '[]'],
  ['{"data":[],"next_token":null}', '{"data":[],"next_token":null}'],
  ['[]', '{"data":[]}'],
])('a service that answers 200 and %s to documents, %s to collections, loses nothing', async (document, collection) => {
  const user = `emptied-${document.length}-${collection.length}`;
  const person = await harness.person(user, {});
  await person.store('daily_spo2', [spo2('2025-03-08'), spo2('2025-03-09', 'spo2-1')]);
  harness.faults.on(`${SPO2}/spo2-1`, { text: document });
  harness.faults.on(SPO2, { text: collection });
  for (const event_type of ['delete', 'update', 'create'] as const) {
    expect(await person.tell({ event_type })).toMatchObject({ outcome: 'parked' });
  }
  expect(await harness.rows(`SELECT count(*) AS rows FROM daily_spo2 WHERE user_id = '${user}'`)).toEqual([{ rows: 2 }]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
  harness.faults.on(SPO2, () => undefined);
});

test('an old answer that comes late does not overwrite a newer one', async () => {
  const person = await harness.person('zombie', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  let wake = () => {};
  const asleep = new Promise<void>(resolve => {
    wake = resolve;
  });
  let asked = 0;
  harness.faults.on(`${SPO2}/spo2-1`, () => (++asked === 1 ? { json: spo2('2025-03-09', 'spo2-1'), after: asleep } : undefined));
  const lines = harness.lines.length;
  await person.announce({});
  await until('the first is asked for', () => asked === 1);
  person.documents.daily_spo2 = [{ ...spo2('2025-03-09', 'spo2-1'), breathing_disturbance_index: 12 }];
  await person.announce({});
  await harness.settled(lines + 1);
  wake();
  await harness.settled(lines + 2);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'unchanged' }, { outcome: 'stored' }]);
  expect(await harness.rows(`SELECT breathing_disturbance_index AS index FROM daily_spo2 WHERE user_id = 'zombie'`)).toEqual([
    { index: 12 },
  ]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('an old 404 that comes late does not remove what a newer answer brought', async () => {
  const person = await harness.person('revived', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  let wake = () => {};
  const asleep = new Promise<void>(resolve => {
    wake = resolve;
  });
  let asked = 0;
  const gone = { status: 404, json: { detail: 'Document not found.' }, after: asleep };
  harness.faults.on(`${SPO2}/spo2-1`, () => (++asked === 1 ? gone : undefined));
  const lines = harness.lines.length;
  await person.announce({ event_type: 'delete' });
  await until('the first is asked for', () => asked === 1);
  await person.announce({ event_type: 'create' });
  await harness.settled(lines + 1);
  wake();
  await harness.settled(lines + 2);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'unchanged' }, { outcome: 'stored' }]);
  expect(await harness.rows(`SELECT id FROM daily_spo2 WHERE user_id = 'revived'`)).toEqual([{ id: 'spo2-1' }]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('events of one document share a fetch that has not been sent, one that comes later has its own', async () => {
  const person = await harness.person('sharing', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  harness.faults.on(`${SPO2}/spo2-1`, async ({ token }) => {
    if (token === 'sharing-token') await released;
    return undefined;
  });
  const asked = () => harness.faults.asked.filter(({ token, path }) => token === 'sharing-token' && path === `${SPO2}/spo2-1`).length;
  // All places of the token are taken: each of these was sent before the next came.
  for (let sent = 1; sent <= 4; sent++) {
    await person.announce({});
    await until(`${sent} are asked for`, () => asked() === sent);
  }
  const lines = harness.lines.length;
  await person.announce({});
  await until('it waits for a place', async () => (await harness.queue.getActiveCount()) === 5);
  await person.announce({ event_type: 'create' });
  await until('it waits for the same', async () => (await harness.queue.getActiveCount()) === 6);
  release();
  await harness.settled(lines + 6);
  expect(asked()).toBe(5);
  expect((await person.outcomes()).map(row => (row as { outcome: string }).outcome).sort()).toEqual([
    'stored',
    'unchanged',
    'unchanged',
    'unchanged',
    'unchanged',
    'unchanged',
  ]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('an account whose answers hang keeps a few workers, and the others go on', async () => {
  const slow = await harness.person('slow', { daily_spo2: [] });
  const quick = await harness.person('quick', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  harness.faults.on(`${SPO2}/*`, async ({ token, path }) => {
    if (token !== 'slow-token') return undefined;
    await released;
    return { json: spo2('2025-03-09', path.split('/').at(-1)!) };
  });
  const lines = harness.lines.length;
  for (let i = 0; i < 16; i++) await slow.announce({ object_id: `slow-${i}` });
  await until('sixteen are worked on', async () => (await harness.queue.getActiveCount()) === 16);
  for (let i = 16; i < 19; i++) await slow.announce({ object_id: `slow-${i}` });
  expect(await quick.tell({})).toMatchObject({ user_id: 'quick', outcome: 'stored' });
  release();
  await harness.settled(lines + 20);
  expect(await harness.rows(`SELECT count(*) AS rows FROM daily_spo2 WHERE user_id = 'slow'`)).toEqual([{ rows: 19 }]);
  harness.faults.on(`${SPO2}/*`, () => undefined);
});

test('a refusal of a token that was replaced meanwhile says nothing of the new one', async () => {
  const person = await harness.person('renewed', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  harness.tokens.set('renewed', 'renewed-old');
  harness.faults.on(`${SPO2}/spo2-1`, ({ token }) => {
    if (token !== 'renewed-old') return undefined;
    harness.tokens.set('renewed', 'renewed-token');
    return { status: 401, json: { detail: 'expired' } };
  });
  expect(await person.tell({})).toMatchObject({ outcome: 'stored' });
  expect(await harness.rows(`SELECT state FROM sync.accounts WHERE user_id = 'renewed'`)).toEqual([{ state: 'active' }]);
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('a 400 right after an event removes nothing, and the range is read', async () => {
  const person = await harness.person('early', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  harness.faults.on(`${SPO2}/spo2-1`, { status: 400, json: { detail: 'not yet' } });
  expect(await person.tell({ event_type: 'delete' })).toMatchObject({ outcome: 'stored' });
  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
});

test('while nothing can be stored for want of room events are kept, and none is parked', async () => {
  const person = await harness.person('crammed', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  const before = harness.faults.asked.length;
  const lines = harness.lines.length;
  isFull = true;
  await person.announce({});
  await until('it was tried more often than other faults are', () => harness.faults.asked.length > before + 6);
  isFull = false;
  await harness.settled(lines + 1);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'stored' }]);
});

test('an event that was in work when the process ended is taken up at the next start', async () => {
  const data = join(folder, 'restarted');
  const first = await openEventHarness(folder, { data });
  const documents = { daily_spo2: [spo2('2025-03-09', 'spo2-1')] };
  first.faults.on(`${SPO2}/spo2-1`, { fault: 'hang' });
  await (await first.person('sleeper', documents)).announce({});
  await until('it is asked for', () => first.faults.asked.length === 1);
  await first.close();
  expect(first.lines).toEqual([]);
  const second = await openEventHarness(folder, { data, later: true });
  onTestFinished(() => second.close());
  const sleeper = await second.person('sleeper', documents);
  await second.start();
  await second.settled(1);
  expect(await sleeper.outcomes()).toMatchObject([{ outcome: 'stored' }]);
});

test('the n-th statement fails, for every n: a document and the row of its event are stored together, later', async () => {
  const tell = async (n: number) => {
    const user = `statement-${n}`;
    const person = await harness.person(user, { sleep: [night('sleep-1')] });
    const lines = harness.lines.length;
    const calls = failStatements(call => call === n);
    await person.announce({ data_type: 'sleep', object_id: 'sleep-1' });
    await harness.settled(lines + 1);
    vi.restoreAllMocks();
    expect(await person.outcomes(), user).toEqual([{ event_type: 'update', object_id: 'sleep-1', outcome: 'stored', reason: null }]);
    expect(await harness.rows(`SELECT count(*) AS samples FROM sleep_heart_rate WHERE user_id = '${user}'`), user).toEqual([
      { samples: 3 },
    ]);
    return calls();
  };
  // The first also prepares what the others find prepared.
  await tell(10_000);
  const count = await tell(10_001);
  for (const n of stepsOf(count, 10).filter(n => n > 1)) expect(await tell(n)).toBeGreaterThanOrEqual(n);
  expect(await findBroken(sql => harness.pipeline.warehouse.read(sql))).toEqual([]);
});

test('a job that runs twice has one row', async () => {
  const person = await harness.person('twice', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  const lines = harness.lines.length;
  const event = {
    event_type: 'create',
    data_type: 'daily_spo2',
    object_id: 'spo2-1',
    event_time: '2025-03-10T16:00:00+01:00',
    user_id: 'service-twice',
  };
  const data = { receivedAt: 1_741_620_000_000_001, event: JSON.stringify(event), misses: 0 };
  await harness.queue.add('event', data);
  await harness.settled(lines + 1);
  await harness.queue.add('event', data);
  await harness.settled(lines + 2);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'unchanged' }]);
});

test('no identifier of a document and no value has come into the log', () => {
  expect(logged).not.toMatch(/spo2-1|slow-\d/);
  expect(logged).toContain('the service refuses the account: parked');
  expect(logged).toContain('give it a new token: ringneck account add ');
});
