import { statfsSync, statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Durations } from '../base/duration-histogram.ts';
import { messageOf } from '../base/errors.ts';
import { listAccounts } from '../ledger/accounts.ts';
import { findLastNightly } from '../ledger/runs.ts';
import { Freshness } from '../ledger/status.ts';
import type { App } from './app.ts';
import { countJobs, type QueueReport } from './operation-commands.ts';
import { findSignInStatus } from './sign-in-status.ts';

/** Something of an account, at a moment in seconds since the epoch. */
export interface OfAccount {
  user_id: string;
  at: number;
}

/** What is counted and measured of a data folder, since its owner opened it. Moments are seconds since the epoch. */
export interface MetricsReport {
  duckdb_version: string;
  accounts: Record<'active' | 'paused' | 'parked', number>;
  /** Of active accounts, when the collection that was read longest ago was read; the longest ago first, as many as are told. */
  read: OfAccount[];
  /** When the tokens end that nobody renews, or could not renew; the first first, as many as are told. */
  sign_in_ends: OfAccount[];
  sign_ins: Record<'renewed' | 'failing' | 'ending', number>;
  /** Accounts of which `read` says nothing, because there are too many. */
  untold: number;
  events: { outcomes: Record<string, number>; lag: Durations };
  /** Events that were not accepted, by reason. */
  refused: Record<string, number>;
  inbox: { events: number; unreadable: number };
  /** Null: it is not open, or does not answer. */
  queue: QueueReport['counts'] | null;
  /** What became of requests to the service, by class of answer. */
  requests: Record<string, number>;
  writer: Record<string, { groups: Durations; changes: number; waiting: number }>;
  /** When the published snapshot was made, and whether all that is stored is in it. `at` null: there is none. */
  snapshot: { at: number | null; is_current: boolean };
  last_nightly: number | null;
  file_bytes: Record<'warehouse' | 'snapshot' | 'inbox', number>;
  /** Of the file system of each folder; what does not tell is left out. */
  disks: { folder: 'data' | 'snapshot'; bytes: number; free: number }[];
}

/** What a monitoring system asks for, again and again. */
export const metricsCommands = { metrics };

/** Of more accounts than this only those are named that are furthest behind. */
export const MOST_NAMED = 1_000;

const underWay = new WeakMap<App, Promise<MetricsReport>>();

/** Who asks while another one is answered gets the same answer. Reads beside the writer, and waits for no queue that is being opened. */
function metrics(app: App): Promise<MetricsReport> {
  const known = underWay.get(app);
  if (known) return known;
  const report = readMetrics(app).finally(() => underWay.delete(app));
  underWay.set(app, report);
  return report;
}

async function readMetrics(app: App): Promise<MetricsReport> {
  const { warehouse, settings, snapshots } = app;
  const inbox = await app.inbox();
  const client = await app.openedClient;
  const nightly = await findLastNightly(warehouse);
  const inboxFolder = join(settings.data, 'inbox');
  const warehouseBytes = (await bytesOf(warehouse.path)) + (await bytesOf(`${warehouse.path}.wal`));
  return {
    duckdb_version: await warehouse.databaseVersion(),
    ...(await readAccounts(app)),
    events: app.recentEvents.measured(),
    refused: app.refusals(),
    inbox: { events: inbox.size, unreadable: inbox.damaged },
    queue: await countQueue(app),
    requests: { ...client?.answersByClass },
    writer: warehouse.writing,
    snapshot: { at: modifiedAt(settings.snapshot), is_current: snapshots.isFresh },
    last_nightly: nightly == null ? null : nightly / 1_000_000,
    file_bytes: { warehouse: warehouseBytes, snapshot: await bytesOf(settings.snapshot), inbox: await bytesIn(inboxFolder) },
    disks: [
      ...spaceOf('data', settings.data),
      ...(dirname(settings.snapshot) === settings.data ? [] : spaceOf('snapshot', dirname(settings.snapshot))),
    ],
  };
}

/** What is known of a warehouse, as long as it is open. */
const freshnessOf = new WeakMap<App['warehouse'], Freshness>();

type AccountsPart = Pick<MetricsReport, 'accounts' | 'read' | 'sign_in_ends' | 'sign_ins' | 'untold'>;

async function readAccounts(app: App): Promise<AccountsPart> {
  const accounts = await listAccounts(app.warehouse);
  const names = app.collections.map(({ name }) => name);
  const freshness = freshnessOf.get(app.warehouse) ?? new Freshness();
  freshnessOf.set(app.warehouse, freshness);
  const readAt = await freshness.read(app.warehouse, names);
  const part: AccountsPart = {
    accounts: { active: 0, paused: 0, parked: 0 },
    read: [],
    sign_in_ends: [],
    sign_ins: { renewed: 0, failing: 0, ending: 0 },
    untold: 0,
  };
  for (const { userId, state, reason, since } of accounts) {
    if (state === 'removed') continue;
    part.accounts[state]++;
    if (state !== 'active') continue;
    part.read.push({ user_id: userId, at: (readAt.get(userId) ?? since) / 1_000_000 });
    const signIn = findSignInStatus(app, userId, reason);
    if (!signIn) continue;
    const isFailing = signIn.problem !== null;
    part.sign_ins[isFailing ? 'failing' : signIn.is_renewed ? 'renewed' : 'ending']++;
    const endsMs = signIn.token_ends_at === null ? Number.NaN : Date.parse(signIn.token_ends_at);
    if ((isFailing || !signIn.is_renewed) && !Number.isNaN(endsMs)) part.sign_in_ends.push({ user_id: userId, at: endsMs / 1000 });
  }
  const first = (list: OfAccount[]) => list.sort((a, b) => a.at - b.at || (a.user_id < b.user_id ? -1 : 1)).slice(0, MOST_NAMED);
  return { ...part, read: first(part.read), sign_in_ends: first(part.sign_in_ends), untold: Math.max(0, part.read.length - MOST_NAMED) };
}

async function countQueue({ opened, warehouse, queueProblem, log }: App): Promise<MetricsReport['queue']> {
  if (queueProblem !== undefined) return null;
  const pipeline = await Promise.race([opened, setImmediate(undefined)]);
  if (!pipeline) return null;
  try {
    return await countJobs(pipeline.queues, warehouse);
  } catch (error) {
    log.debug({ reason: messageOf(error) }, 'the queue does not answer');
    return null;
  }
}

function modifiedAt(path: string): number | null {
  const file = statSync(path, { throwIfNoEntry: false });
  return file ? file.mtimeMs / 1000 : null;
}

const bytesOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(names.map(name => bytesOf(join(folder, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function spaceOf(folder: 'data' | 'snapshot', path: string): MetricsReport['disks'] {
  try {
    const { bavail, blocks, bsize } = statfsSync(path);
    return blocks === 0 ? [] : [{ folder, bytes: blocks * bsize, free: bavail * bsize }];
  } catch {
    return [];
  }
}
