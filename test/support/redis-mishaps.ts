import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisServer } from '../queue/redis-server.ts';
import { below, type Random } from './random-documents.ts';

/** What may become of a Redis under those who use it, and pass. */
export const MISHAPS = ['killed', 'emptied', 'restored', 'failed over', 'read-only', 'full'] as const;

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

type Dump = readonly { key: string; ttl: number; value: Buffer }[];

async function dumpAll(client: Redis): Promise<Dump> {
  const dump: { key: string; ttl: number; value: Buffer }[] = [];
  for (const key of await client.keys('*')) {
    const [value, ttl] = await Promise.all([client.dumpBuffer(key), client.pttl(key)]);
    if (value) dump.push({ key, ttl: Math.max(0, ttl), value });
  }
  return dump;
}

/** As a Redis that was started from an older dump has it. */
async function restoreAll(client: Redis, dump: Dump): Promise<void> {
  const transaction = client.multi().flushall();
  for (const { key, ttl, value } of dump) transaction.restore(key, ttl, value);
  await transaction.exec();
}
