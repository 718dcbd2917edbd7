import { dirname, join } from 'node:path';
import { resources } from '../../schema/index.ts';
import { addDays } from '../../schema/instant.ts';
import type { RunReport } from '../../src/app/follow-run.ts';
import { runTask } from '../child.ts';
import { runCommand } from '../command.ts';
import type { Folder } from '../folder.ts';
import { makeFolder, warehouseIn, whileServing } from '../pipeline.ts';
import { ensureRecording, HEART_RATE } from '../recording.ts';
import { QUEUES, withQueue } from '../redis.ts';
import { type Bench, median, type Row, showCost } from '../row.ts';
import type { Cost } from '../task.ts';

const EVERYTHING = [...resources.map(({ name }) => name), HEART_RATE];
const FROM = '2024-01-01';
const DAYS = 365;
/** Who is asked: the others left, and their rows stayed. What is asked is then the same at every size. */
const ACCOUNTS = 5;
const COMMANDS = {
  'settled backfill of a year': ['backfill', '--from', FROM, '--to', addDays(FROM, DAYS - 1)],
  nightly: ['nightly'],
};
const LIMIT = { wall: 2, cpu: 2, growth: 1.25 };

/** A command that finds nothing new, where a snapshot is there: what it costs must not grow with the warehouse. */
export async function measureSettled(bench: Bench): Promise<Row[]> {
  // Its days are others than those that are asked for: all answers are empty.
  const recording = ensureRecording(1, EVERYTHING);
  const costs = new Map<string, { size: string; rounds: Cost[] }[]>();
  for (const people of bench.settledPeople) {
    const scratch = bench.newFolder();
    const data = join(scratch, 'data');
    await whileServing({ recording, collections: EVERYTHING, accounts: ACCOUNTS }, async url => {
      const users = Array.from({ length: ACCOUNTS }, (_, n) => `user-${n}`);
      const { data: filled } = await makeFolder({ data, url }, users);
      const path = warehouseIn({ data: filled, url });
      const { samples } = await runTask<{ samples: number }>('fill-warehouse', { path, people, days: DAYS, settled: EVERYTHING });
      const size = `${(samples / 1e6).toFixed(0)} M`;
      for (const queue of QUEUES) {
        await withQueue(queue, join(dirname(data), `redis-${queue}`), async queueUrl => {
          const folder: Folder = { data, url, queueUrl };
          // What a first time costs is no habit: the queue's database, what the service has of no day.
          for (const command of Object.values(COMMANDS)) await runCommand(folder, ...command);
          await runCommand(folder, 'snapshot');
          for (const [what, command] of Object.entries(COMMANDS)) {
            const rounds: Cost[] = [];
            for (let round = 0; round < bench.rounds; round++) {
              const { cost, report } = await runCommand<RunReport>(folder, ...command);
              if (report.samples || report.removed || report.failures.length)
                throw new Error(`${what} was to find nothing new: ${JSON.stringify(report)}`);
              rounds.push(cost);
              bench.say(`${what}, ${queue}, ${size} rows, ${round + 1}: ${showCost(cost)}; ${report.requests} requests`);
            }
            const key = `${what}, queue ${queue}`;
            costs.set(key, [...(costs.get(key) ?? []), { size, rounds }]);
          }
        });
      }
    });
  }
  return [...costs].map(([what, sizes]): Row => {
    const medians = sizes.map(({ rounds }) => ({
      wall: median(rounds.map(({ wall }) => wall)),
      cpu: median(rounds.map(({ cpu }) => cpu)),
    }));
    const growth = medians.at(-1)!.cpu / medians[0]!.cpu;
    return {
      what: `${what}, finds nothing new where a snapshot is there: the whole process`,
      against: `${ACCOUNTS} accounts beside ${sizes.map(({ size }) => size).join(', ')} rows`,
      limit: `${LIMIT.wall} s, CPU ${LIMIT.cpu} s; CPU ${LIMIT.growth}× from the smallest to the largest`,
      measured: `${medians.map(({ wall, cpu }) => `${wall.toFixed(2)} s, CPU ${cpu.toFixed(2)} s`).join('; ')}; ${growth.toFixed(2)}×`,
      holds: growth <= LIMIT.growth && medians.every(({ wall, cpu }) => wall <= LIMIT.wall && cpu <= LIMIT.cpu),
    };
  });
}
