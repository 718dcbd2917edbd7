import { join } from 'node:path';
import { runTask } from '../child.ts';
import { type Bench, inMegabytes, median, type Row } from '../row.ts';
import type { Planned } from '../tasks/plan.ts';

const LIMIT = { peak: 400e6, writeMs: 250 };
const TO = '2024-12-31';

/** The plan of a backfill of many years of many people: its memory, and what events notice of it. */
export async function measurePlanning(bench: Bench): Promise<Row[]> {
  const rounds: Planned[] = [];
  for (let round = 0; round < bench.sizeRounds; round++) {
    const data = join(bench.newFolder(), 'data');
    rounds.push(await runTask<Planned>('plan', { data, accounts: bench.planAccounts, years: 12, to: TO }));
    const { windows, wall, peak, writes } = rounds.at(-1)!;
    bench.say(
      `planning ${round + 1}: ${windows} windows in ${wall.toFixed(1)} s; ${inMegabytes(peak)}; ${writes.length} live writes, the longest ${Math.max(...writes).toFixed(0)} ms`,
    );
  }
  const peak = Math.max(...rounds.map(planned => planned.peak));
  const longest = Math.max(...rounds.flatMap(({ writes }) => writes));
  const usual = median(rounds.flatMap(({ writes }) => writes));
  return [
    {
      what: `planning 12 years of ${bench.planAccounts} people, ${rounds[0]!.windows.toLocaleString('en')} windows, queue embedded`,
      against: 'peak memory (RSS) of the process; the longest wait of a live write meanwhile',
      limit: `${inMegabytes(LIMIT.peak)}; ${LIMIT.writeMs} ms`,
      measured: `${inMegabytes(peak)}; ${longest.toFixed(0)} ms (median ${usual.toFixed(0)} ms), in ${median(rounds.map(({ wall }) => wall)).toFixed(1)} s`,
      holds: peak <= LIMIT.peak && longest <= LIMIT.writeMs,
    },
  ];
}
