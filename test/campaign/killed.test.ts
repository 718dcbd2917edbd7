import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { killRounds, openKillSetting } from '../support/kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rounds, seed } from './choice.ts';

const folder = tempFolder();

describe(`kill -9 in the middle of a backfill, seed ${seed}`, () => {
  test('embedded', async () => {
    await killRounds(await openKillSetting(join(folder, 'embedded')), { seed, kills: rounds });
  });

  test.skipIf(!hasRedis)('with Redis', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await killRounds(await openKillSetting(join(folder, 'redis'), redis.url), { seed, kills: rounds });
  });

  test.skipIf(!hasRedis)('together with Redis', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    const both = async () => {
      await redis.kill();
      await sleep(50);
      await redis.start();
    };
    await killRounds(await openKillSetting(join(folder, 'both'), redis.url), { seed, kills: rounds }, both);
  });
});
