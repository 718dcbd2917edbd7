import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job, UnrecoverableError } from 'bullmq';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import type { Queues } from '../../src/queue/queues.ts';
import { until } from '../support/until.ts';
import { hasRedis, type RedisServer, startRedis } from './redis-server.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

// What the rest of the program relies on, whatever the store.
describe.each(['embedded', 'redis'] as const)('queues, %s', kind => {
  describe.skipIf(kind === 'redis' && !hasRedis)('the contract', () => {
    let redis: RedisServer | undefined;
    let queues: Queues;
    /** A queue that no other test has. */
    let work: string;
    let tests = 0;
    const folder = mkdtempSync(join(tmpdir(), 'ringneck-queue-'));
    const seen: unknown[] = [];

    const open = async () => {
      queues = await openQueues({ url: redis?.url, folder, prefix: 'test', log: silentLog });
    };
    const note = async (job: Job<unknown>) => void seen.push(job.data);

    // Embedded it takes half a second to open: once for all of them.
    beforeAll(async () => {
      if (kind === 'redis') redis = await startRedis();
      else await open();
    });
    afterAll(async () => {
      await queues.close({ graceMs: 1_000 });
      await redis?.remove();
      rmSync(folder, { recursive: true, force: true });
    });
    beforeEach(async () => {
      seen.length = 0;
      work = `work-${++tests}`;
      if (redis) await open();
    });
    afterEach(async () => {
      if (redis) await queues.close({ graceMs: 1_000 });
    });

    test('names its kind and answers', async () => {
      expect(queues.kind).toBe(kind);
      await queues.ping();
    });

    test('an added job runs once, with its data and result', async () => {
      const data = { user: 'ben', nested: { list: [1, null, 'ü "\\ {a,b}', 2 ** 53 - 1, 0.1] } };
      const results: unknown[] = [];
      queues
        .worker(work, async job => ({ got: job.data, name: job.name }), { concurrency: 1 })
        .on('completed', (_, result) => results.push(result));
      const job = await queues.add(work, 'greet', data);
      expect(job.id).toBeTruthy();
      await until('a result', () => results.length > 0);
      await sleep(100);
      expect(results).toEqual([{ got: data, name: 'greet' }]);
      expect(await queues.counts(work)).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    });

    test('a thousand jobs at once all run', async () => {
      await queues.addBulk(
        work,
        numbers(1_000).map(i => ({ name: 'n', data: i, opts: { jobId: `n-${i}` } })),
      );
      expect((await queues.counts(work)).waiting).toBe(1_000);
      queues.worker(work, note, { concurrency: 8 });
      await until('all', () => seen.length >= 1_000);
      await until('empty', async () => (await queues.counts(work)).active === 0);
      expect([...seen].sort((a, b) => Number(a) - Number(b))).toEqual(numbers(1_000));
    });

    test('many that are added for good are there when the addition resolves, in their order', async () => {
      await queues.addAll(
        work,
        numbers(450).map(i => ({ name: 'n', data: i })),
      );
      expect((await queues.counts(work)).waiting).toBe(450);
      queues.worker(work, note, { concurrency: 1 });
      await until('all', () => seen.length === 450);
      expect(seen).toEqual(numbers(450));
    });

    test('live work overtakes bulk work', async () => {
      await queues.addBulk(
        work,
        numbers(5).map(i => ({ name: 'bulk', data: `bulk ${i}`, opts: { priority: 10 } })),
      );
      await queues.add(work, 'live', 'live', { priority: 1 });
      expect((await queues.counts(work)).waiting).toBe(6);
      queues.worker(work, note, { concurrency: 1 });
      await until('all', () => seen.length === 6);
      expect(seen).toEqual(['live', 'bulk 0', 'bulk 1', 'bulk 2', 'bulk 3', 'bulk 4']);
    });

    test('a delayed job waits for its time, not longer', async () => {
      queues.worker(work, note, { concurrency: 1 });
      const start = Date.now();
      await queues.add(work, 'later', 'later', { delay: 700 });
      expect((await queues.counts(work)).delayed).toBe(1);
      await until('it ran', () => seen.length > 0);
      expect(Date.now() - start).toBeGreaterThanOrEqual(690);
      expect(Date.now() - start).toBeLessThan(3_000);
    });

    test('a job that throws is tried again, then fails visibly', async () => {
      const attempts: number[] = [];
      queues.worker(
        work,
        async job => {
          attempts.push(Date.now());
          if (job.name === 'fixes' && attempts.length === 3) return;
          throw new Error('not yet');
        },
        { concurrency: 1 },
      );
      await queues.add(work, 'fixes', {}, { attempts: 5, backoff: { type: 'fixed', delay: 200 } });
      await until('three attempts', () => attempts.length === 3);
      expect(attempts[2]! - attempts[0]!).toBeGreaterThanOrEqual(390);
      await queues.add(work, 'fails', {}, { attempts: 2, jobId: 'fails-1' });
      await until('failed', async () => (await queues.counts(work)).failed === 1);
      expect(attempts).toHaveLength(5);
      expect((await queues.queue(work).getJob('fails-1'))?.failedReason).toBe('not yet');
    });

    test('a job may put itself off without using up an attempt', async () => {
      const made: number[] = [];
      queues.worker(
        work,
        async (job, token) => {
          made.push(job.attemptsMade);
          if (made.length > 3) return;
          await job.moveToDelayed(Date.now() + 100, token);
          throw new DelayedError();
        },
        { concurrency: 1 },
      );
      await queues.add(work, 'waits', {}, { attempts: 1 });
      await until('it ran four times', () => made.length === 4);
      expect(made).toEqual([0, 0, 0, 0]);
      await until('it is done', async () => (await queues.counts(work)).active === 0);
      expect(await queues.counts(work)).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    });

    test('UnrecoverableError fails at once', async () => {
      let runs = 0;
      queues.worker(
        work,
        async () => {
          runs += 1;
          throw new UnrecoverableError('never');
        },
        { concurrency: 1 },
      );
      await queues.add(work, 'hopeless', {}, { attempts: 9 });
      await until('failed', async () => (await queues.counts(work)).failed === 1);
      expect(runs).toBe(1);
    });

    test('an event that arrives while its predecessor runs is worked off after it', async () => {
      let release: () => void = () => undefined;
      const held = new Promise<void>(resolve => {
        release = resolve;
      });
      queues.worker(
        work,
        async job => {
          seen.push(job.data);
          if (seen.length === 1) await held;
        },
        { concurrency: 4 },
      );
      const event = (data: string) => queues.add(work, 'event', data, { deduplication: { id: 'ben-sleep', keepLastIfActive: true } });
      await event('first');
      await until('the first runs', () => seen.length === 1);
      await event('second');
      await event('third');
      await sleep(200);
      expect(seen).toEqual(['first']);
      release();
      await until('the last', () => seen.length === 2);
      await sleep(200);
      expect(seen).toEqual(['first', 'third']);
      await event('fourth');
      await until('and after it', () => seen.length === 3);
    });

    test('a schedule is one, however often it is set', async () => {
      const queue = queues.queue(work);
      const zone = { pattern: '30 3 * * *', tz: 'Asia/Kathmandu' };
      await queue.upsertJobScheduler('nightly', zone, { name: 'nightly', data: { days: 14 } });
      await queue.upsertJobScheduler('nightly', zone, { name: 'nightly', data: { days: 14 } });
      await queue.upsertJobScheduler('nightly', { ...zone, pattern: '45 3 * * *' }, { name: 'nightly', data: { days: 3 } });
      const [one, ...others] = await queue.getJobSchedulers();
      expect(others).toEqual([]);
      expect(one).toMatchObject({ pattern: '45 3 * * *', tz: 'Asia/Kathmandu' });
      // Kathmandu is 5:45 h ahead.
      expect(new Date(one?.next ?? 0).toISOString()).toMatch(/T22:00:00/);
      expect((await queues.counts(work)).delayed).toBe(1);
      await queue.removeJobScheduler('nightly');
      expect((await queues.counts(work)).delayed).toBe(0);
    });

    test('a schedule fires again and again', async () => {
      queues.worker(work, note, { concurrency: 1 });
      await queues.queue(work).upsertJobScheduler('often', { every: 300 }, { name: 'tick', data: 'tick' });
      await until('three times', () => seen.length >= 3);
      await queues.queue(work).removeJobScheduler('often');
    });

    test('events tell what completed and what failed', async () => {
      const told: string[] = [];
      const events = queues.events(work);
      events.on('completed', ({ jobId, returnvalue }) => told.push(`${jobId} ${returnvalue}`));
      events.on('failed', ({ jobId, failedReason }) => told.push(`${jobId} ${failedReason}`));
      await events.waitUntilReady();
      await sleep(200);
      queues.worker(
        work,
        async job => {
          if (job.name === 'bad') throw new Error('bad luck');
          return 'fine';
        },
        { concurrency: 1 },
      );
      await queues.add(work, 'good', {}, { jobId: 'a-1' });
      await queues.add(work, 'bad', {}, { jobId: 'a-2' });
      await until('both', () => told.length === 2);
      expect(told).toEqual(['a-1 fine', 'a-2 bad luck']);
    });

    test('the waiting jobs of one run can be removed', async () => {
      await queues.addBulk(
        work,
        numbers(20).map(i => ({ name: 'n', data: { run: i % 2 }, opts: { jobId: `run-${i % 2}-${i}`, delay: i < 4 ? 60_000 : 0 } })),
      );
      const queue = queues.queue(work);
      const jobs = await queue.getJobs(['waiting', 'delayed', 'prioritized']);
      for (const job of jobs) if ((job.data as { run: number }).run === 1) await queue.remove(job.id!);
      const left = await queue.getJobs(['waiting', 'delayed', 'prioritized']);
      expect(left.map(job => (job.data as { run: number }).run)).toEqual(numbers(10).map(() => 0));
    });

    test('two queues do not mix', async () => {
      await queues.add('other', 'n', 'other');
      await queues.add(work, 'n', 'work');
      queues.worker(work, note, { concurrency: 2 });
      await until('work', () => seen.length > 0);
      await sleep(100);
      expect(seen).toEqual(['work']);
      expect((await queues.counts('other')).waiting).toBe(1);
      queues.worker('other', note, { concurrency: 2 });
      await until('other', () => seen.length === 2);
    });

    test('an idle worker learns of a new job at once', async () => {
      queues.worker(work, note, { concurrency: 4 });
      await sleep(300);
      for (let i = 1; i <= 20; i++) {
        const start = Date.now();
        await queues.add(work, 'n', i);
        await until('it ran', () => seen.length === i);
        expect(Date.now() - start).toBeLessThan(1_000);
      }
    });

    test('sixteen jobs at a time fetch over loopback and nothing starves', async () => {
      let atOnce = 0;
      let most = 0;
      const server = createServer((_, response) => setTimeout(() => response.end('ok'), 20)).listen(0, '127.0.0.1');
      await until('listening', () => server.listening);
      const { port } = server.address() as { port: number };
      queues.worker(
        work,
        async job => {
          most = Math.max(most, ++atOnce);
          seen.push(await (await fetch(`http://127.0.0.1:${port}/${job.data}`)).text());
          atOnce -= 1;
        },
        { concurrency: 16 },
      );
      await queues.addBulk(
        work,
        numbers(300).map(i => ({ name: 'n', data: i })),
      );
      await until('all', () => seen.length === 300);
      server.close();
      expect(most).toBeGreaterThan(4);
      expect(most).toBeLessThanOrEqual(16);
    });

    test('closing lets running jobs end, takes no new ones, and the rest is there next time', async () => {
      await queues.addBulk(
        work,
        numbers(10).map(i => ({ name: 'n', data: i })),
      );
      queues.worker(
        work,
        async job => {
          await sleep(300);
          seen.push(job.data);
        },
        { concurrency: 2 },
      );
      await until('two run', async () => (await queues.counts(work)).active === 2);
      await Promise.all([queues.close(), queues.close()]);
      await expect(queues.add(work, 'n', 'late')).rejects.toThrow('try again');
      await expect(queues.addAll(work, [{ name: 'n', data: 'late' }])).rejects.toThrow('try again');
      expect(seen).toHaveLength(2);
      await open();
      expect(await queues.counts(work)).toMatchObject({ waiting: 8, active: 0 });
      queues.worker(work, note, { concurrency: 2 });
      await until('all', () => seen.length === 10);
      expect(new Set(seen)).toEqual(new Set(numbers(10)));
    });

    test('a job that does not end is told to, left behind, and runs again', async () => {
      let told = false;
      queues.worker(
        work,
        (_job, _token, signal) =>
          new Promise(() => {
            signal?.addEventListener('abort', () => {
              told = true;
            });
          }),
        { concurrency: 1, lockDuration: 1_000, stalledInterval: 500 },
      );
      await queues.add(work, 'stuck', 'stuck');
      await until('it runs', async () => (await queues.counts(work)).active === 1);
      const start = Date.now();
      await queues.close({ graceMs: 300 });
      expect(Date.now() - start).toBeLessThan(4_000);
      expect(told).toBe(true);
      await open();
      queues.worker(work, note, { concurrency: 1, stalledInterval: 500 });
      await until('it ran again', () => seen.length === 1);
    });
  });
});
