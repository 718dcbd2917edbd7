import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Job } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAccept, type EventJob, eventQueue } from '../../jobs/accept-event.ts';
import { collectQueue } from '../../jobs/runs.ts';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { silentLog } from '../../src/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import { type NewJob, type Queues, QueueUnavailable } from '../../src/queue/queues.ts';
import { openReceiver } from '../../src/receiver/receiver.ts';
import { Moments } from '../../src/warehouse/moments.ts';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { signed } from '../receiver/signed.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { NOW, newPath, openWarehouse } from '../support/warehouse.ts';

const QUEUE = 'events-test';
const folder = tempFolder();

const event = (id: string): WebhookEvent => ({
  event_type: 'update',
  data_type: 'sleep',
  object_id: id,
  event_time: '2025-05-31T23:59:30+00:00',
  user_id: 'c6b1c8a4',
});

const warehouseAt = (ms: number) => ({ moments: new Moments(0, () => ms) });

async function open(url?: string): Promise<Queues> {
  const own = mkdtempSync(join(tmpdir(), 'ringneck-accept-'));
  const queues = await openQueues({ ...(url === undefined ? {} : { url }), folder: own, prefix: 'test', log: silentLog });
  onTestFinished(async () => {
    await queues.close({ graceMs: 500 });
    rmSync(own, { recursive: true, force: true });
  });
  return queues;
}

async function redis(...settings: string[]) {
  const server = await startRedis(...settings);
  onTestFinished(() => server.remove());
  return server;
}

const keptJobs = async (queues: Queues) => {
  const jobs = (await queues.queue(QUEUE).getJobs(['waiting'])) as Job<EventJob>[];
  return jobs.sort((a, b) => a.data.receivedAt - b.data.receivedAt);
};

/** A queue whose additions the test lets go one by one. */
function heldQueue() {
  const additions: { jobs: readonly NewJob[]; resolve(): void; reject(error: Error): void }[] = [];
  const addAll = (_: string, jobs: readonly NewJob[]) =>
    new Promise<void>((resolve, reject) => {
      additions.push({ jobs, resolve, reject });
    });
  return { additions, queues: { addAll } };
}

const idsOf = (jobs: readonly NewJob[]) => jobs.map(({ data }) => JSON.parse((data as EventJob).event).object_id);
const turn = () => new Promise(resolve => setImmediate(resolve));

test('two warehouses have queues of their own, each beside that of its windows', async () => {
  const [one, other] = [await openWarehouse(newPath(folder)), await openWarehouse(newPath(folder))];
  expect(await eventQueue(one)).toMatch(/^events-[0-9a-f]{8}$/);
  expect(await eventQueue(one)).toBe(await eventQueue(one));
  expect(await eventQueue(one)).toBe((await collectQueue(one)).replace('collect', 'events'));
  expect(await eventQueue(other)).not.toBe(await eventQueue(one));
  await Promise.all([one.close(), other.close()]);
});

describe.each(['embedded', 'redis'] as const)('into a queue that is %s', kind => {
  test.skipIf(kind === 'redis' && !hasRedis)('an accepted event is there, with its moment, and is never given up', async () => {
    const queues = await open(kind === 'redis' ? (await redis()).url : undefined);
    const accept = createAccept({ warehouse: warehouseAt(NOW), queues }, QUEUE);
    const strange = event('a\u0000b\ud800"\\ü😀');
    await accept(event('first'));
    await Promise.all([accept(strange), accept(event('third'))]);
    const jobs = await keptJobs(queues);
    expect(jobs.map(({ data }) => data)).toEqual([
      {
        receivedAt: 1_748_736_000_000_000,
        event:
          '{"event_type":"update","data_type":"sleep","object_id":"first","event_time":"2025-05-31T23:59:30+00:00","user_id":"c6b1c8a4"}',
        misses: 0,
      },
      { receivedAt: 1_748_736_000_000_001, event: JSON.stringify(strange), misses: 0 },
      { receivedAt: 1_748_736_000_000_002, event: JSON.stringify(event('third')), misses: 0 },
    ]);
    expect(JSON.parse(jobs[1]!.data.event)).toEqual(strange);
    expect(jobs[0]!.opts).toMatchObject({
      attempts: 1_000_000,
      backoff: { type: 'fixed', delay: 5_000 },
      removeOnComplete: true,
      removeOnFail: false,
    });
  });

  test.skipIf(kind === 'redis' && !hasRedis)('a thousand events at once are each there once', async () => {
    const queues = await open(kind === 'redis' ? (await redis()).url : undefined);
    const accept = createAccept({ warehouse: warehouseAt(NOW), queues }, QUEUE);
    const ids = Array.from({ length: 1_000 }, (_, i) => `n-${i}`);
    await Promise.all(ids.map(id => accept(event(id))));
    const jobs = await keptJobs(queues);
    expect(jobs.map(({ data }) => JSON.parse(data.event).object_id)).toEqual(ids);
    expect(new Set(jobs.map(({ data }) => data.receivedAt)).size).toBe(1_000);
  });
});

