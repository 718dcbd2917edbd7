import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { openKillSetting } from '../support/kill-rounds.ts';
import { backfillRound, eventRound } from '../support/redis-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

describe.skipIf(!hasRedis)('Redis is lost, restored, failed over, read-only or full at random moments', () => {
  test('a backfill ends with everything', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    const setting = await openKillSetting(folder);
    onTestFinished(() => setting.close());
    // With an odd one it also loses all that waits.
    await backfillRound(setting, redis, 1);
  });

  test('each event that was acknowledged has its outcome', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await eventRound(folder, redis, 1, 2);
  }, 400_000);
});
