import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { type KillSetting, killRounds, openKillSetting } from '../support/kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chosen, rounds, seed } from './choice.ts';

const folder = tempFolder();
let setting: KillSetting;

beforeAll(async () => {
  setting = await openKillSetting(folder);
});

afterAll(() => setting.close());

describe(`kill -9 in the middle of a backfill, ${chosen}`, () => {
  test('embedded', async () => {
    await killRounds(setting, { seed, kills: rounds });
  });

  test.skipIf(!hasRedis)('with Redis', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await killRounds(setting, { seed, kills: rounds, queueUrl: redis.url });
  });

  test.skipIf(!hasRedis)('together with Redis', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    const meanwhile = async () => {
      await redis.kill();
      await sleep(50);
      await redis.start();
    };
    await killRounds(setting, { seed, kills: rounds, queueUrl: redis.url, meanwhile });
  });
});
