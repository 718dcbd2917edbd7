import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { OwnerOperations } from '../../src/cli/operations.ts';
import { findDoor } from '../../src/control/find-door.ts';
import { freePort, type RedisServer } from '../queue/redis-server.ts';
import { until } from '../queue/until.ts';
import { PEOPLE, startChangingService } from './changing-documents.ts';
import { type Command, startCli } from './cli.ts';
import { checkEvents } from './event-kill-check.ts';
import { startLoad } from './event-load.ts';
import { openHouse } from './house.ts';
import { below, pick, type Random, randomFrom } from './random-documents.ts';

const SECRET = 'a-client-secret-of-the-kills';
/** Until the jobs of a killed process have run again; and until an event whose document does not come is parked. */
const SETTLED_MS = { once: 90_000, any: 300_000 };
/** Until a process that was told to stop, or has lost its queue while it started, has ended. */
const ENDED_MS = 60_000;
/** A time that does not come while this runs: no sweep may mend what an event should have brought. */
const NEVER = '0 4 29 2 *';

export interface EventKillRound {
  folder: string;
  seed: number;
  kills: number;
  /** Killed too, or instead; without one the queue is embedded. */
  redis?: RedisServer;
  deletes: 'once' | 'any';
}

/**
 * `up` takes a stream of events and is killed again and again: while it works, while it starts, while it stops. In the end each event that
 * was answered 2xx is in the ledger with its outcome, and what was announced last is stored as the service has it.
 */
export async function eventKillRound({ folder, seed, kills, redis, deletes }: EventKillRound): Promise<void> {
  const service = await startChangingService(deletes);
  const data = join(folder, 'data');
  await fillHouse(data, service.url);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/webhook`;
  const env = {
    RINGNECK_DATA: data,
    RINGNECK_SERVICE_URL: service.url,
    RINGNECK_PORT: String(port),
    RINGNECK_CALLBACK_URL: url,
    RINGNECK_CLIENT_ID: 'client-7',
    RINGNECK_CLIENT_SECRET: SECRET,
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
    RINGNECK_NIGHTLY: NEVER,
    ...(redis ? { RINGNECK_QUEUE_URL: redis.url } : {}),
  };
  const load = startLoad(service, { url, secret: SECRET, random: randomFrom(seed + 1) });
  const killedAt = await killOften(() => startCli(['up'], env), { random: randomFrom(seed), kills, redis });
  const up = startCli(['up'], env);
  await isUp(up);
  const sent = await load.stop();
  await allSettled(data, SETTLED_MS[deletes]);
  up.process.kill('SIGTERM');
  const { code, stderr } = await up.ended;
  expect(code, stderr).toBe(0);
  await checkEvents(data, `seed ${seed}`, { sent, killedAt, documents: service.documents, deletes });
}

/** The people with what the service has of them at the beginning. */
async function fillHouse(data: string, serviceUrl: string): Promise<void> {
  const house = await openHouse(data, serviceUrl);
  await house.add(PEOPLE.map(name => ({ name, token: `${name}-token` })));
  await house.backfill({ from: '2025-03-01', to: '2025-03-09' });
  await house.close();
}

const isUp = (up: Command) => up.says(/"msg":"up"/);

/** @returns when each kill was */
async function killOften(
  start: () => Command,
  { random, kills, redis }: { random: Random; kills: number; redis: RedisServer | undefined },
): Promise<number[]> {
  const killedAt: number[] = [];
  let up: Command | undefined;
  for (let turn = 0; killedAt.length < kills; turn++) {
    const when = (['working', up ? 'working' : 'starting', 'stopping'] as const)[turn % 3]!;
    up ??= start();
    if (when === 'starting') await sleep(below(random, 2_000));
    else {
      await isUp(up);
      // Under this load it is some seconds until a fresh process keeps up.
      await sleep(1_000 + below(random, 5_000));
    }
    if (when === 'stopping') {
      up.process.kill('SIGTERM');
      await sleep(below(random, 300));
    }
    const what = redis ? pick(random, ['up', 'redis', 'both'] as const) : 'up';
    if (what !== 'up' || isRunning(up)) killedAt.push(Date.now());
    if (what !== 'redis') up.process.kill('SIGKILL');
    if (redis && what !== 'up') {
      await redis.kill();
      // Longer, at times, than an addition waits for it.
      await sleep(below(random, 4_000));
      await redis.start();
    }
    if (what === 'redis' && when === 'working') continue;
    // One that starts without its Redis gives up, or finds it back.
    if (what === 'redis' && when === 'starting' && (await hasCome(up))) continue;
    if (!(await Promise.race([up.ended, sleep(ENDED_MS)])))
      throw new Error(`killed: ${what}, while ${when}; up does not end: ${up.stderr}`);
    up = undefined;
  }
  up?.process.kill('SIGKILL');
  await up?.ended;
  return killedAt;
}

const isRunning = ({ process }: Command) => process.exitCode === null && process.signalCode === null;

const hasCome = (up: Command) =>
  isUp(up).then(
    () => true,
    () => false,
  );

/** Until the queue holds no accepted event any more. */
async function allSettled(data: string, ms: number): Promise<void> {
  const door = (await findDoor<OwnerOperations>(data))!;
  await until(
    'every accepted event is settled',
    async () => {
      await sleep(200);
      return (await door.call('status', {})).webhooks?.waiting === 0;
    },
    ms,
  );
}
