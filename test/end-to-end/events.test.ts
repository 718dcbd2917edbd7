import { describe, expect, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { oneOfEach } from '../service/documents.ts';
import { type EventHarness, openEventHarness } from '../support/event-harness.ts';
import { eventRound } from '../support/event-rounds.ts';
import { randomFrom } from '../support/random-documents.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { isWhole, seed } from '../support/whole.ts';

const folder = tempFolder();
const delays = { unreadable: [1, 2, 3], confirm: 1, confirmDelete: 1, failed: [1, 2, 3], crowded: 50 };

const stores = [
  ['embedded', async (): Promise<string | undefined> => undefined],
  [
    'redis',
    async () => {
      const redis = await startRedis();
      onTestFinished(() => redis.remove());
      return redis.url;
    },
  ],
] as const;

describe.each(stores.filter(([name]) => name === 'embedded' || (hasRedis && isWhole)))('with the queue %s', (_, start) => {
  async function open(settings: { specificationOnly?: boolean } = {}): Promise<EventHarness> {
    const queueUrl = await start();
    const harness = await openEventHarness(folder, { delays, settings, ...(queueUrl ? { queueUrl } : {}) });
    onTestFinished(() => harness.close());
    return harness;
  }

  test('an event of each kind brings its document', async () => {
    const harness = await open();
    const ada = await harness.person('ada', structuredClone(oneOfEach));
    for (const [path, [document]] of Object.entries(oneOfEach)) {
      await ada.announce({ event_type: 'create', data_type: path.toLowerCase(), object_id: String(document!.id) });
    }
    await harness.settled(Object.keys(oneOfEach).length);
    expect(harness.lines.map(({ outcome }) => outcome)).toEqual(Object.keys(oneOfEach).map(() => 'stored'));
    for (const path of Object.keys(oneOfEach)) {
      expect(await harness.rows(`SELECT count(*) AS rows FROM "${path.toLowerCase()}"`), path).toEqual([{ rows: 1 }]);
    }
  });

  test.each([false, true])(
    'documents that change while they are fetched, announced one to five times and in any order, end as the service has them; specification only: %s',
    async specificationOnly => {
      const harness = await open({ specificationOnly });
      for (let round = 1; round <= (isWhole ? 4 : 2); round++)
        await eventRound(harness, `round-${seed + round}`, randomFrom(seed + round), !specificationOnly);
      expect(await findBroken(sql => harness.pipeline.warehouse.read(sql))).toEqual([]);
    },
  );
});
