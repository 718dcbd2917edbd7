import { setTimeout } from 'node:timers/promises';
import { ACCOUNTS, withEventHarness } from '../event-harness.ts';
import { QUEUES } from '../redis.ts';
import { type Bench, median, type Row } from '../row.ts';

const LIMIT = { embedded: 12, Redis: 6 };
/** What the last events leave to be done is over by then. */
const QUIET_AFTER_MS = 10_000;
const HOUR_SECONDS = 3600;

/** What `up` costs while no event comes and no schedule is due. */
export async function measureIdle(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const hours: number[] = [];
    for (let round = 0; round < bench.eventRounds; round++) {
      const cpu = await withEventHarness(bench, queue, async ({ up }) => {
        await setTimeout(QUIET_AFTER_MS);
        const before = up.cpu();
        await setTimeout(bench.idleSeconds * 1000);
        return up.cpu() - before;
      });
      hours.push((cpu * HOUR_SECONDS) / bench.idleSeconds);
      bench.say(`idle, ${queue}, ${round + 1}: CPU ${cpu.toFixed(2)} s in ${bench.idleSeconds} s`);
    }
    rows.push({
      what: `\`up\` with ${ACCOUNTS} accounts, no event and no schedule due, queue ${queue}`,
      against: `an hour, by ${bench.idleSeconds} s of it`,
      limit: `CPU ${LIMIT[queue]} s`,
      measured: `CPU ${median(hours).toFixed(1)} s`,
      holds: median(hours) <= LIMIT[queue],
    });
  }
  return rows;
}
