import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { searchAll } from '../../../src/app/erase/search-all.ts';
import { searchRedis } from '../../../src/queue/search-redis.ts';
import { EVENT_JOB_OPTIONS, eventQueue } from '../../../src/sync/events/accept-event.ts';
import { warehouseId } from '../../../src/sync/runs/runs.ts';
import type { Needle } from '../../../src/warehouse/readers/search.ts';
import { hasRedis, startRedis } from '../../queue/redis-server.ts';
import { openHarness } from '../../support/harness.ts';
import { runHere } from '../../support/run-here.ts';
import { type Sandbox, startSandbox } from '../../support/sandbox.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { withDuckDB } from '../../support/warehouse.ts';

const folder = tempFolder();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-31' });
});
afterAll(() => sandbox.close());

const eventOf = (userId: string, documentId: string) => ({
  event_type: 'create',
  data_type: 'sleep',
  object_id: documentId,
  event_time: '2025-01-02T08:00:00+01:00',
  user_id: userId,
});

interface Settings {
  queueUrl?: string;
  queuePrefix?: string;
}

/** Adds ada and adam, and accepts events of both and of somebody unknown, which nobody works off. */
async function accept(data: string, settings: Settings = {}): Promise<string> {
  const harness = await openHarness(data, sandbox.url, { settings, queue: 'embedded' });
  await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  const { queues, warehouse } = await harness.app.pipeline();
  const [ada, adam] = sandbox.people;
  const events = [eventOf(ada!.userId, 'hers-1'), eventOf(adam!.userId, 'his'), eventOf(ada!.userId, 'hers-2'), eventOf('x', 'theirs')];
  const jobs = events.map((event, i) => ({
    name: 'event',
    data: { receivedAt: 1_736_000_000_000_000 + i, event: JSON.stringify(event), misses: i },
    opts: i === 1 ? { ...EVENT_JOB_OPTIONS, delay: 3_600_000 } : EVENT_JOB_OPTIONS,
  }));
  await queues.addAll(await eventQueue(warehouse), jobs);
  const id = await warehouseId(warehouse);
  await harness.close();
  return id;
}

/** The accepted events that wait: when each was received, and of what. */
async function held(data: string, settings: Settings = {}): Promise<unknown[]> {
  const harness = await openHarness(data, sandbox.url, { settings });
  const inbox = await harness.app.inbox();
  const kept = inbox.keys().map(key => [Number(key) - 1_736_000_000_000_000, JSON.parse(inbox.find(key)!).object_id]);
  await harness.close();
  return kept.toSorted();
}

const OTHERS = [
  [1, 'his'],
  [3, 'theirs'],
];

/** Adds ada and adam, and accepts events of both and of somebody unknown, one of them worked off. */
async function acceptInInbox(data: string): Promise<void> {
  const harness = await openHarness(data, sandbox.url);
  await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  const [ada, adam] = sandbox.people;
  const inbox = await harness.app.inbox();
  const events = [eventOf(ada!.userId, 'hers-1'), eventOf(adam!.userId, 'his'), eventOf(ada!.userId, 'hers-2'), eventOf('x', 'theirs')];
  for (const [i, event] of events.entries()) await inbox.append(String(1_736_000_000_000_000 + i), JSON.stringify(event));
  const key = { received_at: 1_736_000_000_000_002 };
  await harness.app.warehouse.record([{ table: 'sync.events', key, row: { user_id: 'ada', object_id: 'hers-2', outcome: 'stored' } }]);
  await harness.close();
}

test('no byte of the person’s events stays in the inbox, worked off or not; those of others stay', async () => {
  const data = join(folder, 'inbox');
  await acceptInInbox(data);
  const bytes = () =>
    readdirSync(join(data, 'inbox'))
      .map(name => readFileSync(join(data, 'inbox', name), 'utf8'))
      .join('');
  expect(bytes()).toContain('hers-2');
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url };
  const { code, stdout } = await runHere(['account', 'remove', 'ada', '--erase', '--yes', '--json'], { env });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ events: 1, found: [], unsearched: [] });
  expect(bytes()).not.toContain(sandbox.people[0]!.userId);
  expect(bytes()).not.toContain('hers');
  expect(await held(data)).toEqual(OTHERS);
});

