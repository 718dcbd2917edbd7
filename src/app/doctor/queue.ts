import { messageOf } from '../../base/errors.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

const ANSWER_MS = 5_000;

/** Whether Redis answers, and would keep jobs through a crash and a full memory. */
export async function examineQueue(url: string): Promise<Finding[]> {
  const { examineRedis } = await import('../../queue/examine-redis.ts');
  try {
    const { address, version, appendOnly, policy } = await examineRedis(url, ANSWER_MS);
    const findings = [ok('queue', `Redis ${version ?? ''} at ${address} answers`.replace('  ', ' '))];
    if (appendOnly === false) {
      const mend = 'set appendonly yes in redis.conf (or: redis-cli config set appendonly yes)';
      findings.push(warn('queue', 'Redis may forget jobs when it is killed', mend));
    }
    if (policy !== undefined && policy !== 'noeviction') {
      const mend = 'set maxmemory-policy noeviction in redis.conf (or: redis-cli config set maxmemory-policy noeviction)';
      findings.push(warn('queue', `Redis may drop jobs when its memory is full (maxmemory-policy ${policy})`, mend));
    }
    return findings;
  } catch (error) {
    return [fail('queue', messageOf(error), 'start it, or unset RINGNECK_QUEUE_URL for the embedded queue')];
  }
}
