import { join } from 'node:path';
import { runTask } from '../child.ts';
import { HEART_RATE_PAGE_SIZE, PAGE_SIZE } from '../pipeline.ts';
import { ensureRecording, HEART_RATE } from '../recording.ts';
import { type Bench, median, type Row } from '../row.ts';
import type { Cost } from '../task.ts';

const MET = 'daily_activity';
const LIMIT = 4;

/** What one more row of heart rate costs, against one more MET sample with its share of the document: the write path alone. */
export async function measureHeartRate(bench: Bench): Promise<Row[]> {
  const recordings = { [HEART_RATE]: ensureRecording(bench.years, [HEART_RATE]), [MET]: ensureRecording(bench.years, [MET]) };
  const micros: Record<string, number[]> = { [HEART_RATE]: [], [MET]: [] };
  for (let round = 0; round < bench.rounds; round++) {
    for (const [collection, recording] of Object.entries(recordings)) {
      const pageSize = collection === HEART_RATE ? HEART_RATE_PAGE_SIZE : PAGE_SIZE;
      const store = (years: number) => {
        const job = { recording: { ...recording, users: recording.users.slice(0, years) }, collection, pageSize };
        return runTask<Cost & { samples: number }>('store-answers', { ...job, path: join(bench.newFolder(), 'warehouse.duckdb') });
      };
      const few = await store(Math.ceil(bench.years / 4));
      const many = await store(bench.years);
      micros[collection]!.push(((many.cpu - few.cpu) / (many.samples - few.samples)) * 1e6);
    }
    bench.say(
      `heart rate ${round + 1}: ${micros[HEART_RATE]!.at(-1)!.toFixed(2)} µs a row; MET ${micros[MET]!.at(-1)!.toFixed(2)} µs a sample`,
    );
  }
  const [ours, met] = [median(micros[HEART_RATE]!), median(micros[MET]!)];
  return [
    {
      what: `one more row of heart rate, JSON pages in memory to COMMIT: from ${Math.ceil(bench.years / 4)} to ${bench.years} user-years`,
      against: 'one more MET sample with its share of daily_activity, the same way',
      limit: `CPU ${LIMIT}×`,
      measured: `CPU ${(ours / met).toFixed(1)}× (${ours.toFixed(2)} / ${met.toFixed(2)} µs)`,
      holds: ours / met <= LIMIT,
    },
  ];
}
