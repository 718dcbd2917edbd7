import { join } from 'node:path';
import { describe, onTestFinished, test } from 'vitest';
import { hasRedis, type RedisServer, startRedis } from '../queue/redis-server.ts';
import { eventKillRound } from '../support/event-kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chosen, rounds, seed } from './choice.ts';

const folder = tempFolder();
const KILLS_A_ROUND = 10;

describe(`kill -9 under a stream of events, ${chosen}`, () => {
  async function play(name: string, kills: number, redis?: RedisServer): Promise<void> {
    for (let round = 0; round * KILLS_A_ROUND < kills; round++) {
      await eventKillRound({
        folder: join(folder, `${name}-${round}`),
        seed: seed + round,
        kills: Math.min(KILLS_A_ROUND, kills - round * KILLS_A_ROUND),
        deletes: 'any',
        ...(redis ? { redis } : {}),
      });
    }
  }

  test('embedded', () => play('embedded', Math.ceil(rounds / 2)));

  test.skipIf(!hasRedis)('with Redis, which is killed too', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await play('redis', rounds, redis);
  });
});
