import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, type RedisServer, startRedis } from '../queue/redis-server.ts';
import { openKillSetting } from '../support/kill-rounds.ts';
import { backfillRound, eventRound } from '../support/redis-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { someOf } from '../support/whole.ts';

const folder = tempFolder();
const ROUNDS = {
  'a backfill ends with everything': async (redis: RedisServer) => {
    const setting = await openKillSetting(folder);
    onTestFinished(() => setting.close());
    // With an odd one it also loses all that waits.
    await backfillRound(setting, redis, 1);
  },
  'each event that was acknowledged has its outcome': (redis: RedisServer) => eventRound(folder, redis, 1, 2),
};

describe.skipIf(!hasRedis)('Redis is lost, restored, failed over, read-only or full at random moments', () => {
  // In the suite one of the two, on another day the other.
  test.each(someOf(Object.entries(ROUNDS), { more: 1 }))(
    '%s',
    async (_, round) => {
      const redis = await startRedis();
      onTestFinished(() => redis.remove());
      await round(redis);
    },
    400_000,
  );
});
