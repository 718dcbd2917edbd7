import { expect, test } from 'vitest';
import { startSweep } from '../../../jobs/sweeps/sweep.ts';
import { addDays } from '../../../schema/instant.ts';
import type { Warehouse } from '../../../src/warehouse/warehouse.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { account, at, pipelineOf, warehouseWith } from '../literal-pipeline.ts';

const folder = tempFolder();
const NOW = Date.parse('2025-03-10T12:00:00Z');
const collections = ['sleep', 'heart_rate'];

const night = { kind: 'nightly', at: '2025-02-14T03:30:00Z', from: '2025-02-01', to: '2025-02-15', users: ['ada'], collections };
const bobs = { kind: 'backfill', at: '2025-03-10T11:00:00Z', from: '2025-01-01', to: '2025-03-10', users: ['bob'], collections };
const rates = {
  kind: 'sweep',
  at: '2025-03-10T11:00:00Z',
  from: '2025-03-09',
  to: '2025-03-11',
  users: ['ada'],
  collections: ['heart_rate'],
};

async function warehouseAfter(runs: readonly { kind: string; at: string }[], people: readonly string[]): Promise<Warehouse> {
  const warehouse = await warehouseWith(
    folder,
    people.map(name => account(name)),
  );
  await warehouse.record(
    runs.map(({ kind, at: when, ...request }, i) => ({
      table: 'sync.runs',
      key: { run_id: `r${i}` },
      row: {
        kind,
        started_at: at(when),
        ended_at: at(when),
        state: 'complete',
        request: JSON.stringify({ kind, refresh: true, ...request }),
      },
    })),
  );
  return warehouse;
}

test.each([
  ['alone', [night], ['ada'], undefined, '2025-02-13'],
  ['beside one who was added since', [night], ['ada', 'bob'], ['ada', 'bob'], '2025-02-13'],
  ['beside one who was read since', [night, bobs], ['ada', 'bob'], ['ada', 'bob'], '2025-02-13'],
  ['beside one who was read since, nobody being named', [night, bobs], ['ada', 'bob'], undefined, '2025-02-13'],
  ['whose heart rate alone was read since', [night, rates], ['ada'], undefined, '2025-02-13'],
  ['who is not asked for', [night, bobs], ['ada', 'bob'], ['bob'], '2025-03-08'],
])('the sweep after weeks in which nobody was here goes back to the last night of an account %s', async (_, runs, people, users, from) => {
  const warehouse = await warehouseAfter(runs, people);
  const pipeline = await pipelineOf(warehouse, NOW);
  const { run } = await startSweep(pipeline, { kind: 'sweep', days: 3, collections, ...(users ? { users } : {}) });
  expect(run.request).toMatchObject({ from, to: '2025-03-11' });
});

const sweep = { ...night, kind: 'sweep', at: '2025-03-10T11:00:00Z', from: '2025-02-13', to: '2025-03-11' };
const short = { ...night, kind: 'backfill', at: '2025-03-10T10:00:00Z', from: '2025-03-10', to: '2025-03-11' };
const yesterdays = { ...night, at: '2025-03-09T03:30:00Z', from: '2025-02-02', to: '2025-03-10' };

const day = (number: number) => new Date(Date.UTC(2025, 1, 14 + number)).toISOString().slice(0, 10);

test('a night goes no further back than weeks where shorter ones have been the rule for longer', async () => {
  const old = { ...night, at: '2024-11-01T03:30:00Z', from: '2024-10-20', to: '2024-11-02' };
  const rule = Array.from({ length: 120 }, (_, n) => ({ ...night, at: `${day(n - 97)}T03:30:00Z`, from: day(n - 98), to: day(n - 96) }));
  const pipeline = await pipelineOf(await warehouseAfter([old, ...rule], ['ada']), NOW);
  const { run } = await startSweep(pipeline, { kind: 'nightly', days: 14, collections });
  expect(run.request).toMatchObject({ from: '2025-02-01', to: '2025-03-11' });
});

test.each([
  ['after weeks in which nobody was here as far back as the night after the last one would have gone', [night], '2025-02-02'],
  ['no less far where a sweep has read the days since', [night, sweep], '2025-02-02'],
  ['no less far where a backfill of the last days has come between', [night, short], '2025-02-02'],
  ['no less far where a night of few days has come between', [night, { ...short, kind: 'nightly' }], '2025-02-02'],
  ['from a backfill that went as far back itself', [night, { ...short, from: '2025-02-02' }], '2025-02-25'],
  ['no further than its own days where there was one the day before', [night, yesterdays], '2025-02-25'],
])('a night goes back, %s', async (_, runs, from) => {
  const pipeline = await pipelineOf(await warehouseAfter(runs, ['ada']), NOW);
  const { run } = await startSweep(pipeline, { kind: 'nightly', days: 15, collections });
  expect(run.request).toMatchObject({ from, to: '2025-03-11' });
});

/** Nights of 14 days, one after the other. */
const nights = (first: string, last: string) => {
  const found: (typeof night)[] = [];
  for (let at = first; at <= last; at = addDays(at, 1)) {
    found.push({ ...night, at: `${at}T03:30:00Z`, from: addDays(at, -12), to: addDays(at, 1) });
  }
  return found;
};
const byHand = (at: string, from: string, to: string) => ({ ...night, kind: 'backfill', at: `${at}T10:00:00Z`, from, to });

test.each([
  [
    'a backfill of long ago that ended weeks without nights',
    [...nights('2024-12-01', '2024-12-24'), byHand('2025-01-02', '2024-12-05', '2025-01-03'), ...nights('2025-01-03', '2025-03-09')],
    '2025-02-26',
  ],
  [
    'backfills of the last days that take the place of nights',
    [...nights('2024-01-01', '2024-01-01'), ...nights('2024-02-01', '2025-03-09').map(run => ({ ...run, kind: 'backfill' }))],
    '2025-02-26',
  ],
  [
    'short readings before and after weeks in which its account was paused',
    [
      ...nights('2024-12-01', '2025-01-08'),
      byHand('2025-01-09', '2025-01-09', '2025-01-10'),
      byHand('2025-03-08', '2025-03-08', '2025-03-09'),
    ],
    '2024-12-28',
  ],
  [
    'a backfill of days to come that was followed by weeks without nights',
    [...nights('2025-01-01', '2025-01-08'), byHand('2025-01-08', '2025-01-01', '2025-04-30'), ...nights('2025-01-09', '2025-01-20')],
    '2025-01-09',
  ],
])('a night goes back as far as it should after %s', async (_, runs, from) => {
  const pipeline = await pipelineOf(await warehouseAfter(runs, ['ada']), NOW);
  const { run } = await startSweep(pipeline, { kind: 'nightly', days: 14, collections });
  expect(run.request).toMatchObject({ from, to: '2025-03-11' });
});
