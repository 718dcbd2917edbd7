import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { keepSchedules, watchQueue } from '../../jobs/schedules.ts';
import { silentLog } from '../../src/base/log.ts';
import { scheduleQueue } from '../../src/sync/runs/runs.ts';
import { startSweep } from '../../src/sync/sweeps/sweep.ts';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');
const HOUR = 3_600_000;

describe.skipIf(!hasRedis)('a Redis that keeps nothing', () => {
  test('comes back empty: schedules and runs under way go on', async () => {
    const redis = await startRedis('--appendonly', 'no');
    onTestFinished(() => redis.remove());
    const nights = '/v2/usercollection/sleep';
    let isWell = false;
    const service = await startFaultService({
      '/v2/usercollection/personal_info': { json: { id: 'x' } },
      [nights]: () => (isWell ? {} : { status: 500, json: {} }),
    });
    onTestFinished(() => service.close());
    // A second attempt after five seconds: what was asked for once waits in the queue.
    const settings = { queueUrl: redis.url, queuePrefix: 'test' };
    const harness = await openHarness(join(folder, 'lost'), service.url, { now: () => NOON, retryDelayMs: 5_000, settings });
    await harness.add([{ name: 'ada', token: 'token-ada' }]);
    const pipeline = await harness.app.pipeline();
    let times = 0;
    const often = {
      name: 'often',
      repeat: async () => ({ everyMs: 200, afterMs: 0 }),
      missed: async () => false,
      run: async () => {
        times++;
      },
    };
    const stop = await keepSchedules(pipeline, [often], { checkMs: 50 });
    onTestFinished(stop);
    const { run } = await startSweep(pipeline, { kind: 'sweep', days: 3, collections: ['sleep'] });
    await until('the night was asked for', () => service.asked.some(({ path }) => path === nights));
    await until('the schedule goes', () => times > 1);
    await redis.kill();
    isWell = true;
    times = 0;
    await redis.start();
    await until('the schedule goes again', () => times > 1);
    expect(await run.done).toMatchObject({ state: 'complete', windows: { planned: 1, done: 1 } });
    stop();
    await pipeline.queues.queue(await scheduleQueue(pipeline.warehouse)).removeJobScheduler('often');
    // One that was due already is worked off.
    await new Promise(resolve => setTimeout(resolve, 300));
    times = 0;
    await new Promise(resolve => setTimeout(resolve, 300));
    expect(times).toBe(0);
  });
});

