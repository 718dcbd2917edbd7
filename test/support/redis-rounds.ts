import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import type { Queue } from '../../src/queue/queues.ts';
import type { RedisServer } from '../queue/redis-server.ts';
import { startChangingService } from './changing-documents.ts';
import { checkEvents } from './event-kill-check.ts';
import { allSettled, eventEnvironment, fillHarness, isUp } from './event-kill-rounds.ts';
import { startLoad } from './event-load.ts';
import { KILLED_COMMAND, type KillSetting } from './kill-rounds.ts';
import { below, pick, randomFrom } from './random-documents.ts';
import { befall, MISHAPS } from './redis-mishaps.ts';
import { startRingneck } from './ringneck.ts';
import { inspectFile } from './table-hash.ts';
import { until } from './until.ts';

/** Until a command whose Redis is there again has ended. */
const ENDED_MS = 60_000;

/** A backfill whose Redis meets mishaps at moments chosen by seed comes to its end by itself, with all that there is. */
export async function backfillRound(setting: KillSetting, redis: RedisServer, seed: number): Promise<void> {
  const { folder, template, service, settings, hashes, requests } = setting;
  const random = randomFrom(seed);
  const data = join(folder, `mishaps-${seed}`);
  cpSync(template, data, { recursive: true });
  if (seed % 2) await redis.empty();
  const before = service.asked.length;
  const child = startRingneck(KILLED_COMMAND, { env: settings(data, redis.url) });
  const happened: string[] = [];
  const isRunning = () => child.process.exitCode === null;
  const hasBegun = () => service.asked.length > before || !isRunning();
  if (seed % 2 && (await loseAllThatWaits(redis, hasBegun))) happened.push('emptied while all waited');
  // Whose Redis is away when it begins ends with 75.
  await until(`seed ${seed}, ${happened.join(', ')}: the run reads`, hasBegun, ENDED_MS);
  while (happened.length < 3 && isRunning()) {
    const at = service.asked.length + 1 + below(random, Math.floor(requests / 3));
    const latest = Date.now() + 2_000;
    while (service.asked.length < at && isRunning() && Date.now() < latest) await sleep(1);
    if (!isRunning()) break;
    const mishap = pick(random, MISHAPS);
    happened.push(mishap);
    await befall(redis, mishap, random);
  }
  const told = `seed ${seed}, ${happened.join(', ')}`;
  expect(happened, told).not.toEqual([]);
  const ended = await Promise.race([child.end(), sleep(ENDED_MS)]);
  if (!ended) throw new Error(`${told}: the command does not end; ${child.stderr}`);
  const { code, stdout, stderr } = ended;
  expect(code, `${told}: ${stderr}`).toBe(0);
  expect(JSON.parse(stdout), told).toMatchObject({ state: 'complete', failures: [] });
  expect(await inspectFile(data), told).toMatchObject({ hashes, broken: [] });
}

/**
 * Has a Redis that was empty lose all that a run enqueues, before a worker takes any of it: what is in hand is done all the same.
 * @returns whether it was in time
 */
async function loseAllThatWaits(redis: RedisServer, hasBegun: () => boolean): Promise<boolean> {
  const client = new Redis(redis.url);
  const queues = await openQueues({ url: redis.url, folder: '', log: silentLog });
  try {
    let queue: Queue | undefined;
    for (; !hasBegun(); await sleep(1)) {
      const [key] = queue ? [] : await client.keys('*:collect-*:meta');
      if (key) queue = queues.queue(key.split(':')[1]!);
      // Again and again: a command that starts empties its queue, which then is as new.
      await queue?.pause();
      if (!(await queue?.getWaitingCount())) continue;
      await client.flushall();
      await queue!.resume();
      return true;
    }
    return false;
  } finally {
    client.disconnect();
    await queues.close();
  }
}

/** Whatever becomes of Redis under a stream of events, each that was answered 2xx is in the ledger with its outcome in the end. */
export async function eventRound(folder: string, redis: RedisServer, seed: number, mishaps: number): Promise<void> {
  const random = randomFrom(seed);
  const service = await startChangingService('once');
  const data = join(folder, `events-${seed}`);
  await fillHarness(data, service.url);
  const { env, url, secret } = await eventEnvironment(data, service.url, redis);
  const up = startRingneck(['up'], { env });
  await isUp(up);
  const load = startLoad(service, { url, secret, random: randomFrom(seed + 1), perSecond: 40 });
  const happenedAt: number[] = [];
  for (let i = 0; i < mishaps; i++) {
    await sleep(500 + below(random, 1_500));
    happenedAt.push(Date.now());
    await befall(redis, pick(random, MISHAPS), random);
  }
  await sleep(500);
  const sent = await load.stop();
  await allSettled(data, 300_000);
  up.kill('SIGTERM');
  const { code, stderr } = await up.end();
  expect(code, stderr).toBe(0);
  await checkEvents(data, `seed ${seed}`, { sent, killedAt: happenedAt, documents: service.documents, deletes: 'once' });
}
