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
  const make = async (schedule: Schedule) => {
    const repeat = await schedule.repeat();
    const options =
      'pattern' in repeat
        ? { pattern: repeat.pattern, ...(repeat.timeZone ? { tz: repeat.timeZone } : {}) }
        : // The queue's clock is the machine's.
          { every: repeat.everyMs, startDate: Date.now() + repeat.afterMs };
    await queue.upsertJobScheduler(schedule.name, options, { name: schedule.name });
  };
  const doMissed = async (schedule: Schedule) => {
    if (await schedule.missed()) await pipeline.queues.add(name, schedule.name, {}, { removeOnComplete: true, removeOnFail: true });
  };
  for (const schedule of schedules) {
    await make(schedule);
    await doMissed(schedule);
  }
  /** Those whose next time is not in the queue, with that time: a Redis may lose a job's data, its place, or all that it knows of a schedule. */
  const findLost = async (): Promise<Map<Schedule, number | undefined>> => {
    const places = await pipeline.queues.ids(name);
    const known = new Map((await queue.getJobSchedulers()).map(({ key, next }) => [key, next]));
    const lost = new Map<Schedule, number | undefined>();
    for (const schedule of schedules) {
      const next = known.get(schedule.name);
      const id = jobIdOf(schedule, next);
      if (!places.has(id) || !(await queue.getJob(id))) lost.set(schedule, next);
    }
    return lost;
  };
  let lost: Map<Schedule, number | undefined>;
  return watchQueue(
    pipeline,
    {
      isLost: async () => {
        lost = await findLost();
        if (!lost.size) return false;
        // One that was just taken up has another next time by now.
        const again = await findLost();
        for (const [schedule, next] of lost) if (!again.has(schedule) || again.get(schedule) !== next) lost.delete(schedule);
        return lost.size > 0;
      },
      restore: async () => {
        for (const [schedule, next] of lost) {
          // What is left of the one before would keep it out.
          await queue.removeJobScheduler(schedule.name);
          await pipeline.queues.forget(name, [jobIdOf(schedule, next)]);
          await make(schedule);
          await doMissed(schedule);
        }
      },
    },
    checkMs,
  );
}

/** As BullMQ names the next job of a schedule. */
const jobIdOf = ({ name }: Schedule, next: number | undefined) => `repeat:${name}:${next}`;
