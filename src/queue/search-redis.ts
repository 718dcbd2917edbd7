import { Redis } from 'ioredis';
import { messageOf, TryLaterError } from '../base/errors.ts';

interface Needle {
  what: 'name' | 'service id' | 'token';
  text: string;
}

/**
 * Searches all that the queues of one warehouse hold in a Redis: the names of their keys and everything in them.
 * @throws TryLaterError naming host and port, never the password
 */
export async function searchRedis(
  { url, address, prefix, warehouseId }: { url: string; address: string; prefix: string; warehouseId: string },
  words: readonly Needle[],
): Promise<{ what: Needle['what']; where: string }[]> {
  const redis = new Redis(url, { lazyConnect: true, connectTimeout: 5_000, maxRetriesPerRequest: 1, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    const places = new Map<string, { what: Needle['what']; where: string }>();
    const escaped = prefix.replaceAll(/[[\]*?\\^]/g, '\\$&');
    for await (const keys of redis.scanStream({ match: `${escaped}:*-${warehouseId}*`, count: 500 }) as AsyncIterable<string[]>) {
      for (const key of keys) {
        const content = JSON.stringify([key, await readKey(redis, key)]);
        // What a job holds is JSON already, and in it the event as text: without its marks of quotation each word is one.
        const plain = content.replaceAll('\\', '');
        for (const { what, text } of words) {
          const isThere = what === 'name' ? namesUser(plain, text) : plain.includes(text.replaceAll('\\', ''));
          const where = key.split(':')[1] ?? key;
          if (isThere) places.set(`${what} ${where}`, { what, where: `the queue ${where}` });
        }
      }
    }
    return [...places.values()];
  } catch (error) {
    throw new TryLaterError(`Redis at ${address} cannot be searched (${messageOf(error)})`, { cause: error });
  } finally {
    redis.disconnect();
  }
}

/** What jobs are of may be called as an account is: it is named as a user. */
function namesUser(plain: string, name: string): boolean {
  const text = name.replaceAll('.', '\\.');
  return new RegExp(`"(userId|user_id)":"${text}"|"users":\\[[^\\]]*"${text}"`).test(plain);
}

async function readKey(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'string':
      return redis.get(key);
    case 'hash':
      return redis.hgetall(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1');
    case 'stream':
      return redis.xrange(key, '-', '+');
    default:
      return null;
  }
}
