import { allAccepted, type EventHarness, showSending, withEventHarness } from '../event-harness.ts';
import { BACKFILLED_TO } from '../events.ts';
import { QUEUES } from '../redis.ts';
import { type Bench, median, quantile, type Row } from '../row.ts';

const PER_SECOND = 50;
const LIMIT = { p50: 50, p95: 200, beside: 2.5 };

interface Lag {
  p50: number;
  p95: number;
}

/** From the acceptance of an event until its row is there for others to read: alone, and right afterwards while a backfill runs. */
export async function measureLive(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const alone: Lag[] = [];
    const beside: Lag[] = [];
    for (let round = 0; round < bench.eventRounds; round++) {
      await withEventHarness(bench, queue, async harness => {
        const say = (what: string) => (text: string) => bench.say(`${what}, ${queue}, ${round + 1}: ${text}`);
        alone.push(await measureLag(harness, bench.eventSeconds, say('live')));
        const backfill = harness.up.command('backfill', '--from', harness.recording.from, '--to', BACKFILLED_TO, '--refresh');
        try {
          beside.push(await measureLag(harness, bench.eventSeconds, say('live beside a backfill')));
          if (backfill.exitCode !== null) throw new Error(`the backfill ended too early, with exit code ${backfill.exitCode}`);
        } finally {
          backfill.kill('SIGKILL');
        }
        await harness.read();
      });
    }
    const [p50, p95] = [median(alone.map(lag => lag.p50)), median(alone.map(lag => lag.p95))];
    const [besideP50, besideP95] = [median(beside.map(lag => lag.p50)), median(beside.map(lag => lag.p95))];
    rows.push({
      what: `event accepted → row readable, ${PER_SECOND} events/s of all types for ${bench.eventSeconds} s, queue ${queue}`,
      against: '–',
      limit: `p50 ${LIMIT.p50} ms, p95 ${LIMIT.p95} ms`,
      measured: `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`,
      holds: p50 <= LIMIT.p50 && p95 <= LIMIT.p95,
    });
    rows.push({
      what: `the same while a backfill of the same accounts runs, queue ${queue}`,
      against: 'the minute before, without it',
      limit: `p95 ${LIMIT.beside}×`,
      measured: `p95 ${(besideP95 / p95).toFixed(2)}× (${besideP95.toFixed(0)} / ${p95.toFixed(0)} ms); p50 ${besideP50.toFixed(0)} ms`,
      holds: besideP95 <= LIMIT.beside * p95,
    });
  }
  return rows;
}

async function measureLag({ up, send }: EventHarness, seconds: number, say: (text: string) => void): Promise<Lag> {
  const before = up.settled.length;
  const count = PER_SECOND * seconds;
  const sending = await send(count, PER_SECOND);
  await up.untilSettled(before + count, 60_000);
  if (!allAccepted(sending)) throw new Error(`events were refused: ${JSON.stringify(sending.answers)}`);
  const waits = up.settled.slice(before).map(({ ms }) => ms);
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map(part => quantile(waits, part)) as [number, number, number];
  say(
    `p50 ${p50.toFixed(0)}, p95 ${p95.toFixed(0)}, p99 ${p99.toFixed(0)}, longest ${Math.max(...waits).toFixed(0)} ms; ${showSending(sending)}`,
  );
  return { p50, p95 };
}
