import { expect, test, vi } from 'vitest';
import { delay } from '../../jobs/retry.ts';
import { MemoryQueues } from '../../src/queue/memory.ts';
import { until } from '../support/until.ts';

const job = (jobId: string, data: unknown = jobId, lifo = false) => ({ name: 'account', data, opts: { jobId, ...(lifo ? { lifo } : {}) } });

test('each job is worked on once, so many side by side, the last first where that is asked for', async () => {
  const queues = new MemoryQueues();
  const begun: unknown[] = [];
  let release = () => {};
  await queues.addAll('work', [job('a'), job('b'), job('c'), job('a', 'another')]);
  await queues.addAll('work', [job('first', 'first', true)]);
  expect([...(await queues.ids('work'))]).toEqual(['first', 'a', 'b', 'c']);
  queues.worker(
    'work',
    async ({ data }) => {
      begun.push(data);
      if (begun.length <= 2) await new Promise<void>(resolve => (release = resolve));
    },
    { concurrency: 2 },
  );
  await until('two are worked on', () => begun.length === 2);
  expect(begun).toEqual(['first', 'a']);
  expect(await queues.counts('work')).toEqual({ waiting: 2, active: 2, delayed: 0, failed: 0 });
  release();
  await until('the rest is done', async () => (await queues.ids('work')).size === 1);
  expect(begun).toEqual(['first', 'a', 'b', 'c']);
  await queues.close({ graceMs: 0 });
});

test('what is put off comes again then, and what fails is gone: its run looks for what is missing', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance', 'Date'] });
  try {
    const queues = new MemoryQueues();
    const begun: string[] = [];
    queues.worker<string>(
      'work',
      async (own, lock) => {
        begun.push(own.data);
        if (own.data === 'fails') throw new Error('on purpose');
        if (begun.filter(one => one === 'late').length === 1) return delay(own, lock, 5_000);
      },
      { concurrency: 5 },
    );
    await queues.addAll('work', [job('late'), job('fails')]);
    await vi.advanceTimersByTimeAsync(4_900);
    expect(begun).toEqual(['late', 'fails']);
    expect(await queues.counts('work')).toEqual({ waiting: 0, active: 0, delayed: 1, failed: 0 });
    await vi.advanceTimersByTimeAsync(200);
    expect(begun).toEqual(['late', 'fails', 'late']);
    expect((await queues.ids('work')).size).toBe(0);
    await queues.addAll('work', [job('fails')]);
    await vi.advanceTimersByTimeAsync(10);
    expect(begun).toEqual(['late', 'fails', 'late', 'fails']);
    await queues.close();
  } finally {
    vi.useRealTimers();
  }
});

test('closing waits for what is worked on, for a while, and begins nothing more', async () => {
  const queues = new MemoryQueues();
  const done: string[] = [];
  let release = () => {};
  queues.worker<string>(
    'work',
    async ({ data }) => {
      await new Promise<void>(resolve => (release = resolve));
      done.push(data);
    },
    { concurrency: 1 },
  );
  await queues.addAll('work', [job('a'), job('b')]);
  await until('one is worked on', async () => (await queues.counts('work')).active === 1);
  const closed = queues.close();
  release();
  await closed;
  expect(done).toEqual(['a']);
});
