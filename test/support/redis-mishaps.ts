import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisServer } from '../queue/redis-server.ts';
import { below, type Random } from './random-documents.ts';

/** What may become of a Redis under those who use it, and pass. */
export const MISHAPS = ['killed', 'emptied', 'restored', 'halved', 'failed over', 'read-only', 'full'] as const;

export type Mishap = (typeof MISHAPS)[number];

/** Longer, at times, than an addition waits. */
const LONGEST_MS = 4_000;

/** Lets one of them happen, to its end. */
export async function befall(redis: RedisServer, mishap: Mishap, random: Random): Promise<void> {
  if (mishap === 'killed') {
    await redis.kill();
    await sleep(below(random, LONGEST_MS));
    await redis.start();
    return;
  }
  const client = new Redis(redis.url);
  try {
    switch (mishap) {
      case 'emptied':
        await client.flushall();
        break;
      case 'restored': {
        const before = await dumpAll(client);
        await sleep(below(random, LONGEST_MS / 2));
        await restoreAll(client, before);
        break;
      }
      case 'halved': {
        // Of a job its place may be left, or its data. What keeps the schedules is not worked off here.
        const dropped = (await client.keys('*')).filter(key => !key.includes(':schedule-') && random() < 0.5);
        if (dropped.length) await client.del(dropped);
        break;
      }
      case 'failed over':
        // The connections break, and who comes back finds a replica until it is made the master.
        await client.call('REPLICAOF', '127.0.0.1', '1');
        await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await sleep(below(random, LONGEST_MS));
        await client.call('REPLICAOF', 'NO', 'ONE');
        break;
      case 'read-only':
        await client.call('REPLICAOF', '127.0.0.1', '1');
        await sleep(below(random, LONGEST_MS));
        await client.call('REPLICAOF', 'NO', 'ONE');
        break;
      case 'full':
        await client.config('SET', 'maxmemory', '1');
        await sleep(below(random, LONGEST_MS));
        await client.config('SET', 'maxmemory', '0');
        break;
    }
  } finally {
    client.disconnect();
  }
}

type Dump = readonly (readonly [key: Buffer, ttl: number, value: Buffer])[];

/** All at one moment: a job is in it whole. */
const DUMP = `local dump = {}
for _, key in ipairs(redis.call('KEYS', '*')) do dump[#dump + 1] = { key, redis.call('PTTL', key), redis.call('DUMP', key) } end
return dump`;

const dumpAll = async (client: Redis): Promise<Dump> => (await client.callBuffer('EVAL', DUMP, '0')) as Dump;

/** As a Redis that was started from an older dump has it. */
async function restoreAll(client: Redis, dump: Dump): Promise<void> {
  const transaction = client.multi().flushall();
  // One of no time left would stay for ever.
  for (const [key, ttl, value] of dump) transaction.restore(key, ttl === -1 ? 0 : Math.max(1, ttl), value);
  await transaction.exec();
}
