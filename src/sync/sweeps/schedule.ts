import { messageOf, TryLaterError } from '../../base/errors.ts';
import type { Pipeline } from '../pipeline.ts';
import { scheduleQueue } from '../runs/runs.ts';
import { watchQueue } from './watch-queue.ts';

/** Something to be done again and again. */
export interface Schedule {
  name: string;
  /** A cron pattern with its IANA zone, or every so often, for the first time after a while. */
  repeat(): Promise<{ pattern: string; timeZone: string | undefined } | { everyMs: number; afterMs: number }>;
  /** Whether its last time went by while nobody was there. */
  missed(): Promise<boolean>;
  run(): Promise<void>;
}

const CHECK_MS = 60_000;

/**
 * Keeps schedules in the queue, and does at once what was missed. One whose last time is not over yet is left out. Where the queue has lost
 * one, or all, they are put into it again; the windows of runs are looked after by `Runs`.
 * @returns what ends the looking after the queue
 */
export async function keepSchedules(
  pipeline: Pipeline,
  schedules: readonly Schedule[],
  { checkMs = CHECK_MS }: { checkMs?: number } = {},
): Promise<() => void> {
  const name = await scheduleQueue(pipeline.warehouse);
  const queue = pipeline.queues.queue(name);
  const running = new Set<string>();
  const run = async (job: { name: string }) => {
    const schedule = schedules.find(candidate => candidate.name === job.name);
    if (!schedule || running.has(schedule.name)) return;
    running.add(schedule.name);
    try {
      await schedule.run();
    } catch (error) {
      // At the end of the process a run is left to the next start.
      const level = error instanceof TryLaterError ? 'info' : 'warn';
      pipeline.log[level]({ schedule: schedule.name, reason: messageOf(error) }, 'a scheduled run did not come to its end');
    } finally {
      running.delete(schedule.name);
    }
  };
  // The schedules are made anew from the settings; an iteration that a dead process had begun is covered by `missed`.
  await queue.obliterate({ force: true });
  // A place for each, and one for what finds its last time not over: none waits for another's.
  pipeline.queues.worker(name, run, { concurrency: schedules.length + 1 });
  /** The next job of each as it was known last. */
  const jobIds = new Map<Schedule, string>();
  const make = async (schedule: Schedule) => {
    const repeat = await schedule.repeat();
    const options =
      'pattern' in repeat
        ? { pattern: repeat.pattern, ...(repeat.timeZone ? { tz: repeat.timeZone } : {}) }
        : // The queue's clock is the machine's.
          { every: repeat.everyMs, startDate: Date.now() + repeat.afterMs };
    const next = await queue.upsertJobScheduler(schedule.name, options, { name: schedule.name });
    jobIds.set(schedule, next!.id!);
  };
  const doMissed = async (schedule: Schedule) => {
    if (await schedule.missed()) await pipeline.queues.add(name, schedule.name, {}, { removeOnComplete: true, removeOnFail: true });
  };
  for (const schedule of schedules) {
    await make(schedule);
    await doMissed(schedule);
  }
  /** Those whose next job is not in the queue, with its id: a Redis may lose a job's data, its place, or all that it knows of a schedule. */
  const findLost = async (): Promise<Map<Schedule, string | undefined>> => {
    const known = new Map((await queue.getJobSchedulers()).map(({ key, next }) => [key, `repeat:${key}:${next}`]));
    const lost = new Map<Schedule, string | undefined>();
    for (const schedule of schedules) {
      const id = known.get(schedule.name);
      if (id !== undefined) jobIds.set(schedule, id);
      const job = id === undefined ? undefined : await queue.getJob(id);
      if (!job || (await job.getState()) === 'unknown') lost.set(schedule, id);
    }
    return lost;
  };
  let lost: Map<Schedule, string | undefined>;
  return watchQueue(
    pipeline,
    {
      isLost: async () => {
        lost = await findLost();
        if (!lost.size) return false;
        // One that was taken up in between has another next job: that is made before its work begins.
        const again = await findLost();
        for (const [schedule, id] of lost) if (!again.has(schedule) || again.get(schedule) !== id) lost.delete(schedule);
        return lost.size > 0;
      },
      restore: async () => {
        for (const schedule of lost.keys()) {
          // What is left of the job before would keep the new one out. It can be removed when it belongs to no schedule any more.
          await queue.removeJobScheduler(schedule.name);
          await pipeline.queues.forget(name, [jobIds.get(schedule)!]);
          await make(schedule);
          await doMissed(schedule);
        }
      },
    },
    checkMs,
  );
}
