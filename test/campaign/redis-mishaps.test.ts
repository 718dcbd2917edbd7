import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { openKillSetting } from '../support/kill-rounds.ts';
import { backfillRound, eventRound } from '../support/redis-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chosen, rounds, seed } from './choice.ts';

const folder = tempFolder();

describe.skipIf(!hasRedis)(`Redis is lost, restored, failed over, read-only or full at random moments, ${chosen}`, () => {
  test('a backfill ends with everything', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    const setting = await openKillSetting(folder);
    onTestFinished(() => setting.close());
    for (let round = 0; round < rounds; round++) await backfillRound(setting, redis, seed + round);
  });

  test('each event that was acknowledged has its outcome', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    for (let round = 0; round < Math.ceil(rounds / 4); round++) await eventRound(folder, redis, seed + round, 8);
  });
});
