import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { App } from '../../src/app/app.ts';
import type { AppOptions } from '../../src/app/app-options.ts';
import { type AppCommands, commandsOf } from '../../src/app/commands.ts';
import type { RunReport } from '../../src/app/follow-run.ts';
import type { BackfillInput } from '../../src/app/run-commands.ts';
import { readSettings, type Settings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { accountEntry } from '../../src/ledger/accounts.ts';
import { MemoryQueues } from '../../src/queue/memory.ts';
import type { Value } from '../../src/warehouse/sql.ts';
import { hashTables } from './table-hash.ts';
import { placeWarehouse } from './warehouse.ts';

export interface Harness {
  app: App;
  commands: AppCommands;
  read(sql: string): Promise<Value[][]>;
  /** Runs a backfill to its end. */
  backfill(input: Partial<BackfillInput>, signal?: AbortSignal): Promise<RunReport>;
  nightly(days: number): Promise<RunReport>;
  add(people: readonly { name: string; token: string }[]): Promise<void>;
  /** The same without asking whose a token is: several names may have one. */
  keep(people: readonly { name: string; token: string; serviceUserId?: string }[]): Promise<void>;
  /** All that an account has, but for sk and fetched_at. */
  hash(userId?: string): Promise<Record<string, string>>;
  close(): Promise<void>;
}

export interface HarnessOptions extends Partial<Omit<AppOptions, 'settings' | 'openQueues'>> {
  settings?: Partial<Settings>;
  /** Where events, schedules or what a queue keeps matter; else, and without Redis, it is in memory, which opens a second sooner. */
  queue?: 'embedded';
}

/** A data folder with its owner open in this process, as `up` and every command open it; the client waits for nobody unless told. */
export async function openHarness(folder: string, serviceUrl: string, { queue, ...options }: HarnessOptions = {}): Promise<Harness> {
  const settings = { ...readSettings({ RINGNECK_DATA: join(folder), RINGNECK_SERVICE_URL: serviceUrl }), ...options.settings };
  const client = { sleep: async () => {}, ...options.client };
  if (!settings.warehouse) placeWarehouse(join(settings.data, 'warehouse.duckdb'));
  const queues = queue === 'embedded' || settings.queueUrl ? {} : { openQueues: () => new MemoryQueues() };
  const app = await App.open({ log: silentLog, retryDelayMs: 1, secondLookMs: 1, ...options, ...queues, client, settings });
  const commands = commandsOf(() => app);
  const read = (sql: string) => app.warehouse.read(sql);
  let closing: Promise<void> | undefined;
  const harness: Harness = {
    app,
    commands,
    read,
    backfill: (input, signal = new AbortController().signal) =>
      commands.backfill({ refresh: false, plan: false, ...input }, { emit: () => {}, signal }),
    nightly: days => commands.nightly({ days }, { emit: () => {}, signal: new AbortController().signal }),
    add: async people => {
      for (const { name, token } of people) await commands.addAccount({ name, token });
    },
    keep: async people => {
      for (const { name, token, serviceUserId = null } of people) {
        app.secrets.put(name, token);
        const account = { userId: name, serviceUserId, state: 'active', reason: null, since: app.warehouse.clock.next() } as const;
        await app.warehouse.record([accountEntry(account)]);
      }
    },
    hash: userId => hashTables(read, userId),
    close: () => {
      closing ??= app.close();
      return closing;
    },
  };
  onTestFinished(() => harness.close());
  return harness;
}
