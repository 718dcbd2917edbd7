import { join } from 'node:path';
import { runTask } from '../child.ts';
import { makeFolder, PAGE_SIZE, runBackfill, warehouseIn, whileServing } from '../pipeline.ts';
import { ensureRecording } from '../recording.ts';
import { type Bench, median, type Row } from '../row.ts';

const COLLECTIONS = ['daily_activity'];
const LIMIT = 1.75;

/** The closed file by its rows of samples: stored one user after another, and as the pipeline does it, all users side by side. */
export async function measureDisk(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.years, COLLECTIONS);
  const bytesOfRow = async (path: string) => {
    const { bytes, rows } = await runTask<{ bytes: number; rows: number }>('measure-disk', { path, table: 'daily_activity_met' });
    return bytes / rows;
  };
  const ordered: number[] = [];
  const together: number[] = [];
  for (let round = 0; round < bench.sizeRounds; round++) {
    const scratch = bench.newFolder();
    const path = join(scratch, 'ordered', 'warehouse.duckdb');
    await runTask('store-answers', { recording, collection: COLLECTIONS[0], path, pageSize: PAGE_SIZE });
    ordered.push(await bytesOfRow(path));
    await whileServing({ recording, collections: COLLECTIONS }, async url => {
      const folder = await makeFolder({ data: join(scratch, 'data'), url }, recording.users);
      await runBackfill(folder, recording, COLLECTIONS);
      together.push(await bytesOfRow(warehouseIn(folder)));
    });
    bench.say(
      `disk ${round + 1}: ${ordered.at(-1)!.toFixed(2)} bytes a row in the order of users, ${together.at(-1)!.toFixed(2)} side by side`,
    );
  }
  return [
    {
      what: 'bytes on disk for each row of samples, daily_activity with its documents, stored in the order of users',
      against: '–',
      limit: String(LIMIT),
      measured: `${median(ordered).toFixed(2)} (a backfill of all users side by side, ledger included: ${median(together).toFixed(2)})`,
      holds: median(ordered) <= LIMIT,
    },
  ];
}
