import { join } from 'node:path';
import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { eventKillRound } from '../support/event-kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

describe('kill -9 under a stream of events: each one that was answered 2xx is applied', () => {
  test('embedded', () => eventKillRound({ folder: join(folder, 'embedded'), seed: 22, kills: 3, deletes: 'once' }), 240_000);

  test.skipIf(!hasRedis)(
    'with Redis, which is killed too',
    async () => {
      const redis = await startRedis();
      onTestFinished(() => redis.remove());
      await eventKillRound({ folder: join(folder, 'redis'), seed: 1608, kills: 1, redis, deletes: 'once' });
    },
    240_000,
  );
});
