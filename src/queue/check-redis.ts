import { Redis } from 'ioredis';
import { messageOf, TryLaterError } from '../base/errors.ts';
import { withTimeout } from '../base/timeout.ts';
import { addressOf } from './redis-address.ts';

export interface RedisFacts {
  /** Host and port. */
  address: string;
  version: string | undefined;
  /** Undefined where it does not tell. */
  appendOnly: boolean | undefined;
  policy: string | undefined;
}

/**
 * Connects, asks how it is set up, and leaves. Within `ms`.
 * @throws TryLaterError naming host and port, never the password
 */
export async function checkRedis(url: string, ms: number): Promise<RedisFacts> {
  const address = addressOf(url);
  const redis = new Redis(url, { lazyConnect: true, connectTimeout: ms, maxRetriesPerRequest: 0, retryStrategy: () => null });
  let reason = '';
  redis.on('error', error => {
    reason = messageOf(error);
  });
  try {
    const info = await withTimeout(
      redis.connect().then(() => redis.info()),
      ms,
    );
    const fact = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim();
    const appendOnly = fact('aof_enabled');
    return {
      address,
      version: fact('redis_version'),
      appendOnly: appendOnly === undefined ? undefined : appendOnly === '1',
      policy: fact('maxmemory_policy'),
    };
  } catch (error) {
    throw new TryLaterError(`Redis at ${address} gives no answer (${reason || messageOf(error)})`, { cause: error });
  } finally {
    redis.disconnect();
  }
}
