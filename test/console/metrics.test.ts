import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MOST_NAMED } from '../../src/app/metrics-commands.ts';
import { accountEntry } from '../../src/ledger/accounts.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { openHarness } from '../support/harness.ts';
import { startLiteralService } from '../support/literal-service.ts';
import { night } from '../support/nights.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const TOKEN = 'a-token-of-the-scraper';
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

async function openHere(name: string, settings: { consoleUrl?: string; metricsToken?: string } = { metricsToken: TOKEN }) {
  const service = await startLiteralService('sleep');
  onTestFinished(() => service.close());
  service.documents.set('sleep', [night('s-1', '2025-03-08'), night('s-2', '2025-03-09')]);
  const data = join(folder, name);
  const harness = await openHarness(data, service.url);
  const served = await openConsoleHere(data, { commands: harness.commands, settings });
  const scrape = async () => String((await served.send('GET', '/metrics', bearer(TOKEN))).body);
  return { service, harness, served, scrape };
}

/** The lines of some metrics, without those that say what they are. */
const linesOf = (text: string, ...names: string[]) =>
  text.split('\n').filter(line => names.some(name => line.startsWith(`${name}{`) || line.startsWith(`${name} `)));

test('what was read, stored and refused is counted', async () => {
  const { harness, scrape } = await openHere('counted');
  await harness.keep([{ name: 'ada', token: 'a' }]);
  await harness.app.warehouse.record([
    accountEntry({ userId: 'ben', serviceUserId: null, state: 'parked', reason: 'forbidden', since: harness.app.warehouse.clock.next() }),
  ]);
  const before = Date.now() / 1000;
  await harness.backfill({ users: ['ada'], collections: ['sleep'], from: '2025-03-08', to: '2025-03-09' });
  harness.app.recentEvents.add({ ...EVENT, outcome: 'stored', ms: 400 });
  harness.app.recentEvents.add({ ...EVENT, outcome: 'stored', ms: 7_000 });
  harness.app.recentEvents.add({ ...EVENT, outcome: 'parked', ms: 90_000_000 });
  harness.app.refusals = () => ({ signature: 3 });
  const text = await scrape();
  expect(
    linesOf(text, 'ringneck_accounts', 'ringneck_accounts_unlisted', 'ringneck_events_refused_total', 'ringneck_inbox_events'),
  ).toEqual([
    'ringneck_accounts{state="active"} 1',
    'ringneck_accounts{state="paused"} 0',
    'ringneck_accounts{state="parked"} 1',
    'ringneck_accounts_unlisted 0',
    'ringneck_events_refused_total{reason="signature"} 3',
    'ringneck_inbox_events 0',
  ]);
  expect(linesOf(text, 'ringneck_events_total')).toEqual([
    'ringneck_events_total{outcome="stored"} 2',
    'ringneck_events_total{outcome="unchanged"} 0',
    'ringneck_events_total{outcome="removed"} 0',
    'ringneck_events_total{outcome="parked"} 1',
    'ringneck_events_total{outcome="unknown_user"} 0',
    'ringneck_events_total{outcome="unknown_type"} 0',
  ]);
  expect(linesOf(text, 'ringneck_event_lag_seconds_bucket', 'ringneck_event_lag_seconds_sum', 'ringneck_event_lag_seconds_count')).toEqual([
    ...['0.1', '0.25'].map(le => `ringneck_event_lag_seconds_bucket{le="${le}"} 0`),
    ...['0.5', '1', '2.5', '5'].map(le => `ringneck_event_lag_seconds_bucket{le="${le}"} 1`),
    ...['10', '30', '60', '300', '1800', '7200', '21600', '+Inf'].map(le => `ringneck_event_lag_seconds_bucket{le="${le}"} 2`),
    'ringneck_event_lag_seconds_sum 7.4',
    'ringneck_event_lag_seconds_count 2',
  ]);
  const answered = harness.app.warehouse.writing;
  expect(answered.bulk.groups.count).toBeGreaterThan(0);
  expect(text).toContain(`ringneck_writer_group_seconds_count{lane="bulk"} ${answered.bulk.groups.count}`);
  const [read = ''] = linesOf(text, 'ringneck_account_read_timestamp_seconds');
  expect(read).toMatch(/^ringneck_account_read_timestamp_seconds\{account="ada"\} /);
  expect(Number(read.split(' ')[1])).toBeGreaterThan(before - 1);
  expect(Number(/ringneck_service_requests_total\{answer="2xx"\} (\d+)/.exec(text)![1])).toBeGreaterThan(0);
  expect(text).toMatch(/^ringneck_build_info\{version="[\d.]+",duckdb="\d+\.\d+\.\d+",node="\d+\.\d+\.\d+"\} 1$/m);
});

