import { join } from 'node:path';
import { runTask } from '../child.ts';
import { type Bench, median, quantile, type Row } from '../row.ts';
import type { Kept } from '../tasks/keep-snapshot.ts';

const DAYS = 365;
const PER_SECOND = 20;
const LIMIT = { lagMs: 10_000, ratio: 2 };

/** How soon readers have what changed, and what that costs the writer. */
export async function measureSnapshot(bench: Bench): Promise<Row[]> {
  const people = bench.manyYears * 1.5;
  const rounds: Kept[] = [];
  let samples = 0;
  for (let round = 0; round < bench.eventRounds; round++) {
    const path = join(bench.newFolder(), 'warehouse.duckdb');
    ({ samples } = await runTask<{ samples: number }>('fill-warehouse', { path, people, days: DAYS }));
    const kept = await runTask<Kept>('keep-snapshot', { path, people, seconds: bench.eventSeconds, perSecond: PER_SECOND });
    rounds.push(kept);
    bench.say(
      `snapshot ${round + 1}, ${(samples / 1e6).toFixed(0)} M samples: sorted in ${inSeconds(kept.full)}; one document ${inSeconds(kept.first)} after a start, ` +
        `then ${inSeconds(kept.one)}; commits p95 ${quantile(kept.without, 0.95).toFixed(0)} ms without, ${quantile(kept.with, 0.95).toFixed(0)} ms with; ` +
        `there after p50 ${inSeconds(quantile(kept.lag, 0.5))}, at most ${inSeconds(Math.max(...kept.lag))}`,
    );
  }
  const longest = median(rounds.map(({ lag }) => Math.max(...lag)));
  const [without, beside] = [
    median(rounds.map(kept => quantile(kept.without, 0.95))),
    median(rounds.map(kept => quantile(kept.with, 0.95))),
  ];
  const size = `${(samples / 1e6).toFixed(0)} M samples`;
  return [
    {
      what: `document committed → in the published snapshot, ${size}, ${PER_SECOND} activity documents/s for ${bench.eventSeconds} s`,
      against: `a sorted one: ${inSeconds(median(rounds.map(({ full }) => full)))}`,
      limit: `longest ${LIMIT.lagMs / 1000} s`,
      measured: `longest ${inSeconds(longest)}; one alone ${inSeconds(median(rounds.map(({ one }) => one)))}, the first after a start ${inSeconds(median(rounds.map(({ first }) => first)))}`,
      holds: longest <= LIMIT.lagMs,
    },
    {
      what: `document given to the writer → committed, the same, while the snapshot keeps up`,
      against: 'the same without snapshots',
      limit: `p95 ${LIMIT.ratio}×`,
      measured: `p95 ${(beside / without).toFixed(2)}× (${beside.toFixed(0)} / ${without.toFixed(0)} ms)`,
      holds: beside <= LIMIT.ratio * without,
    },
  ];
}

const inSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
