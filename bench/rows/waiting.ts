import { join } from 'node:path';
import { runTask } from '../child.ts';
import { makeFolder, type PassCost, runBackfill, warehouseIn, whileServing } from '../pipeline.ts';
import { ensureRecording, HEART_RATE } from '../recording.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';
import type { Cost } from '../task.ts';

const COLLECTIONS = ['daily_activity', 'sleep', 'daily_sleep', 'daily_readiness', 'daily_stress', 'daily_spo2', HEART_RATE];
const DELAY_MS = 100;
const LIMIT = 0.6;

interface Read {
  things: number;
  hash: string;
}

/** A network where each answer takes 100 ms, against one chain of pages for each account. */
export async function measureWaiting(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.waitingYears, COLLECTIONS);
  const ours: PassCost[] = [];
  const limit: (Cost & Read & { requests: number })[] = [];
  for (let round = 0; round < bench.rounds; round++) {
    const scratch = bench.newFolder();
    await whileServing({ recording, collections: COLLECTIONS, delayMs: DELAY_MS }, async url => {
      const folder = await makeFolder({ data: join(scratch, 'data'), url }, recording.users);
      ours.push(await runBackfill(folder, recording, COLLECTIONS));
      const { users, from, to } = recording;
      limit.push(await runTask('fetch-chains', { url, users, from, to, collections: COLLECTIONS }));
      const { things, hash } = limit.at(-1)!;
      ensureEqual('waiting', await runTask<Read>('hash-identities', { path: warehouseIn(folder), collections: COLLECTIONS }), {
        things,
        hash,
      });
    });
    const requests = `${ours.at(-1)!.requests} and ${limit.at(-1)!.requests} requests`;
    bench.say(`waiting ${round + 1}: ours ${showCost(ours.at(-1)!)}; limit ${showCost(limit.at(-1)!)}; ${requests}`);
  }
  return [
    {
      what: `${bench.waitingYears} user-years of activity, sleep, daily_sleep, readiness, stress, SpO2 and heart rate, ${DELAY_MS} ms for each answer`,
      against: 'one chain of pages for each user, parsed and not stored',
      limit: `wall ${LIMIT}×`,
      measured: `wall ${showRatio(ours, limit, 'wall')}`,
      holds: ratioOf(ours, limit, 'wall') <= LIMIT,
    },
  ];
}