const EVENT = { at: '2025-06-01T00:00:00Z', event_type: 'create', data_type: 'sleep', user_id: 'ada', object_id: 'x' };

test('only a nightly run in which nothing failed is a success', async () => {
  const { harness, service, scrape } = await openHere('nightly');
  await harness.keep([{ name: 'ada', token: 'a' }]);
  expect(linesOf(await scrape(), 'ringneck_nightly_last_success_timestamp_seconds')).toEqual([]);
  service.on('/v2/usercollection/sleep', () => ({ status: 400, json: { detail: 'no' } }));
  await harness.nightly(2);
  expect(linesOf(await scrape(), 'ringneck_nightly_last_success_timestamp_seconds')).toEqual([]);
  await harness.app.warehouse.record([
    {
      table: 'sync.runs',
      key: { run_id: 'by-hand' },
      row: { kind: 'nightly', started_at: 1_748_736_000_000_000, ended_at: 1_748_736_060_000_000, state: 'complete', request: '{}' },
    },
  ]);
  expect(linesOf(await scrape(), 'ringneck_nightly_last_success_timestamp_seconds')).toEqual([
    'ringneck_nightly_last_success_timestamp_seconds 1748736060',
  ]);
});

test('of thousands of accounts those furthest behind are named, and the others counted', async () => {
  const { harness, scrape } = await openHere('thousands');
  const people = Array.from({ length: MOST_NAMED + 5 }, (_, index) => `p${String(index).padStart(4, '0')}`);
  const entries = people.map((userId, index) =>
    accountEntry({ userId, serviceUserId: null, state: 'active', reason: null, since: 1_748_736_000_000_000 - index * 1_000_000 }),
  );
  await harness.app.warehouse.record(entries);
  const text = await scrape();
  const named = linesOf(text, 'ringneck_account_read_timestamp_seconds');
  expect([named.length, named[0], named.at(-1)]).toEqual([
    1_000,
    'ringneck_account_read_timestamp_seconds{account="p1004"} 1748734996',
    'ringneck_account_read_timestamp_seconds{account="p0005"} 1748735995',
  ]);
  expect(text).toContain('ringneck_accounts_unlisted 5');
});

test('metrics are for who has the token, or an operator’s session', async () => {
  const { served } = await openHere('doors');
  const statusOf = async (headers: Record<string, string>) => (await served.send('GET', '/metrics', { headers })).status;
  const operator = await served.enter();
  const reader = await served.enter({ role: 'reader' });
  const person = await served.enter({ role: 'person', person: 'ada' });
  expect(await statusOf({ authorization: `Bearer ${TOKEN}` })).toBe(200);
  expect(await statusOf({ cookie: operator.cookie })).toBe(200);
  expect(await statusOf({ cookie: reader.cookie })).toBe(403);
  expect(await statusOf({ cookie: person.cookie })).toBe(403);
  expect(await statusOf({})).toBe(401);
  expect(await statusOf({ authorization: `Bearer ${TOKEN}x` })).toBe(401);
  expect(await statusOf({ authorization: `Basic ${TOKEN}` })).toBe(401);
  expect(await statusOf({ authorization: 'Bearer wrong', cookie: operator.cookie })).toBe(401);
  const answer = await served.send('GET', '/metrics', bearer(TOKEN));
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect((await served.send('GET', '/metrics')).headers.get('www-authenticate')).toBe('Bearer');
  expect((await served.send('POST', '/metrics', bearer(TOKEN))).status).toBe(404);
});

test('where no token is set none opens the metrics', async () => {
  const { served } = await openHere('no-token', {});
  for (const token of ['undefined', '', TOKEN]) expect((await served.send('GET', '/metrics', bearer(token))).status).toBe(401);
});

test('a scraper comes by the outside address too, with the path in front or without', async () => {
  const { served } = await openHere('prefix', { metricsToken: TOKEN, consoleUrl: 'https://study.example.org/ring' });
  expect((await served.send('GET', '/ring/metrics', bearer(TOKEN))).status).toBe(200);
  expect((await served.send('GET', '/metrics', bearer(TOKEN))).status).toBe(200);
});

test('while ringneck up does not run there is nothing to measure', async () => {
  const served = await openConsoleHere(join(folder, 'alone'), { settings: { metricsToken: TOKEN } });
  const answer = await served.send('GET', '/metrics', bearer(TOKEN));
  expect([answer.status, answer.body.error.message]).toEqual([503, 'ringneck up does not run: there is nothing to measure.']);
});
