import { join } from 'node:path';
import { makeFolder, runBackfill, whileServing } from '../pipeline.ts';
import { ensureRecording } from '../recording.ts';
import { hasRedis, startRedis } from '../redis.ts';
import { type Bench, inMegabytes, median, type Row } from '../row.ts';

const COLLECTIONS = ['daily_activity'];
const LIMIT = { embedded: 700e6, Redis: 450e6, growth: 1.2 };

/** Peak resident memory of the process that backfills, of a size and of five times that size. */
export async function measureMemory(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.years, COLLECTIONS);
  const sizes = [bench.years, bench.manyYears];
  const rows: Row[] = [];
  for (const queue of hasRedis ? (['embedded', 'Redis'] as const) : (['embedded'] as const)) {
    const peaks: number[][] = sizes.map(() => []);
    let samples: number[] = [];
    for (let round = 0; round < bench.sizeRounds; round++) {
      samples = [];
      for (const [i, accounts] of sizes.entries()) {
        const scratch = bench.newFolder();
        const redis = queue === 'Redis' ? await startRedis(join(scratch, 'redis')) : undefined;
        try {
          await whileServing({ recording, collections: COLLECTIONS, accounts }, async url => {
            const users = Array.from({ length: accounts }, (_, n) => `user-${n + 1}`);
            const folder = await makeFolder({ data: join(scratch, 'data'), url, queueUrl: redis?.url }, users);
            const pass = await runBackfill(folder, recording, COLLECTIONS);
            peaks[i]!.push(pass.peak);
            samples.push(pass.samples);
          });
        } finally {
          await redis?.stop();
        }
        bench.say(`memory, ${queue}, ${round + 1}, ${accounts} user-years: ${inMegabytes(peaks[i]!.at(-1)!)}`);
      }
    }
    const [few, many] = peaks.map(median) as [number, number];
    const highest = Math.max(...peaks.flat());
    const [fewSamples, manySamples] = samples.map(count => `${(count / 1e6).toFixed(1)} M`);
    rows.push({
      what: `peak memory (RSS) of the pipeline, queue ${queue}`,
      against: `${fewSamples} and ${manySamples} samples, each other`,
      limit: `${inMegabytes(LIMIT[queue])}; ${LIMIT.growth}×`,
      measured: `${inMegabytes(few)} and ${inMegabytes(many)} (highest ${inMegabytes(highest)}); ${(many / few).toFixed(2)}×`,
      holds: highest <= LIMIT[queue] && many / few <= LIMIT.growth,
    });
  }
  return rows;
}
