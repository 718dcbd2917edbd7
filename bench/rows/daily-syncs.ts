import { join } from 'node:path';
import { runTask } from '../child.ts';
import { COLLECTIONS, ensureRecording } from '../recording.ts';
import type { Bench, Row } from '../row.ts';
import type { Synced } from '../tasks/sync-daily.ts';

const PEOPLE = 20;
const LIMIT = { live: 3, snapshot: 2.5 };

/** How large the files are after days that came in piece by piece, as they do while `up` runs. */
export async function measureDailySyncs(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(PEOPLE, COLLECTIONS);
  const scratch = bench.newFolder();
  const job = {
    recording,
    days: bench.syncDays,
    path: join(scratch, 'data', 'warehouse.duckdb'),
    snapshot: join(scratch, 'snapshot.duckdb'),
  };
  const { syncs, samples, bytes, snapshotBytes, compacted } = await runTask<Synced>('sync-daily', job);
  const [live, snapshot] = [bytes / samples, snapshotBytes / samples];
  bench.say(
    `daily syncs: ${syncs} of ${PEOPLE} people in ${bench.syncDays} days, ${samples} rows of samples; ${bytes} and ${snapshotBytes} bytes; compacted ${compacted} times`,
  );
  return [
    {
      what: `bytes for each row of samples after ${bench.syncDays} days of ${PEOPLE} users’ syncs, four a day, with late edits; documents included`,
      against: `live file; snapshot (${(samples / 1e6).toFixed(1)} M rows)`,
      limit: `${LIMIT.live}; ${LIMIT.snapshot}`,
      measured: `${live.toFixed(2)}; ${snapshot.toFixed(2)} (compacted ${compacted} times)`,
      holds: live <= LIMIT.live && snapshot <= LIMIT.snapshot,
    },
  ];
}
