import { afterAll } from 'vitest';
import { resources } from '../../schema/index.ts';
import { silentLog } from '../../src/base/log.ts';
import { createServiceClock, type ServiceClock } from '../../src/client/service-clock.ts';
import type { Account } from '../../src/ledger/accounts.ts';
import { accountEntry } from '../../src/ledger/accounts.ts';
import type { AccountJob } from '../../src/ledger/windows.ts';
import type { NewJob } from '../../src/queue/queues.ts';
import { collectionsOf } from '../../src/sync/collections.ts';
import type { Collection, Pipeline } from '../../src/sync/pipeline.ts';
import type { AccountWindows, OpenWindow } from '../../src/sync/runs/account-windows.ts';
import type { Run } from '../../src/sync/runs/run.ts';
import { Runs } from '../../src/sync/runs/runs.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { newPath, openWarehouse } from './warehouse.ts';

/** Microseconds of a moment. */
export const at = (text: string) => Date.parse(text) * 1000;

export const account = (userId: string, changes: Partial<Account> = {}): Account => ({
  userId,
  serviceUserId: null,
  state: 'active',
  reason: null,
  since: at('2025-01-01T00:00:00Z'),
  ...changes,
});

/** A new warehouse with these accounts, open until the tests of the file have ended. */
export async function warehouseWith(folder: string, accounts: readonly Account[]): Promise<Warehouse> {
  const warehouse = await openWarehouse(newPath(folder));
  afterAll(() => warehouse.close());
  await warehouse.record(accounts.map(accountEntry));
  return warehouse;
}

export const collections: Collection[] = collectionsOf(resources);

/** A service whose clock is ours. */
export function knownClock(now: () => number): ServiceClock {
  const clock = createServiceClock(now);
  clock.note(undefined, { sentMs: now(), receivedMs: now() });
  return clock;
}

export interface LiteralPipeline extends Pipeline {
  /** Set by the test. */
  clock: { ms: number };
  /** What was enqueued, oldest first. */
  jobs: NewJob[];
  /** The ids of all that the queue holds. */
  held: Set<string | undefined>;
  /** Takes the jobs that were enqueued and, of all accounts in turn, the windows that may be begun, as a worker does. */
  take(): OpenWindow[];
}

/** A pipeline whose queue only remembers: the test settles the windows. */
export async function pipelineOf(
  warehouse: Warehouse,
  ms: number,
  names: readonly string[] = ['sleep', 'heart_rate'],
  times: ConstructorParameters<typeof Runs>[0] = {},
): Promise<LiteralPipeline> {
  const clock = { ms };
  const jobs: NewJob[] = [];
  const held = new Set<string | undefined>();
  const turns = new Map<AccountWindows, Run>();
  const queues = {
    empty: async () => {},
    ids: async () => held,
    forget: async () => {},
    addAll: async (_: string, added: readonly NewJob[]) => {
      jobs.push(...added);
      for (const { opts } of added) held.add(opts?.jobId);
    },
  };
  const pipeline = {
    warehouse,
    client: { answers: 0, findSilence: () => undefined },
    queues,
    tokens: {
      find: () => undefined,
      isSame: () => true,
      findSignIn: () => undefined,
      whyMissing: () => undefined,
      digest: (text: string) => text,
    },
    signIns: { renewRefused: async () => false },
    collections: collections.filter(({ name }) => names.includes(name)),
    runs: new Runs(times),
    settledDays: 14,
    // Every window may be begun at once, for the tests to look at.
    requestsPerToken: 1_000,
    retryDelayMs: 1,
    secondLookMs: 1,
    unreachedMs: 20_000,
    now: () => clock.ms,
    serviceClock: knownClock(() => clock.ms),
    log: silentLog,
    onFailure: () => {},
    clock,
    jobs,
    held,
    take() {
      for (const { data } of jobs.splice(0)) {
        const run = pipeline.runs.find((data as AccountJob).runId);
        const windows = run?.enter(data as AccountJob);
        if (run && windows) turns.set(windows, run);
      }
      const taken: OpenWindow[] = [];
      const open = [...turns].filter(([, run]) => !run.signal.aborted).map(([windows]) => windows);
      for (let found = open; found.length; found = found.filter(windows => windows.hasNext())) {
        taken.push(...found.flatMap(windows => windows.take() ?? []));
      }
      return taken;
    },
  } as unknown as LiteralPipeline;
  await pipeline.runs.open(pipeline);
  return pipeline;
}
