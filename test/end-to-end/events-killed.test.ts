import { join } from 'node:path';
import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { eventKillRound } from '../support/event-kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { isWhole, seed } from '../support/whole.ts';

const folder = tempFolder();

describe('kill -9 under a stream of events: each one that was answered 2xx is applied', () => {
  // At one of three moments, by the seed of the day.
  const when = isWhole ? { kills: 3 } : { kills: 1, first: seed % 3 };
  test('embedded', () => eventKillRound({ folder: join(folder, 'embedded'), seed: 22, ...when, deletes: 'once' }), 240_000);

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
