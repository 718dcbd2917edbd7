import { join } from 'node:path';
import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { eventKillRound } from '../support/event-kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { someOf } from '../support/whole.ts';

const folder = tempFolder();
const ROUNDS = {
  embedded: () => eventKillRound({ folder: join(folder, 'embedded'), seed: 22, kills: 3, deletes: 'once' }),
  'with Redis, which is killed too': async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await eventKillRound({ folder: join(folder, 'redis'), seed: 1608, kills: 1, redis, deletes: 'once' });
  },
};
/** In the suite one of the two, on another day the other. */
const rounds = someOf(
  Object.entries(ROUNDS).filter(([name]) => hasRedis || name === 'embedded'),
  { more: 1 },
);

describe('kill -9 under a stream of events: each one that was answered 2xx is applied', () => {
  test.each(rounds)('%s', (_, round) => round(), 240_000);
});
