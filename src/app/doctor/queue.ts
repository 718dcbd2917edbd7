import { messageOf } from '../../base/errors.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

const ANSWER_MS = 5_000;

/** Whether Redis answers, and would keep jobs through a crash and a full memory. */
export async function checkQueue(url: string): Promise<CheckResult[]> {
  const { checkRedis } = await import('../../queue/check-redis.ts');
  try {
    const { address, version, appendOnly, policy } = await checkRedis(url, ANSWER_MS);
    const results = [ok('queue', `Redis ${version ?? ''} at ${address} answers`.replace('  ', ' '))];
    if (appendOnly === false) {
      const fix = 'set appendonly yes in redis.conf (or: redis-cli config set appendonly yes)';
      results.push(warn('queue', 'Redis may forget jobs when it is killed', fix));
    }
    if (policy !== undefined && policy !== 'noeviction') {
      const fix = 'set maxmemory-policy noeviction in redis.conf (or: redis-cli config set maxmemory-policy noeviction)';
      results.push(warn('queue', `Redis may drop jobs when its memory is full (maxmemory-policy ${policy})`, fix));
    }
    return results;
  } catch (error) {
    return [fail('queue', messageOf(error), 'start it, or unset RINGNECK_QUEUE_URL for the embedded queue')];
  }
}
