import { expect, test } from 'vitest';
import { startSweep } from '../../../jobs/sweeps/sweep.ts';
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

test.each([
  ['alone', [night], ['ada'], undefined, '2025-02-13'],
  ['beside one who was added since', [night], ['ada', 'bob'], ['ada', 'bob'], '2025-02-13'],
  ['beside one who was read since', [night, bobs], ['ada', 'bob'], ['ada', 'bob'], '2025-02-13'],
  ['beside one who was read since, nobody being named', [night, bobs], ['ada', 'bob'], undefined, '2025-02-13'],
  ['whose heart rate alone was read since', [night, rates], ['ada'], undefined, '2025-02-13'],
  ['who is not asked for', [night, bobs], ['ada', 'bob'], ['bob'], '2025-03-08'],
])('the sweep after weeks in which nobody was here goes back to the last night of an account %s', async (_, runs, people, users, from) => {
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
  const pipeline = await pipelineOf(warehouse, NOW);
  const { run } = await startSweep(pipeline, { kind: 'sweep', days: 3, collections, ...(users ? { users } : {}) });
  expect(run.request).toMatchObject({ from, to: '2025-03-11' });
});