test('what is left of the person in the inbox is found there', async () => {
  const data = join(folder, 'found');
  await acceptInInbox(data);
  const word: Needle = { what: 'service id', text: sandbox.people[0]!.userId };
  // An account may be called as a word of every event.
  const order = { data, snapshot: join(data, 'snapshot.duckdb'), dated: join(data, 'snapshots'), redis: null };
  const { found } = await searchAll({ ...order, words: [word, { what: 'name', text: 'event_type' }] });
  const inbox = found.filter(({ file }) => file.startsWith(join(data, 'inbox')));
  expect(inbox).toEqual([{ file: join(data, 'inbox/0000000001.journal'), where: null, what: 'service id' }]);
});

test('events that a version without an inbox left in the queue: those of others outlive the erasing, those of the person do not', async () => {
  const data = join(folder, 'embedded');
  const settings = { queuePrefix: 'ours' };
  await accept(data, settings);
  // A queue that was kept aside when it was broken.
  mkdirSync(join(data, 'queue/database.broken-2025-01-01T10-20-30.123Z'));
  writeFileSync(join(data, 'queue/database.broken-2025-01-01T10-20-30.123Z/1234'), sandbox.people[0]!.userId);
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_QUEUE_PREFIX: 'ours' };
  const { code, stdout } = await runHere(['account', 'remove', 'ada', '--erase', '--yes', '--json'], { env });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ events: 2, found: [], unsearched: [] });
  expect(await held(data, settings)).toEqual(OTHERS);
});

test('where it cannot be done all events wait as before', async () => {
  const data = join(folder, 'failed');
  await accept(data);
  // Somebody's own table whose rows need those of the person.
  await withDuckDB(join(data, 'warehouse.duckdb'), async connection => {
    await connection.run('CREATE TABLE own (user_id VARCHAR PRIMARY KEY); CREATE TABLE beside (owner VARCHAR REFERENCES own (user_id))');
    await connection.run(`INSERT INTO own VALUES ('ada'); INSERT INTO beside VALUES ('ada')`);
  });
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url };
  expect(await runHere(['account', 'remove', 'ada', '--erase', '--yes'], { env })).toMatchObject({ code: 1, stdout: '' });
  expect(existsSync(join(data, 'erasing.json'))).toBe(false);
  expect(await held(data)).toEqual([
    [0, 'hers-1'],
    [1, 'his'],
    [2, 'hers-2'],
    [3, 'theirs'],
  ]);
});

test.runIf(hasRedis)('the queues of this warehouse in a Redis are searched and emptied, another one’s are not', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const data = join(folder, 'redis');
  const beside = join(folder, 'beside');
  const settings = { queueUrl: redis.url };
  const id = await accept(data, settings);
  const otherId = await accept(beside, settings);
  const [{ userId }] = sandbox.people as [Sandbox['people'][number]];
  const words: Needle[] = [{ what: 'service id', text: userId }];
  const find = (warehouseId: string, what = words) => searchRedis({ url: redis.url, address: '', prefix: 'ringneck', warehouseId }, what);
  // What every job has, and what one is of: names of accounts too.
  const names: Needle[] = ['event', 'data', 'ada'].map(text => ({ what: 'name', text }));
  expect(await find(id, names)).toEqual([]);
  const client = new Redis(redis.url);
  const job = `ringneck:collect-${id}:run-1-1`;
  await client.hset(job, { name: 'sleep', data: JSON.stringify({ runId: 'run', userId: 'ada', collection: 'data' }) });
  expect(await find(id, names)).toEqual([{ what: 'name', where: `the queue collect-${id}` }]);
  await client.del(job);
  client.disconnect();
  expect(await find(id)).toEqual([{ what: 'service id', where: `the queue events-${id}` }]);

  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_QUEUE_URL: redis.url };
  const { code, stdout } = await runHere(['account', 'remove', 'ada', '--erase', '--yes', '--json'], { env });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ events: 2, found: [], unsearched: [] });
  expect(await find(id)).toEqual([]);
  expect(await find(otherId)).toEqual([{ what: 'service id', where: `the queue events-${otherId}` }]);
  expect(await held(data, settings)).toEqual(OTHERS);

  await redis.kill();
  const later = await runHere(['account', 'remove', 'adam', '--erase', '--yes'], { env });
  expect(later).toMatchObject({ code: 75, stderr: expect.stringMatching(/^ringneck: Redis at 127\.0\.0\.1:\d+ gives no answer/) });
  // Not begun: nothing is in the way of others.
  expect(existsSync(join(data, 'erasing.json'))).toBe(false);
});
