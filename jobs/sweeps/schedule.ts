import { messageOf, TryLaterError } from '../../src/errors.ts';
import type { Pipeline } from '../pipeline.ts';
import { scheduleQueue } from '../runs.ts';
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
 * Keeps schedules in the queue, and does at once what was missed. One whose last time is not over yet is left out. Where the queue comes
 * back empty, they are put into it again; the windows of runs are looked after by `Runs`.
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
  const make = async (schedule: Schedule) => {
    const repeat = await schedule.repeat();
    const options =
      'pattern' in repeat
        ? { pattern: repeat.pattern, ...(repeat.timeZone ? { tz: repeat.timeZone } : {}) }
        : // The queue's clock is the machine's.
          { every: repeat.everyMs, startDate: Date.now() + repeat.afterMs };
    await queue.upsertJobScheduler(schedule.name, options, { name: schedule.name });
  };
  for (const schedule of schedules) {
    await make(schedule);
    if (await schedule.missed()) await pipeline.queues.add(name, schedule.name, {}, { removeOnComplete: true, removeOnFail: true });
  }
  return watchQueue(
    pipeline,
    {
      isLost: async () => (await queue.getJobSchedulersCount()) < schedules.length,
      restore: async () => {
        // Last: until they are there the queue counts as lost, and all of this is done again.
        for (const schedule of schedules) await make(schedule);
      },
    },
    checkMs,
  );
}
