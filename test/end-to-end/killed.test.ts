import { afterAll, beforeAll, describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { type KillSetting, killRounds, openKillSetting } from '../support/kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let setting: KillSetting;

beforeAll(async () => {
  setting = await openKillSetting(folder);
});

afterAll(() => setting.close());

describe.each(['embedded', 'redis'] as const)('kill -9 in the middle of a backfill, %s', kind => {
  test.skipIf(kind === 'redis' && !hasRedis)(
    'the same command again completes it, and the tables are those of an undisturbed run',
    async () => {
      const redis = kind === 'redis' ? await startRedis() : undefined;
      if (redis) onTestFinished(() => redis.remove());
      await killRounds(setting, { seed: 18, kills: 1, queueUrl: redis?.url });
    },
    180_000,
  );
});
