import { EventEmitter, once } from 'node:events';
import { type ConnectionOptions, createRedisBackend, type QueueBaseOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { messageOf, UsageError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { withTimeout } from '../base/timeout.ts';
import type { Backend } from './backend.ts';
import { takeLease } from './lease.ts';
import { QueueUnavailable } from './queues.ts';
import { addressOf } from './redis-address.ts';

const openTimeoutMs = 5_000;
/** Its timer is left behind where the socket is closed already, and the process would live as long. */
const disconnectTimeout = 50;
const reconnectMs = { first: 50, most: 2_000 };

/** A queue in Redis. One connection that all producers share; each worker and each reader of events adds a blocking one. */
export async function openRedis(url: string, log: Log): Promise<Backend> {
  const address = addressOf(url);
  let opened = false;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 3_000,
    disconnectTimeout,
    maxRetriesPerRequest: null,
    retryStrategy: times => (opened ? Math.min(reconnectMs.first * 2 ** times, reconnectMs.most) : null),
  });
  // Each call that waits for it to come back listens here; on the client itself BullMQ counts the listeners.
  const back = new EventEmitter().setMaxListeners(0);
  let reason = '';
  redis.on('error', error => {
    reason = messageOf(error);
  });
  try {
    await withTimeout(redis.connect(), openTimeoutMs);
    await warnOfSettings(redis, address, log);
  } catch (error) {
    redis.disconnect();
    const text = reason || messageOf(error);
    if (/NOAUTH|WRONGPASS|invalid password/i.test(text))
      throw new UsageError(`Redis at ${address} refuses the user or password in RINGNECK_QUEUE_URL`);
    throw new QueueUnavailable(
      `Redis at ${address} cannot be reached (${text}); start it, or unset RINGNECK_QUEUE_URL for the embedded queue`,
    );
  }
  opened = true;
  let away = false;
  redis.on('close', () => {
    if (opened && !away) log.warn({ redis: address }, 'Redis is away, trying again until it is back');
    away = true;
  });
  redis.on('ready', () => {
    if (away) log.info({ redis: address }, 'Redis is back');
    away = false;
    back.emit('ready');
  });

  return {
    kind: 'redis',
    factory: (name, options, use) =>
      createRedisBackend(name, { ...options, connection: redis } as QueueBaseOptions<ConnectionOptions>, use),
    // The jobs of a worker that was killed run again after 20 to 40 seconds. New jobs announce themselves: the first is for a Redis that has
    // lost what announced them, in seconds.
    worker: { drainDelay: 10, lockDuration: 20_000, stalledInterval: 10_000 },
    togetherFrom: 2,
    // A command given now would wait in memory, and come true long after we said that it failed.
    ready: async signal => redis.status === 'ready' || once(back, 'ready', { signal }),
    ping: async () => void (await redis.ping()),
    claim: (prefix, claim) => takeLease(redis, prefix, claim),
    closing: () => {
      opened = false;
    },
    end: async () => redis.disconnect(),
  };
}

async function warnOfSettings(redis: Redis, address: string, log: Log): Promise<void> {
  const info = await withTimeout(redis.info(), openTimeoutMs);
  const setting = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim();
  const policy = setting('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    log.warn({ redis: address, policy }, 'Redis may drop jobs when its memory is full: set maxmemory-policy noeviction');
  }
  if (setting('aof_enabled') === '0') log.warn({ redis: address }, 'Redis may forget jobs when it is killed: set appendonly yes');
}
