import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { EVENT_JOB_OPTIONS } from '../../../src/sync/events/accept-event.ts';
import { hasRedis, type RedisServer, startRedis } from '../../queue/redis-server.ts';
import { spo2 } from '../../service/documents.ts';
import { type EventHarness, type EventHarnessOptions, openEventHarness } from '../../support/event-harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const DOCUMENT = '/v2/usercollection/daily_spo2/*';
const RANGE = '/v2/usercollection/daily_spo2';
const QUICK = { checkMs: 200, againMs: 50, delays: { failed: Array<number>(60).fill(1_000) } };
const IDS = ['spo2-1', 'spo2-2', 'spo2-3'];

/** A harness with a person of three documents; each `open` is a start of the process over the same data folder. */
function setUp(queueUrl?: string) {
  const data = join(folder, randomUUID());
  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(line) } });
  return {
    data,
    said: () => lines.map(line => (JSON.parse(line) as { msg: string }).msg),
    async open({ later = false, ...options }: EventHarnessOptions = {}) {
      const harness = await openEventHarness(folder, {
        data,
        log,
        ...QUICK,
        ...(queueUrl ? { queueUrl } : {}),
        ...options,
        later: true,
      });
      let closing: Promise<void> | undefined;
      const close = () => {
        closing ??= harness.close();
        return closing;
      };
      onTestFinished(close);
      const ada = await harness.person('ada', { daily_spo2: IDS.map((id, i) => spo2(`2025-03-0${i + 7}`, id)) });
      // What waits since the start before would else be taken up while she has no token yet.
      if (!later) await harness.start();
      return { harness, ada, close };
    },
  };
}

/** Nothing of the person is answered: what is accepted waits. */
function hold({ faults }: EventHarness): void {
  for (const path of [DOCUMENT, RANGE]) faults.on(path, { status: 503, json: { detail: 'later' } });
}

function letGo({ faults }: EventHarness): void {
  for (const path of [DOCUMENT, RANGE]) faults.on(path, () => undefined);
}

