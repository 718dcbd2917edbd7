import { setTimeout } from 'node:timers/promises';
import { ACCOUNTS, allAccepted, BACKFILLED_TO, type EventHarness, showSending, withEventHarness } from './event-harness.ts';
import { QUEUES } from './pipeline.ts';
import { type Bench, median, quantile, type Row } from './row.ts';

const BURST = { embedded: 2_000, Redis: 10_000 };
const BURST_SECONDS = 10;
const BURST_LIMIT = { p99: 250, appliedAfter: 60 };

/** Many events at once: all are answered in time, and soon after all are applied. */
export async function measureBurst(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const count = BURST[queue];
    const rounds: { isAccepted: boolean; p99: number; seconds: number; appliedAfter: number }[] = [];
    for (let round = 0; round < bench.eventRounds; round++) {
      rounds.push(
        await withEventHarness(bench, queue, async harness => {
          const sending = await harness.send(count, count / BURST_SECONDS);
          // Twice the time: how much too late it is, is worth knowing.
          await harness.up.untilSettled(harness.warmUp + count, 2 * BURST_LIMIT.appliedAfter * 1000);
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
      what: `burst: ${count} events of distinct documents in ${BURST_SECONDS} s, queue ${queue}`,
      against: 'sender, service, queue and pipeline on the same cores',
      limit: `all answered 2xx, p99 ${BURST_LIMIT.p99} ms; all applied ${BURST_LIMIT.appliedAfter} s later`,
      measured: `${isAccepted ? 'all 2xx' : '**refusals**'}, p99 ${p99.toFixed(0)} ms; sent in ${seconds.toFixed(1)} s, all applied ${appliedAfter.toFixed(1)} s later`,
      holds: isAccepted && p99 <= BURST_LIMIT.p99 && seconds <= BURST_SECONDS + 0.1 && appliedAfter <= BURST_LIMIT.appliedAfter,
    });
  }
  return rows;
}

const VISIBLE = { perSecond: 200, limitMs: 1000 };

const SUSTAINED = { embedded: 100, Redis: 300 };
/** The backlog at the end is that of the beginning, give or take what comes in this time. */
const FLAT_SECONDS = 1;

/** A steady stream of events: as many are worked off as come. */
export async function measureSustained(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const perSecond = SUSTAINED[queue];
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

export const LIVE_PER_SECOND = 50;
const LIVE_LIMIT = { p50: 50, p95: 200, beside: 2.5 };

export interface Lag {
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
      what: `event accepted → row readable, ${LIVE_PER_SECOND} events/s of all types for ${bench.eventSeconds} s, queue ${queue}`,
      against: '–',
      limit: `p50 ${LIVE_LIMIT.p50} ms, p95 ${LIVE_LIMIT.p95} ms`,
      measured: `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`,
      holds: p50 <= LIVE_LIMIT.p50 && p95 <= LIVE_LIMIT.p95,
    });
    rows.push({
      what: `the same while a backfill of the same accounts runs, queue ${queue}`,
      against: 'the minute before, without it',
      limit: `p95 ${LIVE_LIMIT.beside}×`,
      measured: `p95 ${(besideP95 / p95).toFixed(2)}× (${besideP95.toFixed(0)} / ${p95.toFixed(0)} ms); p50 ${besideP50.toFixed(0)} ms`,
      holds: besideP95 <= LIVE_LIMIT.beside * p95,
    });
  }
  return rows;
}

/** How long events of a steady stream wait, from acceptance to commit: milliseconds. */
export async function measureLag({ up, send }: EventHarness, seconds: number, say: (text: string) => void): Promise<Lag> {
  const before = up.settled.length;
  const count = LIVE_PER_SECOND * seconds;
  const sending = await send(count, LIVE_PER_SECOND);
  await up.untilSettled(before + count, 60_000);
  if (!allAccepted(sending)) throw new Error(`events were refused: ${JSON.stringify(sending.answers)}`);
  const waits = up.settled.slice(before).map(({ ms }) => ms);
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map(part => quantile(waits, part)) as [number, number, number];
  say(
    `p50 ${p50.toFixed(0)}, p95 ${p95.toFixed(0)}, p99 ${p99.toFixed(0)}, longest ${Math.max(...waits).toFixed(0)} ms; ${showSending(sending)}`,
  );
  return { p50, p95 };
}

const IDLE_LIMIT = { embedded: 12, Redis: 6 };
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
      limit: `CPU ${IDLE_LIMIT[queue]} s`,
      measured: `CPU ${median(hours).toFixed(1)} s`,
      holds: median(hours) <= IDLE_LIMIT[queue],
    });
  }
  return rows;
}
