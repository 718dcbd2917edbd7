import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RunReport } from '../../../src/app/follow-run.ts';
import { createLog } from '../../../src/base/log.ts';
import { collectQueue } from '../../../src/sync/runs/runs.ts';
import { hasRedis, type RedisServer, startRedis } from '../../queue/redis-server.ts';
import { startFaultService } from '../../support/fault-service.ts';
import { openHarness } from '../../support/harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');
const HEART_RATE = '/v2/usercollection/heartrate';
const PEOPLE = ['ada', 'ben', 'cleo', 'dan', 'eva', 'finn'];
/** Fifteen windows of 28 days for each of them. */
const SPRING = { from: '2023-04-21', to: '2024-06-13', collections: ['heart_rate'] };
const WINDOWS = 90;

async function setUp(name: string, redis: RedisServer) {
  onTestFinished(() => redis.remove());
  const service = await startFaultService({ '/v2/usercollection/personal_info': { json: { id: 'x' } }, [HEART_RATE]: {} });
  onTestFinished(() => service.close());
  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(line) } });
  const settings = { queueUrl: redis.url, queuePrefix: 'test' };
  const harness = await openHarness(join(folder, name), service.url, { now: () => NOON, lookMs: 200, log, settings });
  await harness.add(PEOPLE.map(name => ({ name, token: `token-${name}` })));
  const { queues, warehouse } = await harness.app.pipeline();
  const queue = queues.queue(await collectQueue(warehouse));
  return { harness, queue, said: () => lines.map(line => (JSON.parse(line) as { msg: string }).msg) };
}

async function tell(redis: RedisServer, ...command: string[]): Promise<void> {
  const client = new Redis(redis.url);
  client.on('error', () => undefined);
  await client.call(command[0]!, ...command.slice(1));
  client.disconnect();
}

/** Starts a run whose jobs all wait: nobody has one of them in hand, so that all that the Redis drops is lost. */
async function startPaused({ harness, queue }: Awaited<ReturnType<typeof setUp>>): Promise<{ ended: Promise<RunReport> }> {
  await queue.pause();
  const ended = harness.backfill(SPRING);
  await until('the accounts are in the queue', async () => (await queue.getWaitingCount()) === PEOPLE.length);
  return { ended };
}

describe.skipIf(!hasRedis)('a run comes to its end though', () => {
  test('the Redis is emptied in the middle of it', async () => {
    const redis = await startRedis();
    const setting = await setUp('emptied', redis);
    const { ended } = await startPaused(setting);
    await tell(redis, 'FLUSHALL');
    await setting.queue.resume();
    expect(await ended).toMatchObject({ state: 'complete', windows: { planned: WINDOWS, done: WINDOWS, failed: 0 } });
  }, 60_000);

  test('the Redis comes back from an older dump', async () => {
    const redis = await startRedis('--appendonly', 'no', '--dbfilename', 'older.rdb');
    const setting = await setUp('restored', redis);
    await tell(redis, 'SAVE');
    const { ended } = await startPaused(setting);
    await redis.kill();
    await redis.start();
    await setting.queue.resume();
    expect(await ended).toMatchObject({ state: 'complete', windows: { planned: WINDOWS, done: WINDOWS, failed: 0 } });
  }, 60_000);

  test('the Redis has dropped halves of its jobs', async () => {
    const redis = await startRedis();
    const setting = await setUp('halves', redis);
    const { queue } = setting;
    const { ended } = await startPaused(setting);
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    const [waiting] = (await client.keys('test:collect-*')).filter(key => /:(wait|paused)$/.test(key));
    const ids = await client.lrange(waiting!, 0, -1);
    expect(ids).toHaveLength(6);
    // The data of some, and the places of the others.
    await client.del(ids.slice(0, 3).map(id => `test:${queue.name}:${id}`));
    await client.ltrim(waiting!, 0, 2);
    await queue.resume();
    expect(await ended).toMatchObject({ state: 'complete', windows: { planned: WINDOWS, done: WINDOWS, failed: 0 } });
  }, 60_000);

  test('the Redis is for three seconds not the one that writes, which is said once', async () => {
    const redis = await startRedis();
    const { harness, said } = await setUp('failed-over', redis);
    await tell(redis, 'REPLICAOF', '127.0.0.1', '1');
    const ended = harness.backfill(SPRING);
    await until('the run has begun', async () => (await harness.app.pipeline()).runs.active().length > 0);
    const [run] = (await harness.app.pipeline()).runs.active();
    await until('the wait is told to whoever watches', () => run!.progress.waiting_for !== undefined);
    expect(run!.progress.waiting_for).toContain('READONLY');
    await new Promise(resolve => setTimeout(resolve, 3_000));
    await tell(redis, 'REPLICAOF', 'NO', 'ONE');
    expect(await ended).toMatchObject({ state: 'complete', windows: { planned: WINDOWS, done: WINDOWS, failed: 0 } });
    expect(run!.progress.waiting_for).toBeUndefined();
    expect(said().filter(msg => msg.startsWith('the run waits'))).toEqual([
      'the run waits for the queue and goes on by itself',
      'the run waits for the queue no more',
    ]);
  }, 60_000);
});
