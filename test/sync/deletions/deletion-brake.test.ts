import { expect, test } from 'vitest';
import { windowEntry } from '../../../src/ledger/windows.ts';
import { account, at, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { resourceNamed } from '../../support/warehouse.ts';

const folder = tempFolder();

test('what a run has removed before it was interrupted counts when it goes on', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const documents = Array.from({ length: 40 }, (_, i) => ({ id: `stress-${i}`, day: `2025-03-0${1 + (i % 9)}`, day_summary: 'normal' }));
  await warehouse.storeDocuments({
    userId: 'ada',
    resource: resourceNamed('daily_stress'),
    requestedAt: warehouse.clock.lease(),
    documents,
  });
  const request = { kind: 'backfill', from: '2025-01-01', to: '2025-06-29', users: ['ada'], collections: ['daily_stress'], refresh: true };
  const run = {
    kind: 'backfill',
    started_at: at('2025-07-01T12:00:00Z'),
    ended_at: null,
    state: 'running',
    request: JSON.stringify(request),
  };
  const window = (startAt: string, endAt: string) => ({
    runId: 'r1',
    userId: 'ada',
    collection: 'daily_stress',
    startAt: at(`${startAt}T00:00:00Z`),
    endAt: at(`${endAt}T00:00:00Z`),
  });
  const open = window('2025-04-01', '2025-06-30');
  await warehouse.record([
    { table: 'sync.runs', key: { run_id: 'r1' }, row: run },
    windowEntry(window('2025-01-01', '2025-04-01'), { outcome: 'complete', removed: 10, committedAt: at('2025-07-01T12:00:01Z') }),
    windowEntry(open, { outcome: null }),
  ]);
  const pipeline = await pipelineOf(warehouse, Date.parse('2025-07-01T12:10:00Z'), ['daily_stress']);
  const { brake } = pipeline.runs.find('r1')!;
  // Ten of fifty are gone: one more is more than a fifth.
  const share = brake.share(warehouse, open);
  expect(await share.take(1, 'day')).toBe(false);
  expect(await share.take(0, 'day')).toBe(true);
  // Of another account nothing is.
  expect(await brake.share(warehouse, { ...open, userId: 'ben' }).take(10, 'day')).toBe(true);
});

test('windows that are read side by side share what a run may remove; what one gives back another may take', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const pipeline = await pipelineOf(warehouse, Date.parse('2025-07-01T12:00:00Z'), ['daily_stress']);
  const run = await pipeline.runs.start({
    kind: 'backfill',
    from: '2025-01-01',
    to: '2025-06-29',
    users: ['ada'],
    collections: ['daily_stress'],
    refresh: true,
  });
  const shares = pipeline.take().map(window => run.brake.share(warehouse, window));
  expect(shares).toHaveLength(2);
  expect(await Promise.all(shares.map(share => share.take(6, 'day')))).toEqual([true, false]);
  shares[0]!.keep(4);
  expect(await shares[1]!.take(6, 'day')).toBe(true);
  shares[1]!.giveBack();
  expect(await shares[0]!.take(10, 'day')).toBe(true);
});
