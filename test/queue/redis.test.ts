import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, type TestContext, test, vi } from 'vitest';
import { TryLaterError, UsageError } from '../../src/base/errors.ts';
import { type Log, silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import { QueueUnavailable } from '../../src/queue/queues.ts';
import { until } from '../support/until.ts';
import { freePort, hasRedis, type RedisServer, startRedis } from './redis-server.ts';

const open = (url: string, log: Log = silentLog) => openQueues({ url, folder: '/nowhere', prefix: 'test', log });

/** A log that keeps its lines. */
function keptLog() {
  const lines: string[] = [];
  const keep = (...parts: unknown[]) => void lines.push(JSON.stringify(parts));
  return { lines, log: { ...silentLog, info: keep, warn: keep, error: keep } as unknown as Log };
}

test.concurrent('a Redis that is not there is named without its password, within seconds', async () => {
  const port = await freePort();
  const start = Date.now();
  const error = await open(`redis://ben:s3cret@127.0.0.1:${port}/2`).catch(thrown => thrown);
  expect(error).toBeInstanceOf(TryLaterError);
  expect(error.message).toContain(`127.0.0.1:${port}`);
  expect(error.message).not.toContain('s3cret');
  expect(Date.now() - start).toBeLessThan(4_000);
});

test.concurrent('something that listens and says nothing is given up after 5 s', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const start = Date.now();
  await expect(open(`redis://127.0.0.1:${port}`)).rejects.toThrow(TryLaterError);
  expect(Date.now() - start).toBeLessThan(7_000);
  server.close();
});

test.each(['http://localhost', 'localhost:6379', 'redis//x', ''])('%j is not the URL of a Redis', async url => {
  await expect(open(url)).rejects.toThrow(UsageError);
});

