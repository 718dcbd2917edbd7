import { allAccepted, showSending, withEventHarness } from '../event-harness.ts';
import { QUEUES } from '../redis.ts';
import { type Bench, median, type Row } from '../row.ts';

const EVENTS = { embedded: 2_000, Redis: 10_000 };
const SECONDS = 10;
const LIMIT = { p99: 250, appliedAfter: 60 };

/** Many events at once: all are answered in time, and soon after all are applied. */
export async function measureBurst(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const count = EVENTS[queue];
    const rounds: { isAccepted: boolean; p99: number; seconds: number; appliedAfter: number }[] = [];
    for (let round = 0; round < bench.eventRounds; round++) {
      rounds.push(
        await withEventHarness(bench, queue, async harness => {
          const sending = await harness.send(count, count / SECONDS);
          // Twice the time: how much too late it is, is worth knowing.
          await harness.up.untilSettled(harness.warmUp + count, 2 * LIMIT.appliedAfter * 1000);
          const { times } = await harness.read();
          const committedAt = times.reduce((latest, [, committed]) => Math.max(latest, committed), 0);
          const appliedAfter = (committedAt - sending.lastSentAt) / 1000;
          bench.say(`burst, ${queue}, ${round + 1}: ${showSending(sending)}; applied ${appliedAfter.toFixed(1)} s after the last was sent`);
          return { isAccepted: allAccepted(sending), p99: sending.p99, seconds: sending.seconds, appliedAfter };
        }),
      );
    }
    const [p99, seconds, appliedAfter] = (['p99', 'seconds', 'appliedAfter'] as const).map(key => median(rounds.map(one => one[key]))) as [
      number,
      number,
      number,
    ];
    const isAccepted = rounds.every(one => one.isAccepted);
    rows.push({
      what: `burst: ${count} events of distinct documents in ${SECONDS} s, queue ${queue}`,
      against: 'sender, service, queue and pipeline on the same cores',
      limit: `all answered 2xx, p99 ${LIMIT.p99} ms; all applied ${LIMIT.appliedAfter} s later`,
      measured: `${isAccepted ? 'all 2xx' : '**refusals**'}, p99 ${p99.toFixed(0)} ms; sent in ${seconds.toFixed(1)} s, all applied ${appliedAfter.toFixed(1)} s later`,
      holds: isAccepted && p99 <= LIMIT.p99 && seconds <= SECONDS + 0.1 && appliedAfter <= LIMIT.appliedAfter,
    });
  }
  return rows;
}
