import { join } from 'node:path';
import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { killRounds, openKillSetting } from '../support/kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

describe.each(['embedded', 'redis'] as const)('kill -9 in the middle of a backfill, %s', kind => {
  test.skipIf(kind === 'redis' && !hasRedis)(
    'the same command again completes it, and the tables are those of an undisturbed run',
    async () => {
      const redis = kind === 'redis' ? await startRedis() : undefined;
      if (redis) onTestFinished(() => redis.remove());
      await killRounds(await openKillSetting(join(folder, kind), redis?.url), { seed: 11, kills: 2 });
    },
    180_000,
  );
});
