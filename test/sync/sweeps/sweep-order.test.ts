import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import type { AccountJob } from '../../../src/ledger/windows.ts';
import { openQueues } from '../../../src/queue/open.ts';
import { collectQueue } from '../../../src/sync/runs/runs.ts';
import { hasRedis, startRedis } from '../../queue/redis-server.ts';
import { account, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();

const stores = [
  ['embedded', async () => undefined],
  ...(hasRedis
    ? [
        [
          'Redis',
          async () => {
            const server = await startRedis();
            onTestFinished(() => server.remove());
            return server.url;
          },
        ] as const,
      ]
    : []),
] as const;

test.each(stores)('the accounts of a sweep go before those of a backfill that wait already, in a queue that is %s', async (kind, start) => {
  const url = await start();
  const queues = await openQueues({ ...(url ? { url } : {}), folder: join(folder, `queue-${kind}`), log: silentLog });
  onTestFinished(() => queues.close({ graceMs: 0 }));
  const warehouse = await warehouseWith(folder, [account('ada'), account('ben')]);
  const pipeline = Object.assign(await pipelineOf(warehouse, Date.parse('2025-03-10T12:00:00Z')), { queues });
  const request = { users: ['ada', 'ben'], collections: ['sleep', 'heart_rate'], refresh: true };
  const backfill = await pipeline.runs.start({ ...request, kind: 'backfill', from: '2024-12-01', to: '2025-03-10' });
  const sweep = await pipeline.runs.start({ ...request, kind: 'sweep', from: '2025-03-09', to: '2025-03-11' });
  const order: string[] = [];
  queues.worker<AccountJob>(
    await collectQueue(warehouse),
    async ({ data }) => {
      order.push(data.runId === sweep.id ? 'sweep' : data.runId === backfill.id ? 'backfill' : 'unknown');
    },
    { concurrency: 1 },
  );
  await until('all have had their turn', () => order.length === 4);
  expect(order).toEqual(['sweep', 'sweep', 'backfill', 'backfill']);
});
