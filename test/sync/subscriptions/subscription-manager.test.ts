import { beforeEach, expect, test } from 'vitest';
import type { WebhookSettings } from '../../../src/base/config.ts';
import { createLog } from '../../../src/base/log.ts';
import { readDesired } from '../../../src/ledger/subscriptions.ts';
import { concealQuery } from '../../../src/sync/subscriptions/callback-url.ts';
import { reportSubscriptions, reportWebhooks } from '../../../src/sync/webhook-status.ts';
import { SUBSCRIPTIONS } from '../../support/declared.ts';
import { CLIENT, invalid, startSubscriptionService } from '../../support/literal-subscriptions.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { CALLBACK, CONCEALED, rowOf, START, set, startAfresh, states, told, warehouse } from './kept-subscriptions.ts';

const folder = tempFolder();
beforeEach(() => startAfresh(folder));

test('removing cancels what goes to our callback, and nothing is made again until it is wanted', async () => {
  const { service, start, manager, timers } = await set();
  await start();
  const other = { callback_url: 'https://other.example.org/', data_type: 'tag', expiration_time: '2025-08-30T00:00:00Z' };
  service.subscriptions.push({ ...other, id: '11111111-2222-4333-8444-555555555555', event_type: 'create' });
  expect(await manager.remove({ onNextEvent: false })).toEqual({ removed: 6, failed: [], listed: true });
  expect(told(service)).toEqual(['create tag']);
  expect(await states()).toEqual([{ state: 'removed', n: 6 }]);
  expect(timers.at(-1)!.cleared).toBe(true);

  const later = await set({}, service);
  later.manager.start();
  expect([later.manager.started, later.manager.isGone(), later.timers]).toEqual([true, false, []]);
  expect((await later.manager.ensure()).rows.map(({ state }) => state)).toEqual(Array(6).fill('active'));
  expect(later.timers).toHaveLength(1);
  expect((await readDesired(warehouse)).desired).toBe('ensured');
});

test('one that goes to another callback by now is left there, and is no longer told as active', async () => {
  const { service, start, manager } = await set();
  await start();
  const one = service.subscriptions.find(({ event_type, data_type }) => event_type === 'create' && data_type === 'sleep')!;
  one.callback_url = 'https://other.example.org/';
  service.subscriptions = service.subscriptions.filter(({ event_type, data_type }) => event_type !== 'delete' || data_type !== 'sleep');
  expect(await manager.remove({ onNextEvent: false })).toEqual({ removed: 4, failed: [], listed: true });
  expect(told(service)).toEqual(['create sleep']);
  expect(await rowOf('create', 'sleep')).toMatchObject({
    id: null,
    state: 'removed',
    reason: 'it goes to another callback by now: left to that',
  });
  expect(await rowOf('delete', 'sleep')).toMatchObject({ state: 'removed', reason: 'removed by command' });
  expect(await states()).toEqual([{ state: 'removed', n: 6 }]);
});

test('without a list those that we know are removed; what fails is told and stays', async () => {
  const service = await startSubscriptionService();
  service.offersList = false;
  const { start, manager } = await set({}, service);
  await start();
  const { id } = service.subscriptions.find(one => one.event_type === 'create' && one.data_type === 'sleep')!;
  service.instead = ({ method, path }) => (method === 'DELETE' && path.endsWith(id) ? { status: 500, json: {} } : undefined);
  expect(await manager.remove({ onNextEvent: false })).toEqual({
    removed: 5,
    failed: [{ eventType: 'create', dataType: 'sleep', reason: 'DELETE /v2/webhook/subscription/{id}: answered 500' }],
    listed: false,
  });
  expect(await rowOf('create', 'sleep')).toMatchObject({ id, state: 'active' });
});

test('on the next event: nothing is asked, each is removed when its event was answered 410', async () => {
  const { service, start, manager } = await set();
  await start();
  const asked = service.asked.length;
  expect(manager.isGone()).toBe(false);
  manager.noteGone({ event_type: 'create', data_type: 'sleep' });
  await manager.remove({ onNextEvent: true });
  expect([manager.isGone(), service.asked.length]).toEqual([true, asked]);
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
  for (let n = 0; n < 3; n++) manager.noteGone({ event_type: 'create', data_type: 'sleep' });
  await until('it is noted', async () => (await rowOf('create', 'sleep'))!.state === 'removed');
  expect(await rowOf('create', 'sleep')).toMatchObject({ id: null, state: 'removed', reason: 'its next event was answered 410' });
  expect((await set({}, service)).manager.isGone()).toBe(true);
  await manager.ensure();
  expect(manager.isGone()).toBe(false);
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
});

test('what the service refuses to all is thrown with what to do about it', async () => {
  const { service, manager } = await set();
  service.instead = () => ({ status: 403, json: { detail: 'No.' } });
  await expect(manager.ensure()).rejects.toMatchObject({ exitCode: 1, message: expect.stringContaining('check RINGNECK_CLIENT_ID') });
  service.instead = () => ({ status: 503, json: {} });
  await expect(manager.list()).rejects.toMatchObject({ exitCode: 75 });
});

