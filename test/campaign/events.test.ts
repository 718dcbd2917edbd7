import { describe, expect, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { openEventHarness } from '../support/event-harness.ts';
import { eventRound } from '../support/event-rounds.ts';
import { randomFrom } from '../support/random-documents.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chosen, rounds, seed } from './choice.ts';

const folder = tempFolder();
const delays = { unreadable: [1, 2, 3], confirm: 1, confirmDelete: 1, failed: [1, 2, 3], crowded: 50 };

describe.each([false, true])(`documents change while they are fetched, specification only: %s, ${chosen}`, specificationOnly => {
  async function play(queueUrl?: string): Promise<void> {
    const harness = await openEventHarness(folder, { delays, settings: { specificationOnly }, ...(queueUrl ? { queueUrl } : {}) });
    onTestFinished(() => harness.close());
    const random = randomFrom(seed);
    for (let round = 1; round <= 25 * rounds; round++) await eventRound(harness, `round-${round}`, random, !specificationOnly);
    expect(await findBroken(sql => harness.pipeline.warehouse.read(sql))).toEqual([]);
  }

  test('embedded', () => play());

  test.skipIf(!hasRedis)('with Redis', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await play(redis.url);
  });
});
