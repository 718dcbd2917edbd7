import { ensureDiskReserve } from '../base/disk.ts';
import { messageOf, UsageError } from '../base/errors.ts';
import type { Queues } from '../queue/queues.ts';
import { eventQueue } from '../sync/events/accept-event.ts';
import type { Progress } from '../sync/runs/run.ts';
import type { RunName } from '../sync/runs/run-name.ts';
import { collectQueue, scheduleQueue } from '../sync/runs/runs.ts';
import { readSilence, type Silence } from '../sync/silence.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { App } from './app.ts';
import type { SnapshotFailure } from './snapshot/snapshots.ts';

/** A run under way. */
export interface ActiveRun extends RunName {
  id: string;
  /** Epoch seconds. */
  started: number;
  progress: Progress;
}

const QUEUES = { collect: collectQueue, events: eventQueue, schedules: scheduleQueue } as const;
export type QueueName = keyof typeof QUEUES;

const SHOWN_JOBS = 50;
const STATES = ['failed', 'active', 'delayed', 'waiting'] as const;

/** A job as it may be shown: never what is in it. */
export interface ShownJob {
  queue: QueueName;
  id: string;
  state: (typeof STATES)[number];
  /** ISO 8601, UTC. */
  at: string;
  attempts: number;
  /** Why it failed last. */
  reason: string | null;
}

export interface QueueReport {
  counts: Record<QueueName, Record<(typeof STATES)[number], number>>;
  /** Those that failed first, a few of each queue. */
  jobs: ShownJob[];
}

/** What the owner of a data folder has in hand, and what may be done about it. */
export const operationCommands = { activeRuns, stopRun, queueReport, retryJob, listRecentEvents, readHindrances, isSnapshotOfAnother };

/** What keeps the snapshot from being up to date; null: nothing does. */
export interface Hindrances {
  /** Nothing is stored either. */
  disk_full: string | null;
  service_unreachable: Silence | null;
  snapshot_failure: SnapshotFailure | null;
}

async function readHindrances({ warehouse, openedClient, settings, now, snapshots }: App): Promise<Hindrances> {
  return {
    disk_full: whyFull(settings.data),
    service_unreachable: await readSilence({ warehouse, client: await openedClient, service: settings.serviceUrl, now }),
    snapshot_failure: snapshots.failure ?? null,
  };
}

function whyFull(path: string): string | null {
  try {
    ensureDiskReserve(path);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** Whether what readers have is of another warehouse than this one, of which none is published yet: as where a restore has put it there. */
async function isSnapshotOfAnother({ snapshots }: App): Promise<boolean> {
  return snapshots.isOfAnother();
}

async function activeRuns({ opened }: App): Promise<ActiveRun[]> {
  const pipeline = await opened;
  return (pipeline?.runs.active() ?? []).map(run => {
    const { kind, from, to } = run.request;
    return { id: run.id, kind, from, to, started: run.startedAt / 1_000_000, progress: run.tellProgress() };
  });
}

/** What became of events since as many as are named. */
async function listRecentEvents({ recentEvents }: App, { after }: { after?: number }): Promise<ReturnType<App['recentEvents']['since']>> {
  return recentEvents.since(after);
}

/**
 * What is not yet read waits for the same command again.
 * @throws UsageError where nobody works on the run
 */
async function stopRun({ opened }: App, { id }: { id: string }): Promise<{ id: string }> {
  const run = (await opened)?.runs.find(id);
  if (!run) throw new UsageError(`nobody works on the run ${id}: it has ended, or waits for the next start`);
  await run.stop();
  return { id };
}

/** How many jobs there are, by queue and state. Rejects with QueueUnavailable where the store gives no answer in 1.5 s. */
export async function countJobs(queues: Queues, warehouse: Warehouse): Promise<QueueReport['counts']> {
  const counts = QUEUE_NAMES.map(async name => [name, await queues.counts(await QUEUES[name](warehouse))] as const);
  return { collect: none(), events: none(), schedules: none(), ...Object.fromEntries(await Promise.all(counts)) };
}

/** Null where no queue is open. */
async function queueReport({ opened, warehouse }: App): Promise<QueueReport | null> {
  const queues = (await opened)?.queues;
  if (!queues) return null;
  const report: QueueReport = { counts: await countJobs(queues, warehouse), jobs: [] };
  for (const name of QUEUE_NAMES) {
    const full = await QUEUES[name](warehouse);
    for (const state of STATES) {
      // Those of a command alone are in its memory, and are not listed.
      if (queues.kind === 'memory' || !report.counts[name][state]) continue;
      for (const job of await queues.queue(full).getJobs([state], 0, SHOWN_JOBS - 1)) {
        const { id = '', timestamp, attemptsMade: attempts, failedReason: reason = null } = job;
        report.jobs.push({ queue: name, id, state, at: new Date(timestamp).toISOString(), attempts, reason });
      }
    }
  }
  return report;
}

const QUEUE_NAMES = ['collect', 'events', 'schedules'] as const satisfies readonly QueueName[];
const none = () => ({ failed: 0, active: 0, delayed: 0, waiting: 0 });

/** @throws UsageError where there is no such job that failed */
async function retryJob({ opened, warehouse }: App, { queue, id }: { queue: QueueName; id: string }): Promise<{ id: string }> {
  const queues = (await opened)?.queues;
  const job = await queues?.queue(await QUEUES[queue](warehouse)).getJob(id);
  if (!job || !(await job.isFailed())) throw new UsageError(`no job ${id} of the queue ${queue} has failed: it may have been tried again`);
  await job.retry('failed');
  return { id };
}