describe.skipIf(!hasRedis).each(['its data', 'its place', 'its place and the schedule', 'all of the schedule'])(
  'a Redis that loses of the next job of a schedule %s',
  lost => {
    test('has it again within a check, and what was missed is done', async () => {
      const redis = await startRedis();
      onTestFinished(() => redis.remove());
      const client = new Redis(redis.url);
      onTestFinished(() => client.disconnect());
      const service = await startFaultService();
      onTestFinished(() => service.close());
      const settings = { queueUrl: redis.url, queuePrefix: 'test' };
      const harness = await openHarness(join(folder, lost.replaceAll(' ', '-')), service.url, {
        queue: 'embedded',
        now: () => NOON,
        settings,
      });
      const pipeline = await harness.app.pipeline();
      const done: string[] = [];
      let missed = false;
      const schedules = [
        { name: 'hourly', repeat: async () => ({ everyMs: HOUR, afterMs: HOUR }) },
        { name: 'nightly', repeat: async () => ({ pattern: '30 3 1 1 *', timeZone: 'UTC' }) },
        { name: 'other', repeat: async () => ({ everyMs: HOUR, afterMs: HOUR }) },
      ].map(schedule => ({
        ...schedule,
        missed: async () => schedule.name === 'nightly' && missed,
        run: async () => {
          done.push(schedule.name);
          missed = false;
        },
      }));
      onTestFinished(await keepSchedules(pipeline, schedules, { checkMs: 50 }));
      const name = await scheduleQueue(pipeline.warehouse);
      const queue = pipeline.queues.queue(name);
      const key = (what: string) => `test:${name}:${what}`;
      const nextOf = async () =>
        new Map((await queue.getJobSchedulers()).map(({ key: schedule, next }) => [schedule, `repeat:${schedule}:${next}`]));
      /** Those whose next job is there, place and data. */
      const whole = async () => {
        const there: string[] = [];
        for (const [schedule, id] of await nextOf()) {
          if ((await client.zscore(key('delayed'), id)) !== null && (await client.exists(key(id)))) there.push(schedule);
        }
        return there.sort();
      };
      expect(await whole()).toEqual(['hourly', 'nightly', 'other']);
      const before = await nextOf();
      for (const schedule of ['hourly', 'nightly']) {
        const id = before.get(schedule)!;
        if (lost === 'its data') await client.del(key(id));
        if (lost === 'its place') await client.zrem(key('delayed'), id);
        if (lost === 'its place and the schedule') {
          const parts = client
            .multi()
            .del(key(`repeat:${schedule}`))
            .zrem(key('delayed'), id);
          await parts.zrem(key('repeat'), schedule).exec();
        }
        if (lost === 'all of the schedule') {
          const parts = client
            .multi()
            .del(key(id), key(`repeat:${schedule}`))
            .zrem(key('delayed'), id);
          await parts.zrem(key('repeat'), schedule).exec();
        }
      }
      missed = true;
      await until('all are there again', async () => (await whole()).length === 3 && done.length > 0, 5_000);
      expect(done).toEqual(['nightly']);
      // What is whole is left alone, and so is the time of what comes by the clock.
      const after = await nextOf();
      for (const schedule of ['nightly', 'other']) expect(after.get(schedule)).toBe(before.get(schedule));
      await new Promise(resolve => setTimeout(resolve, 200));
      expect(await nextOf()).toEqual(after);
      // Nothing is left of what was lost.
      expect((await client.keys(key('repeat:*:*'))).sort()).toEqual([...after.values()].map(key).sort());
    });
  },
);

test.each(hasRedis ? ['redis', 'embedded'] : ['embedded'])(
  'what is whole is made once, while it waits, is due and is worked on (%s)',
  async kind => {
    const redis = kind === 'redis' ? await startRedis() : undefined;
    if (redis) onTestFinished(() => redis.remove());
    const service = await startFaultService();
    onTestFinished(() => service.close());
    const settings = redis ? { queueUrl: redis.url, queuePrefix: 'test' } : {};
    const harness = await openHarness(join(folder, `whole-${kind}`), service.url, { queue: 'embedded', now: () => NOON, settings });
    const made: string[] = [];
    let times = 0;
    const schedules = [
      { name: 'hourly', every: { everyMs: HOUR, afterMs: HOUR }, takesMs: 0 },
      { name: 'nightly', every: { pattern: '30 3 1 1 *', timeZone: 'UTC' }, takesMs: 0 },
      { name: 'often', every: { everyMs: 100, afterMs: 0 }, takesMs: 5 },
      { name: 'slow', every: { everyMs: 100, afterMs: 0 }, takesMs: 700 },
    ].map(({ name, every, takesMs }) => ({
      name,
      repeat: async () => {
        made.push(name);
        return every;
      },
      missed: async () => false,
      run: async () => {
        times++;
        await new Promise(resolve => setTimeout(resolve, takesMs));
      },
    }));
    onTestFinished(await keepSchedules(await harness.app.pipeline(), schedules, { checkMs: 10 }));
    await until('they have run many times', () => times > 15, 20_000);
    expect(made).toEqual(['hourly', 'nightly', 'often', 'slow']);
  },
);

test('a store that does not answer is looked at again, and one that could not be filled is filled the next time', async () => {
  const answers = [() => Promise.reject(new Error('away')), async () => false, async () => true, async () => true, async () => false];
  const done: string[] = [];
  let looks = 0;
  const stop = watchQueue(
    { log: silentLog },
    {
      isLost: () => (answers[looks++] ?? (async () => false))(),
      restore: async () => {
        done.push(done.length ? 'filled' : 'refused');
        if (done.length === 1) throw new Error('away again');
      },
    },
    1,
  );
  await until('it was looked at', () => looks > 6);
  expect(done).toEqual(['refused', 'filled']);
  stop();
  const after = looks;
  await new Promise(resolve => setTimeout(resolve, 30));
  expect(looks).toBe(after);
});