test('what arrives while an addition is under way goes into the next one together, 200 at most', async () => {
  const { additions, queues } = heldQueue();
  const accept = createAccept({ warehouse: warehouseAt(NOW), queues }, QUEUE);
  const settled: string[] = [];
  const send = (id: string) => void accept(event(id)).then(() => settled.push(id));
  send('lone');
  expect(additions.map(({ jobs }) => jobs.length)).toEqual([1]);
  for (let i = 0; i < 250; i++) send(`n-${i}`);
  await turn();
  expect(additions.map(({ jobs }) => jobs.length)).toEqual([1]);
  additions[0]!.resolve();
  await turn();
  expect(settled).toEqual(['lone']);
  expect(additions.map(({ jobs }) => jobs.length)).toEqual([1, 200]);
  expect(idsOf(additions[1]!.jobs).slice(0, 2)).toEqual(['n-0', 'n-1']);
  additions[1]!.resolve();
  await turn();
  expect(settled).toHaveLength(201);
  expect(additions.map(({ jobs }) => jobs.length)).toEqual([1, 200, 50]);
  additions[2]!.resolve();
  await turn();
  expect(settled).toHaveLength(251);
  send('later');
  expect(additions).toHaveLength(4);
});

test('when the queue gives no answer everybody who waits is told at once, and the next event tries again', async () => {
  const { additions, queues } = heldQueue();
  const accept = createAccept({ warehouse: warehouseAt(NOW), queues }, QUEUE);
  const failed: unknown[] = [];
  for (let i = 0; i < 300; i++) accept(event(`n-${i}`)).catch(error => failed.push(error));
  const error = new QueueUnavailable('away; try again');
  additions[0]!.reject(error);
  await turn();
  expect(failed).toEqual(Array.from({ length: 300 }, () => error));
  expect(additions).toHaveLength(1);
  const next = accept(event('next'));
  expect(idsOf(additions[1]!.jobs)).toEqual(['next']);
  additions[1]!.resolve();
  await next;
});

describe.skipIf(!hasRedis)('through the receiver into a Redis', () => {
  async function openAll(url: string) {
    const queues = await open(url);
    const receiver = await openReceiver(
      {
        ready: async () => {},
        webhook: {
          verificationToken: 'w',
          secrets: ['a-client-secret'],
          headerPrefix: 'x-service-',
          windowMs: 300_000,
          accept: createAccept({ warehouse: warehouseAt(NOW), queues }, QUEUE),
          now: () => NOW,
          log: silentLog,
        },
      },
      { host: '127.0.0.1', port: 0 },
    );
    onTestFinished(() => receiver.close());
    const send = async (id: string) => {
      const { timestamp, signature, body } = signed(JSON.stringify(event(id)));
      const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature };
      return (await fetch(`${receiver.url}/webhook`, { method: 'POST', headers, body: new Uint8Array(body) })).status;
    };
    return { queues, receiver, send };
  }

  const keptIds = async (queues: Queues) => (await keptJobs(queues)).map(({ data }) => JSON.parse(data.event).object_id);

  test('that is killed: 503 within two seconds, also when many come at once; every 2xx is there afterwards', async () => {
    const server = await redis();
    const { queues, send } = await openAll(server.url);
    const ids = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}`);
    const before = await Promise.all(ids('before', 50).map(send));
    expect(new Set(before)).toEqual(new Set([204]));
    // Killed in the middle: what was answered 2xx must be there, of the others nothing is promised.
    const during = ids('during', 300).map(async id => [id, await send(id)] as const);
    await server.kill();
    const answers = await Promise.all(during);
    const start = performance.now();
    expect(await send('away')).toBe(503);
    expect(performance.now() - start).toBeLessThan(2_000);
    expect(new Set(await Promise.all(ids('away', 300).map(send)))).toEqual(new Set([503]));
    await server.start();
    await until('it takes events again', async () => (await send('after')) === 204);
    const kept = await keptIds(queues);
    const promised = [...ids('before', 50), ...answers.filter(([, status]) => status === 204).map(([id]) => id), 'after'];
    expect(kept).toEqual(expect.arrayContaining(promised));
    expect(answers.every(([, status]) => status === 204 || status === 503)).toBe(true);
  });

  test('whose memory is full refuses: 503, and nothing is answered as accepted', async () => {
    const server = await redis('--maxmemory', '3mb');
    const { queues, receiver, send } = await openAll(server.url);
    const statuses: number[] = [];
    for (let i = 0; i < 40 && !statuses.includes(503); i++) {
      statuses.push(...(await Promise.all(Array.from({ length: 100 }, (_, n) => send(`${i}-${n}-${'x'.repeat(900)}`)))));
    }
    expect(statuses).toContain(503);
    expect(new Set(statuses)).toEqual(new Set([204, 503]));
    expect(receiver.refusals()).toEqual({ unavailable: statuses.filter(status => status === 503).length });
    expect((await keptIds(queues)).length).toBeGreaterThanOrEqual(receiver.accepted());
    // What its clients' buffers held may have made room for a few.
    const others = Array.from({ length: 100 }, () => queues.addAll(QUEUE, [{ name: 'event', data: 'x'.repeat(30_000) }]));
    const refused = (await Promise.allSettled(others)).filter(({ status }) => status === 'rejected');
    expect(refused).toContainEqual({ status: 'rejected', reason: expect.any(QueueUnavailable) });
  });
});
