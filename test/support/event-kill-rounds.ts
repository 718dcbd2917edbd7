import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { AppCommands } from '../../src/app/commands.ts';
import { connectControl } from '../../src/app/control/connect-control.ts';
import { freePort, type RedisServer } from '../queue/redis-server.ts';
import { PEOPLE, startChangingService } from './changing-documents.ts';
import { checkEvents } from './event-kill-check.ts';
import { startLoad } from './event-load.ts';
import { openHarness } from './harness.ts';
import { below, pick, type Random, randomFrom } from './random-documents.ts';
import { type Running, startRingneck } from './ringneck.ts';
import { until } from './until.ts';

const SECRET = 'a-client-secret-of-the-kills';
const PACES = {
  once: { perSecond: 10, workingMs: { least: 100, more: 400 }, settledMs: 120_000 },
  // Under this load it is some seconds until a fresh process keeps up. An event whose document does not come is parked late.
  any: { perSecond: 60, workingMs: { least: 1_000, more: 5_000 }, settledMs: 300_000 },
};
/** Until a process that was told to stop, or has lost its queue while it started, has ended. */
const ENDED_MS = 60_000;
/** A time that does not come while this runs: no sweep may fix what an event should have brought. */
const NEVER = '0 4 29 2 *';

export interface EventKillRound {
  folder: string;
  seed: number;
  kills: number;
  /** Killed too, or instead, and emptied at times; without one the queue is embedded. */
  redis?: RedisServer;
  deletes: 'once' | 'any';
}

/**
 * `up` takes a stream of events and is killed again and again: while it works, while it starts, while it stops. In the end each event that
 * was answered 2xx is in the ledger with its outcome, and what was announced last is stored as the service has it.
 */
export async function eventKillRound({ folder, seed, kills, redis, deletes }: EventKillRound): Promise<void> {
  const { perSecond, workingMs, settledMs } = PACES[deletes];
  const service = await startChangingService(deletes);
  const data = join(folder, 'data');
  await fillHarness(data, service.url);
  const { env, url, secret } = await eventEnvironment(data, service.url, redis);
  const load = startLoad(service, { url, secret, random: randomFrom(seed + 1), perSecond });
  const killedAt = await killOften(() => startRingneck(['up'], { env }), {
    random: randomFrom(seed),
    kills,
    redis,
    workingMs,
  });
  // Here nobody waits half a minute for locks to expire.
  if (deletes === 'once') await redis?.expireLocks();
  const up = startRingneck(['up'], { env });
  await isUp(up);
  const sent = await load.stop();
  await allSettled(data, settledMs);
  up.kill('SIGTERM');
  const { code, stderr } = await up.end();
  expect(code, stderr).toBe(0);
  await checkEvents(data, `seed ${seed}`, { sent, killedAt, documents: service.documents, deletes });
}

/** What `up` needs to take events of this service, and where and how they are sent to it. */
export async function eventEnvironment(
  data: string,
  serviceUrl: string,
  redis: RedisServer | undefined,
): Promise<{ env: Record<string, string>; url: string; secret: string }> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/webhook`;
  const env = {
    RINGNECK_DATA: data,
    RINGNECK_SERVICE_URL: serviceUrl,
    RINGNECK_PORT: String(port),
    RINGNECK_CALLBACK_URL: url,
    RINGNECK_CLIENT_ID: 'client-7',
    RINGNECK_CLIENT_SECRET: SECRET,
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
    RINGNECK_NIGHTLY: NEVER,
    ...(redis ? { RINGNECK_QUEUE_URL: redis.url } : {}),
  };
  return { env, url, secret: SECRET };
}

/** The people with what the service has of them at the beginning. */
export async function fillHarness(data: string, serviceUrl: string): Promise<void> {
  const harness = await openHarness(data, serviceUrl);
  await harness.add(PEOPLE.map(name => ({ name, token: `${name}-token` })));
  await harness.backfill({ from: '2025-03-01', to: '2025-03-09' });
  await harness.close();
}

export const isUp = (up: Running) => up.said(/"msg":"up"/);

/** @returns when each kill was */
async function killOften(
  start: () => Running,
  {
    random,
    kills,
    redis,
    workingMs,
  }: { random: Random; kills: number; redis: RedisServer | undefined; workingMs: { least: number; more: number } },
): Promise<number[]> {
  const killedAt: number[] = [];
  let up: Running | undefined;
  for (let turn = 0; killedAt.length < kills; turn++) {
    const when = (['working', up ? 'working' : 'starting', 'stopping'] as const)[turn % 3]!;
    up ??= start();
    if (when === 'starting') await sleep(below(random, 2_000));
    else {
      await isUp(up);
      await sleep(workingMs.least + below(random, workingMs.more));
    }
    if (when === 'stopping') {
      up.kill('SIGTERM');
      await sleep(below(random, 300));
    }
    const what = redis ? pick(random, ['up', 'redis', 'both'] as const) : 'up';
    if (what !== 'up' || isRunning(up)) killedAt.push(Date.now());
    if (what !== 'redis') up.kill('SIGKILL');
    if (redis && what !== 'up') {
      await redis.kill();
      // Longer, at times, than an addition waits for it.
      await sleep(below(random, 4_000));
      await redis.start();
    }
    if (redis && below(random, 3) === 0) await redis.empty();
    if (what === 'redis' && when === 'working') continue;
    // One that starts without its Redis gives up, or finds it back.
    if (what === 'redis' && when === 'starting' && (await hasCome(up))) continue;
    if (!(await Promise.race([up.end(), sleep(ENDED_MS)])))
      throw new Error(`killed: ${what}, while ${when}; up does not end: ${up.stderr}`);
    up = undefined;
  }
  up?.kill('SIGKILL');
  await up?.end();
  return killedAt;
}

const isRunning = ({ process }: Running) => process.exitCode === null && process.signalCode === null;

const hasCome = (up: Running) =>
  isUp(up).then(
    () => true,
    () => false,
  );

/** Until the queue holds no accepted event any more. */
export async function allSettled(data: string, ms: number): Promise<void> {
  const control = (await connectControl<AppCommands>(data))!;
  await until(
    'every accepted event is settled',
    async () => {
      await sleep(200);
      return (await control.call('status', {})).webhooks?.waiting === 0;
    },
    ms,
  );
}
