import { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api';
import { expect, vi } from 'vitest';
import { below, randomFrom } from './random-documents.ts';
import { complete, openSmall, settleAfter } from './small-backfill.ts';
import { findBroken } from './table-hash.ts';

/** Lets calls of DuckDB fail by their number, counted from now on, but no rollback. Returns how many there were. */
export function failStatements(isChosen: (n: number) => boolean): () => number {
  let calls = 0;
  const fails = (name: string) => name !== 'ROLLBACK' && isChosen(++calls);
  for (const method of ['run', 'runAndReadAll', 'createAppender'] as const) {
    const original = DuckDBConnection.prototype[method] as (...parameters: unknown[]) => Promise<unknown>;
    vi.spyOn(DuckDBConnection.prototype, method).mockImplementation(async function (this: DuckDBConnection, ...parameters: unknown[]) {
      if (fails(String(parameters[0]))) throw new Error('IO Error: simulated');
      return (await original.apply(this, parameters)) as never;
    });
  }
  for (const method of ['appendDataChunk', 'closeSync'] as const) {
    const original = DuckDBAppender.prototype[method] as (...parameters: unknown[]) => void;
    vi.spyOn(DuckDBAppender.prototype, method).mockImplementation(function (this: DuckDBAppender, ...parameters: unknown[]) {
      if (fails(method)) throw new Error('IO Error: simulated');
      original.apply(this, parameters);
    });
  }
  return () => calls;
}

/** One n of each `share` in a row, by seed, fails; each in a backfill of its own. Returns how often the backfills ended in which way. */
export async function statementFaults(folder: string, { seed, share }: { seed: number; share: number }): Promise<Map<string, number>> {
  const random = randomFrom(seed);
  const small = await openSmall(folder, ['daily_activity', 'sleep', 'ring_configuration', 'heart_rate']);
  const ends = new Map<string, number>();
  for (let first = 1; ; first += share) {
    const nth = first + below(random, share);
    const userId = await small.next();
    const what = `statement ${nth} (seed ${seed})`;
    const calls = failStatements(n => n === nth);
    const end = await settleAfter(small, userId, what, () => vi.restoreAllMocks());
    ends.set(end, (ends.get(end) ?? 0) + 1);
    await complete(small, userId, what);
    if (calls() < nth) break;
  }
  expect(await findBroken(small.harness.read)).toEqual([]);
  expect([...ends.values()].reduce((a, b) => a + b)).toBeGreaterThan(10);
  return ends;
}
