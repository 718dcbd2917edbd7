import { allAccepted, showSending, withEventHarness } from '../event-harness.ts';
import { QUEUES } from '../redis.ts';
import { type Bench, median, type Row } from '../row.ts';

const VISIBLE = { perSecond: 200, limitMs: 1000 };

const PER_SECOND = { embedded: 100, Redis: 300 };
/** The backlog at the end is that of the beginning, give or take what comes in this time. */
const FLAT_SECONDS = 1;

/** A steady stream of events: as many are worked off as come. */
export async function measureSustained(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const perSecond = PER_SECOND[queue];
    const rounds: { isAccepted: boolean; p99: number; early: number; late: number }[] = [];
    for (let round = 0; round < bench.eventRounds; round++) {
      rounds.push(
        await withEventHarness(bench, queue, async harness => {
          const count = perSecond * bench.eventSeconds;
          const sending = await harness.send(count, perSecond);
          await harness.up.untilSettled(harness.warmUp + count, 60_000);
          const times = (await harness.read()).times.slice(harness.warmUp);
          const backlog = backlogs(times);
          const third = Math.floor(backlog.length / 3);
          const [early, late] = [median(backlog.slice(0, third)), median(backlog.slice(-third))];
          bench.say(`sustained, ${queue}, ${round + 1}: ${showSending(sending)}; backlog by seconds ${backlog.join(' ')}`);
          return { isAccepted: allAccepted(sending), p99: sending.p99, early, late };
        }),
      );
    }
    const [p99, early, late] = (['p99', 'early', 'late'] as const).map(key => median(rounds.map(one => one[key]))) as [
      number,
      number,
      number,
    ];
    const isAccepted = rounds.every(one => one.isAccepted);
    rows.push({
      what: `sustained: ${perSecond} events/s of distinct documents for ${bench.eventSeconds} s, queue ${queue}`,
      against: 'the backlog of the first third of that time',
      limit: `all answered 2xx; backlog of the last third at most ${FLAT_SECONDS} s of events longer`,
      measured: `${isAccepted ? 'all 2xx' : '**refusals**'}, p99 ${p99.toFixed(0)} ms; ${early} and ${late} events waiting`,
      holds: isAccepted && rounds.every(one => one.late <= one.early + FLAT_SECONDS * perSecond),
    });
  }
  return rows;
}

/** How long after its acceptance an event of a steady stream is in the warehouse, embedded. */
export async function measureVisible(bench: Bench): Promise<Row[]> {
  const { perSecond, limitMs } = VISIBLE;
  const rounds: { isAccepted: boolean; p50: number; p95: number }[] = [];
  for (let round = 0; round < bench.eventRounds; round++) {
    rounds.push(
      await withEventHarness(bench, 'embedded', async harness => {
        const count = perSecond * bench.eventSeconds;
        const before = harness.up.cpu();
        const sending = await harness.send(count, perSecond);
        await harness.up.untilSettled(harness.warmUp + count, 60_000);
        const cpu = harness.up.cpu() - before;
        const waits = (await harness.read()).times.slice(harness.warmUp).map(([received, committed]) => committed - received);
        const [p50, p95] = [0.5, 0.95].map(part => waits.toSorted((a, b) => a - b)[Math.floor(waits.length * part)]!) as [number, number];
        bench.say(
          `visible, ${round + 1}: ${showSending(sending)}; visible p50 ${p50.toFixed(0)}, p95 ${p95.toFixed(0)} ms; CPU ${cpu.toFixed(1)} s`,
        );
        return { isAccepted: allAccepted(sending), p50, p95 };
      }),
    );
  }
  const [p50, p95] = [median(rounds.map(one => one.p50)), median(rounds.map(one => one.p95))];
  const isAccepted = rounds.every(one => one.isAccepted);
  return [
    {
      what: `visible: ${perSecond} events/s of distinct documents for ${bench.eventSeconds} s, queue embedded`,
      against: 'from an event’s acceptance to its document in the warehouse',
      limit: `all answered 2xx; p95 ${limitMs} ms`,
      measured: `${isAccepted ? 'all 2xx' : '**refusals**'}; p50 ${p50.toFixed(0)}, p95 ${p95.toFixed(0)} ms`,
      holds: isAccepted && p95 <= limitMs,
    },
  ];
}

/** How many events were received and not committed, second by second while they came. */
function backlogs(times: readonly [number, number][]): number[] {
  const [first, last] = [times[0]![0], times.at(-1)![0]];
  const counts: number[] = [];
  for (let at = first + 500; at < last; at += 1000) {
    counts.push(times.filter(([received, committed]) => received <= at && committed > at).length);
  }
  return counts;
}