// What they do is to wait, each with a server of its own.
describe.skipIf(!hasRedis).concurrent('a Redis', () => {
  async function serverOf({ onTestFinished }: TestContext, ...settings: string[]): Promise<RedisServer> {
    const redis = await startRedis(...settings);
    onTestFinished(() => redis.remove());
    return redis;
  }

  test('that may lose jobs is warned about', async context => {
    const redis = await serverOf(context, '--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru');
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const { lines, log } = keptLog();
    await (await open(redis.url, log)).close();
    expect(lines.join()).toContain('noeviction');
    expect(lines.join()).toContain('appendonly');
  });

  test('that drops the locks of many jobs is told of once for all of them', async context => {
    const redis = await serverOf(context);
    const { lines, log } = keptLog();
    const queues = await open(redis.url, log);
    const client = new Redis(redis.url);
    let ended = 0;
    queues.worker(
      'work',
      async job => {
        await client.del(`test:work:${job.id}:lock`);
        ended += 1;
      },
      { concurrency: 1 },
    );
    for (const name of ['ada', 'b.en', 'c-1']) await queues.add('work', 'job', {}, { jobId: `inbox-${name}` });
    await until('the jobs ran', () => ended >= 3);
    await until('an error was told', () => lines.length > 0);
    await sleep(200);
    await queues.close({ graceMs: 0 });
    client.disconnect();
    expect(lines.map(line => JSON.parse(line))).toEqual([
      [{ reason: 'Missing lock for job inbox-ada. moveToFinished' }, 'the queue reports an error'],
    ]);
  });

  test('as it should be is not', async context => {
    const redis = await serverOf(context);
    const { lines, log } = keptLog();
    await (await open(redis.url, log)).close();
    await sleep(100);
    expect(lines).toEqual([]);
  });

  test('that refuses the password is a wrong setting', async context => {
    const redis = await serverOf(context, '--requirepass', 'right');
    for (const user of ['', ':wr0ng@']) {
      const error = await open(redis.url.replace('//', `//${user}`)).catch(thrown => thrown);
      expect(error).toBeInstanceOf(UsageError);
      expect(error.message).not.toContain('wr0ng');
    }
    await (await open(redis.url.replace('//', '//:right@'))).close();
  });

  test('killed and restarted: adding fails in time and does not come true later, then all goes on', async context => {
    const redis = await serverOf(context);
    const { lines, log } = keptLog();
    const queues = await open(redis.url, log);
    const seen: unknown[] = [];
    queues.worker('work', async job => void seen.push(job.data), { concurrency: 2 });
    await queues.add('work', 'n', 'before');
    await until('before', () => seen.length === 1);
    await redis.kill();
    // Until then a command is sent, and sent again when it is back.
    await until('its absence is noticed', () => lines.length > 0);
    const start = Date.now();
    const failed = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => queues.add('work', 'n', `away ${i}`)));
    expect(Date.now() - start).toBeLessThan(3_000);
    for (const one of failed) expect(one.status === 'rejected' && one.reason).toBeInstanceOf(QueueUnavailable);
    await expect(queues.ping()).rejects.toThrow(QueueUnavailable);
    const waits = queues.addBulk('work', [{ name: 'n', data: 'waits' }]);
    await redis.start();
    await waits;
    await until('back', () =>
      queues.add('work', 'n', 'after').then(
        () => true,
        () => false,
      ),
    );
    await until('after', () => seen.includes('after'));
    expect(seen).toContain('waits');
    expect(seen.filter(data => String(data).startsWith('away'))).toEqual([]);
    expect(lines.filter(line => line.includes('away'))).toHaveLength(1);
    expect(lines.filter(line => line.includes('Redis is back'))).toHaveLength(1);
    await queues.close();
  });

  test('that is away does not keep an addition of many waiting, nor does it come true later', async context => {
    const redis = await serverOf(context);
    const { lines, log } = keptLog();
    const queues = await open(redis.url, log);
    await redis.kill();
    await until('its absence is noticed', () => lines.length > 0);
    const start = Date.now();
    const many = Array.from({ length: 450 }, (_, i) => ({ name: 'n', data: i }));
    await expect(queues.addAll('work', many)).rejects.toThrow(QueueUnavailable);
    expect(Date.now() - start).toBeLessThan(3_000);
    await redis.start();
    await until('it answers again', () =>
      queues.ping().then(
        () => true,
        () => false,
      ),
    );
    expect((await queues.counts('work')).waiting).toBe(0);
    await queues.addAll('work', many);
    expect((await queues.counts('work')).waiting).toBe(450);
    await queues.close();
  });

  test('whose memory is full is unavailable, and says so', async context => {
    const redis = await serverOf(context, '--maxmemory', '1kb');
    const queues = await open(redis.url);
    const error = await queues.addAll('work', [{ name: 'n', data: 'one' }]).catch(thrown => thrown);
    expect(error).toBeInstanceOf(QueueUnavailable);
    expect(error.message).toContain('OOM');
    await expect(queues.add('work', 'n', 'one')).rejects.toThrow(QueueUnavailable);
    await queues.close();
  });

  test.for(['is away', 'goes away just then'])('that %s does not keep us from closing, though no worker ends', async (when, context) => {
    const redis = await serverOf(context);
    const queues = await open(redis.url);
    queues.worker('work', async () => undefined, { concurrency: 2 });
    queues.events('work');
    await queues.add('work', 'n', 1);
    await sleep(200);
    const gone = redis.kill();
    if (when === 'is away') await gone;
    const start = Date.now();
    await queues.close();
    expect(Date.now() - start).toBeLessThan(4_000);
  });

  test('with a dozen workers on one connection is closed without a warning of Node', async context => {
    const redis = await serverOf(context);
    const warnings: string[] = [];
    const keep = (warning: Error) => void warnings.push(warning.message);
    process.on('warning', keep);
    context.onTestFinished(() => void process.off('warning', keep));
    const queues = await open(redis.url);
    for (let n = 1; n <= 12; n++) {
      queues.worker(`work-${n}`, async () => undefined, { concurrency: 1 });
      queues.events(`work-${n}`);
      await queues.add(`work-${n}`, 'n', n);
    }
    await queues.close();
    // Warnings are told in a later turn.
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });

  test('that has lost the half of a job holds it no more, and takes it again when the rest is forgotten', async context => {
    const redis = await serverOf(context);
    const queues = await open(redis.url);
    const client = new Redis(redis.url);
    context.onTestFinished(() => client.disconnect());
    const seen: unknown[] = [];
    const jobs = ['its place', 'its data', 'nothing'].map(lost => ({ name: 'n', data: { lost }, opts: { jobId: lost } }));
    await queues.addAll('work', jobs);
    await client.lrem('test:work:wait', 0, 'its place');
    await client.del('test:work:its data');
    queues.worker('work', async ({ data }) => void seen.push(data), { concurrency: 1 });
    await until('the whole one is worked off', () => seen.length > 0);
    await until('the queue is empty', async () => (await queues.ids('work')).size === 0);
    expect(seen).toEqual([{ lost: 'nothing' }]);
    expect(await client.keys('test:work:its data')).toEqual([]);

    await queues.forget('work', ['its place', 'its data']);
    await queues.addAll('work', jobs.slice(0, 2));
    await until('both are worked off', () => seen.length === 3);
    expect(seen.slice(1)).toEqual([{ lost: 'its place' }, { lost: 'its data' }]);
    await queues.close();
  });

  test('is shared by two prefixes that do not see each other', async context => {
    const redis = await serverOf(context);
    const one = await open(redis.url);
    const other = await openQueues({ url: redis.url, folder: '/nowhere', prefix: 'service', log: silentLog });
    await one.add('work', 'n', 1);
    expect((await one.counts('work')).waiting).toBe(1);
    expect((await other.counts('work')).waiting).toBe(0);
    await Promise.all([one.close(), other.close()]);
  });
});
