import { expect, onTestFinished } from 'vitest';
import { resources } from '../../schema/index.ts';
import type { RunReport } from '../../src/app/follow-run.ts';
import { collectionsOf } from '../../src/sync/collections.ts';
import { type FaultService, startFaultService } from './fault-service.ts';
import { type Harness, openHarness } from './harness.ts';
import { startSandbox } from './sandbox.ts';

export const range = { from: '2025-03-05', to: '2025-03-06' };
const days = { from: '2025-03-04', to: '2025-03-07' };

export interface Small {
  harness: Harness;
  faults: FaultService;
  /** Hashes of an undisturbed run. */
  undisturbed: Record<string, string>;
  /** How many requests it takes. */
  requests: number;
  /** A new account of the same person: each disturbed run has its own, so that one open harness serves them all. */
  next(): Promise<string>;
  collections: string[];
}

/** A harness with an account whose small backfill went undisturbed. */
export async function openSmall(folder: string, only?: readonly string[]): Promise<Small> {
  const sandbox = await startSandbox({ count: 1, ...days, settings: { pageSize: 2, heartRatePageSize: 3_000 } });
  onTestFinished(() => sandbox.close());
  const faults = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  const harness = await openHarness(folder, faults.url);
  const collections = collectionsOf(resources)
    .map(({ name }) => name)
    .filter(name => !only || only.includes(name));
  let accounts = 0;
  const next = async () => {
    const name = `u${++accounts}`;
    await harness.keep([{ name, token: sandbox.people[0]!.token }]);
    return name;
  };
  const first = await next();
  const before = faults.asked.length;
  expect(await harness.backfill({ ...range, users: [first], collections })).toMatchObject({ state: 'complete', failures: [] });
  const requests = faults.asked.length - before;
  const undisturbed = await harness.hash(first);
  // Of these days: nobody was ill or trained.
  const without = collections.filter(name => undisturbed[name]?.startsWith('0 '));
  expect(without).toEqual(['rest_mode_period', 'workout'].filter(name => collections.includes(name)));
  return { harness, faults, undisturbed, requests, next, collections };
}

/**
 * What must hold after a run that something disturbed, whichever way it ended: it is complete, or what is missing is named; and the same
 * command again completes.
 */
export async function settleAfter(
  { harness, undisturbed, collections }: Small,
  userId: string,
  what: string,
  /** Ends the disturbance, before anything is looked at. */
  calm: () => void = () => {},
): Promise<'complete' | 'failed' | 'refused'> {
  let report: RunReport;
  try {
    report = await harness.backfill({ ...range, users: [userId], collections });
  } catch (error) {
    // The command itself could not begin or end: it says so.
    expect((error as Error).message, what).toMatch(/simulated/);
    return 'refused';
  } finally {
    calm();
  }
  const [left] = await harness.read(
    `SELECT count(*) FILTER (outcome IN ('failed', 'not_authorised', 'suspicious')), count(*) FILTER (outcome IS NULL)
     FROM sync.windows WHERE run_id = '${report.run}'`,
  );
  expect(left, what).toEqual([report.windows.failed, 0]);
  expect(report.failures.length > 0, what).toBe(report.windows.failed > 0);
  if (report.state === 'complete') expect(await harness.hash(userId), what).toEqual(undisturbed);
  return report.state === 'complete' ? 'complete' : 'failed';
}

export async function complete({ harness, undisturbed, collections }: Small, userId: string, what: string): Promise<void> {
  await harness.commands.resumeAccounts({ names: [userId] });
  expect(await harness.backfill({ ...range, users: [userId], collections }), what).toMatchObject({ state: 'complete', failures: [] });
  expect(await harness.hash(userId), what).toEqual(undisturbed);
}