test('closing in the middle of a round keeps what was made', async () => {
  const service = await startSubscriptionService();
  service.instead = ({ method, body }) => (method === 'POST' && body.includes('"session"') ? 'hang' : undefined);
  const { manager } = await set({}, service);
  manager.start();
  while (service.asked.filter(({ body }) => body.includes('"session"')).length < 3) await new Promise(resolve => setImmediate(resolve));
  await manager.close();
  expect(await states()).toEqual([{ state: 'active', n: 3 }]);
});

test('status counts the events of a day by outcome, and hides the callback’s query', async () => {
  const settings = { webhooks: { ...CLIENT, callbackUrl: CALLBACK, secrets: [CLIENT.clientSecret] } satisfies WebhookSettings };
  const micros = (text: string) => Date.parse(text) * 1000;
  const event = (at: string, outcome: string, settledAt?: string) => ({
    table: 'sync.events',
    row: { received_at: micros(at), outcome, settled_at: settledAt === undefined ? null : micros(settledAt) },
  });
  const missed = (at: string | null) => ({ table: 'sync.missed_events', row: { missed_at: at === null ? null : micros(at) } });
  await warehouse.record([
    event('2025-05-30T23:59:00Z', 'stored'),
    event('2025-05-31T10:00:00Z', 'stored'),
    event('2025-05-31T11:00:00Z', 'stored'),
    event('2025-05-31T12:00:00Z', 'parked'),
    // Accepted while the order was ahead of the clock; settled days ago, and by a clock that was wrong.
    event('2025-07-31T12:00:00Z', 'unchanged', '2025-05-29T12:00:00Z'),
    event('2025-07-31T12:00:01Z', 'removed', '2025-07-31T12:00:01Z'),
    missed('2025-05-31T12:00:00Z'),
    missed('2025-05-29T12:00:00Z'),
    missed(null),
  ]);
  const report = await reportWebhooks(warehouse, settings, () => START, { refused: { bad_signature: 3 }, waiting: 1 });
  expect(report).toEqual({
    callback_url: 'https://example.org/webhook',
    subscriptions: 'ensured',
    active: 0,
    wanted: SUBSCRIPTIONS,
    problem: null,
    problems: [],
    waiting: 1,
    last_event_at: '2025-05-31T12:00:00.000Z',
    events_24h: { parked: 1, stored: 2 },
    missed_24h: 1,
    unknown_users: [],
    refused: { bad_signature: 3 },
  });
  expect(await reportWebhooks(warehouse, { webhooks: null }, () => START)).toBeNull();
});

test('the list joins ours with what only the service has', async () => {
  const { service, start, manager } = await set();
  await start();
  service.subscriptions = service.subscriptions.filter(one => one.data_type !== 'session');
  const other = { callback_url: 'https://other.example.org/?k=1', data_type: 'tag', expiration_time: '2025-08-30T00:00:00Z' };
  service.subscriptions.push({ ...other, id: '11111111-2222-4333-8444-555555555555', event_type: 'create' });
  const { remote, rows: known } = await manager.list();
  const list = reportSubscriptions(known, remote);
  expect(list.map(({ data_type, event_type, state, at_service }) => [data_type, event_type, state, at_service])).toEqual([
    ['session', 'create', 'active', false],
    ['session', 'delete', 'active', false],
    ['session', 'update', 'active', false],
    ['sleep', 'create', 'active', true],
    ['sleep', 'delete', 'active', true],
    ['sleep', 'update', 'active', true],
    ['tag', 'create', 'unknown', true],
  ]);
  expect(list.at(-1)).toMatchObject({
    callback_url: 'https://other.example.org/',
    expiration_time: '2025-08-30T00:00:00.000Z',
    since: null,
  });
  expect(JSON.stringify(list)).not.toContain('not-for-logs');
});

test('an address without a query is kept as it is', () => {
  expect(concealQuery('https://example.org/webhook')).toBe('https://example.org/webhook');
  expect(concealQuery(CALLBACK)).toBe(CONCEALED);
});

test('that the subscriptions are kept is said where they are, and not of those that the service refused', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(JSON.parse(line)) } });
  const said = () => lines.splice(0).flatMap(({ msg, active, desired }) => (desired === undefined ? [] : [[msg, active, desired]]));
  const service = await startSubscriptionService();
  service.instead = ({ method }) => (method === 'POST' ? invalid('callback_url', 'no answer') : undefined);
  const { start, nextRound } = await set({ log }, service);
  await start();
  expect(said()).toEqual([['subscriptions are missing; tried again', 0, 6]]);
  await nextRound();
  expect(said()).toEqual([]);

  service.instead = ({ method, body }) => (method === 'POST' && body.includes('"session"') ? { status: 500, json: {} } : undefined);
  await nextRound();
  expect(said()).toEqual([['subscriptions are missing; tried again', 3, 6]]);
  service.instead = ({ method, body }) => (method === 'POST' && body.includes('"session"') ? invalid('data_type', 'unknown') : undefined);
  await nextRound();
  expect(said()).toEqual([['the subscriptions are kept', 3, 3]]);
});