async function startOwn(...settings: string[]): Promise<RedisServer & { client: Redis }> {
  const redis = await startRedis(...settings);
  const client = new Redis(redis.url, { maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  onTestFinished(async () => {
    client.disconnect();
    await redis.remove();
  });
  return Object.assign(redis, { client });
}

const outcomes = (harness: EventHarness) => harness.rows('SELECT object_id, outcome FROM sync.events ORDER BY object_id');
const STORED = IDS.map(object_id => ({ object_id, outcome: 'stored' }));

describe.skipIf(!hasRedis)('events that were answered 2xx outlive a Redis', () => {
  test('that was emptied while nobody was there', async () => {
    const redis = await startOwn();
    const { open } = setUp(redis.url);
    const first = await open();
    hold(first.harness);
    for (const object_id of IDS) await first.ada.announce({ object_id });
    await until('they wait in the queue', async () => (await first.harness.queue.getDelayedCount()) === 3);
    await first.close();
    await redis.client.flushall();
    const { harness } = await open();
    await harness.settled(3);
    expect(await outcomes(harness)).toEqual(STORED);
  });

  test('that is emptied while they wait', async () => {
    const redis = await startOwn();
    const { open, said } = setUp(redis.url);
    const { harness, ada } = await open();
    hold(harness);
    for (const object_id of IDS) await ada.announce({ object_id });
    await until('they wait in the queue', async () => (await harness.queue.getDelayedCount()) === 3);
    letGo(harness);
    await redis.client.flushall();
    await harness.settled(3);
    expect(await outcomes(harness)).toEqual(STORED);
    expect(said().filter(line => line.includes('lost'))).toEqual([
      'the queue has lost what it held: what is not finished is enqueued again',
    ]);
  });

  test('that has dropped halves of them', async () => {
    const redis = await startOwn();
    const { open } = setUp(redis.url);
    const { harness, ada } = await open();
    hold(harness);
    for (const object_id of IDS) await ada.announce({ object_id });
    await until('they wait in the queue', async () => (await harness.queue.getDelayedCount()) === 3);
    letGo(harness);
    // The data of one, and the place of another.
    const [delayed] = await redis.client.keys('*:events-*:delayed');
    const [first, second] = await redis.client.zrange(delayed!, 0, '-1');
    await redis.client.del(`${delayed!.slice(0, -'delayed'.length)}${first}`);
    await redis.client.zrem(delayed!, second!);
    await harness.settled(3);
    expect(await outcomes(harness)).toEqual(STORED);
  });

  test('that is back from an older dump', async () => {
    const redis = await startOwn('--appendonly', 'no');
    const { open } = setUp(redis.url);
    const { harness, ada } = await open();
    hold(harness);
    await ada.announce({ object_id: IDS[0]! });
    await until('one waits in the queue', async () => (await harness.queue.getDelayedCount()) === 1);
    await redis.client.save();
    for (const object_id of IDS.slice(1)) await ada.announce({ object_id });
    await until('all wait in the queue', async () => (await harness.queue.getDelayedCount()) === 3);
    letGo(harness);
    await redis.kill();
    await redis.start();
    await harness.settled(3);
    expect(await outcomes(harness)).toEqual(STORED);
  });

  test('that another takes the place of', async () => {
    const [redis, other] = [await startOwn(), await startOwn()];
    const { open } = setUp(redis.url);
    const { harness, ada } = await open();
    hold(harness);
    await ada.announce({ object_id: IDS[0]! });
    await until('one waits in the queue', async () => (await harness.queue.getDelayedCount()) === 1);
    await other.client.replicaof('127.0.0.1', redis.port);
    await until('it has followed', async () => (await other.client.info('replication')).includes('master_link_status:up'));
    // What comes now the other one does not get any more.
    await other.client.replicaof('NO', 'ONE');
    for (const object_id of IDS.slice(1)) await ada.announce({ object_id });
    await until('all wait in the queue', async () => (await harness.queue.getDelayedCount()) === 3);
    letGo(harness);
    // The old one comes back as a copy of the new one, and is then made the one that writes again.
    await redis.client.replicaof('127.0.0.1', other.port);
    await until('it has followed', async () => (await redis.client.info('replication')).includes('master_link_status:up'));
    await redis.client.replicaof('NO', 'ONE');
    await harness.settled(3);
    expect(await outcomes(harness)).toEqual(STORED);
  });

  test.each([
    ['read-only', ['replicaof', '127.0.0.1', '1'], ['replicaof', 'NO', 'ONE']],
    ['full', ['config', 'set', 'maxmemory', '1'], ['config', 'set', 'maxmemory', '0']],
    ['without its replicas', ['config', 'set', 'min-replicas-to-write', '1'], ['config', 'set', 'min-replicas-to-write', '0']],
  ])('that is %s: they are accepted at once, wait, and that is said once', async (_, breaks, fixes) => {
    const redis = await startOwn();
    const { open, said } = setUp(redis.url);
    const { harness, ada } = await open();
    await redis.client.call(breaks[0]!, ...breaks.slice(1));
    for (const object_id of IDS) await ada.announce({ object_id });
    await until('it is told', () => said().some(line => line.includes('the queue takes no work')));
    await new Promise(resolve => setTimeout(resolve, 500));
    expect(harness.lines).toEqual([]);
    await redis.client.call(fixes[0]!, ...fixes.slice(1));
    await harness.settled(3);
    expect(await outcomes(harness)).toEqual(STORED);
    expect(said().filter(line => line.includes('the queue takes'))).toEqual([
      'the queue takes no work: what was accepted is kept and waits for it',
      'the queue takes work again',
    ]);
  });

  test('that is away: they are accepted at once and wait for it', async () => {
    const redis = await startOwn();
    const { open } = setUp(redis.url);
    const { harness, ada } = await open();
    await redis.kill();
    const started = performance.now();
    for (const object_id of IDS) await ada.announce({ object_id });
    expect(performance.now() - started).toBeLessThan(1_000);
    await redis.start();
    await harness.settled(3);
    expect(await outcomes(harness)).toEqual(STORED);
  });
});

test('events outlive an embedded queue that was lost', async () => {
  const { open, data } = setUp();
  const first = await open();
  hold(first.harness);
  for (const object_id of IDS) await first.ada.announce({ object_id });
  await until('they wait in the queue', async () => (await first.harness.queue.getDelayedCount()) === 3);
  await first.close();
  rmSync(join(data, 'queue/database/PG_VERSION'));
  const { harness } = await open();
  await harness.settled(3);
  expect(await outcomes(harness)).toEqual(STORED);
});

test('an event leaves the inbox with its outcome, and is worked off once however often it is enqueued', async () => {
  const { open, data } = setUp();
  const first = await open({ later: true });
  for (const object_id of IDS) await first.ada.announce({ object_id });
  expect(first.harness.pipeline.inbox.size).toBe(3);
  await first.close();
  // As a process that was killed before it could tell the inbox.
  const before = `${data}.inbox`;
  cpSync(join(data, 'inbox'), before, { recursive: true });

  const second = await open();
  await second.harness.settled(3);
  expect(second.harness.pipeline.inbox.size).toBe(0);
  const noted = await second.harness.rows('SELECT * FROM sync.events ORDER BY received_at');
  await second.close();
  expect(readdirSync(join(data, 'inbox'))).toEqual([]);

  cpSync(before, join(data, 'inbox'), { recursive: true });
  const { harness } = await open();
  expect(harness.pipeline.inbox.size).toBe(0);
  // As out of a dump: the ledger has its outcome.
  const receivedAt = Math.floor(Date.parse('2025-03-10T15:30:00Z') * 1000);
  const opts = { ...EVENT_JOB_OPTIONS, jobId: `inbox-${receivedAt}` };
  const asked = harness.faults.asked.length;
  await harness.queue.add('event', { receivedAt, event: JSON.stringify({ user_id: 'x' }), misses: 0 }, opts);
  await until('the queue is empty', async () => (await harness.pipeline.queues.counts(harness.queue.name)).waiting === 0);
  await until('nobody works', async () => (await harness.pipeline.queues.counts(harness.queue.name)).active === 0);
  expect(harness.faults.asked.length).toBe(asked);
  expect(await harness.rows('SELECT * FROM sync.events ORDER BY received_at')).toEqual(noted);
  expect(existsSync(join(data, 'inbox'))).toBe(true);
});

test('events that a version without an inbox left in the queue are worked off', async () => {
  const { open } = setUp();
  const { harness, ada } = await open({ later: true });
  const events = IDS.map((object_id, i) => ({
    name: 'event',
    data: {
      receivedAt: 1_741_000_000_000_000 + i,
      event: JSON.stringify({
        event_type: 'update',
        data_type: 'daily_spo2',
        object_id,
        event_time: '2025-03-10T16:00:00+01:00',
        user_id: `service-${ada.name}`,
      }),
      misses: 0,
    },
    opts: EVENT_JOB_OPTIONS,
  }));
  await harness.pipeline.queues.addAll(harness.queue.name, events);
  await harness.start();
  // From now on they are no longer in a queue alone that may be lost.
  expect(harness.pipeline.inbox.size + (await outcomes(harness)).length).toBeGreaterThanOrEqual(3);
  await harness.settled(3);
  expect(await outcomes(harness)).toEqual(STORED);
});

test('each event has a moment of its own, also after the clock was set back', async () => {
  const { open } = setUp();
  const { harness, ada, close } = await open({ later: true });
  await Promise.all(Array.from({ length: 5 }, () => ada.announce({})));
  const [first] = harness.pipeline.inbox.keys();
  await harness.pipeline.inbox.append(String(Number(first) + 1_000_000), 'x');
  await close();
  const again = await open({ later: true });
  await again.ada.announce({});
  expect(again.harness.pipeline.inbox.keys().map(key => Number(key) - Number(first))).toEqual([0, 1, 2, 3, 4, 1_000_000, 1_000_001]);
});
