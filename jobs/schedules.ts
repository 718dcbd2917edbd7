import { ClockSetBack } from '../src/base/clock-set-back.ts';
import { messageOf, TryLaterError } from '../src/base/errors.ts';
import type { Queue } from '../src/queue/queues.ts';
import type { Pipeline } from '../src/sync/pipeline.ts';
import { scheduleQueue } from '../src/sync/runs/runs.ts';
import { HeartRateSweeps, heartRateSchedule } from '../src/sync/sweeps/heart-rate.ts';
import type { MissedEvents } from '../src/sync/sweeps/missed-events.ts';
import { type NightlySettings, nightlySchedule } from '../src/sync/sweeps/nightly.ts';
import { type Schedule, sweepSchedule } from '../src/sync/sweeps/sweep.ts';

export interface ScheduleSettings {
  nightly: NightlySettings;
  sweep: { hours: number; days: number };
  heartRateMinutes: number;
  /** Whether events are awaited. */
  webhooks: boolean;
  onMissed?: (missed: MissedEvents) => void;
}

export interface Schedules {
  /** Reads an account's heart rate soon, of the last days and about this one: it has no events, and comes with a night or an activity. */
  requestHeartRate(userId: string): void;
  /** Starts nothing more. */
  close(): void;
}

/** Starts all that `up` does again and again: nights, sweeps, heart rate, and the judging of missed events. */
export async function startSchedules(pipeline: Pipeline, settings: ScheduleSettings): Promise<Schedules> {
  const heartRates = new HeartRateSweeps(pipeline);
  const schedules = [
    nightlySchedule(pipeline, settings.nightly),
    sweepSchedule(pipeline, settings.sweep),
    heartRateSchedule(pipeline, heartRates, settings),
  ];
  const stopWatching = await keepSchedules(pipeline, schedules).catch(error => {
    heartRates.close();
    throw error;
  });
  return {
    requestHeartRate: userId => heartRates.request(userId),
    close() {
      stopWatching();
      heartRates.close();
    },
  };
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
  const kept = new KeptSchedules(pipeline, await scheduleQueue(pipeline.warehouse), schedules);
  await kept.start();
  return watchQueue(pipeline, kept, checkMs);
}

/** A queue whose store may come back empty: a Redis that keeps nothing on disk, or was flushed. */
interface WatchedQueue {
  isLost(): Promise<boolean>;
  /** Puts into it what it should hold. */
  restore(): Promise<void>;
}

class KeptSchedules implements WatchedQueue {
  readonly #pipeline: Pipeline;
  readonly #name: string;
  readonly #queue: Queue;
  readonly #schedules: readonly Schedule[];
  readonly #running = new Set<Schedule>();
  /** The next job of each as it was known last. */
  readonly #jobIds = new Map<Schedule, string>();
  /** Those whose next job is not in the queue, with its id. */
  #lost = new Map<Schedule, string | undefined>();
  readonly #setBack = new ClockSetBack();
  #isSetBack = false;

  constructor(pipeline: Pipeline, name: string, schedules: readonly Schedule[]) {
    this.#pipeline = pipeline;
    this.#name = name;
    this.#queue = pipeline.queues.queue(name);
    this.#schedules = schedules;
  }

  async start(): Promise<void> {
    // The schedules are made anew from the settings; an iteration that a dead process had begun is covered by `missed`.
    await this.#queue.obliterate({ force: true });
    // A place for each, and one for what finds its last time not over: none waits for another's.
    this.#pipeline.queues.worker(this.#name, job => this.#run(job.name), { concurrency: this.#schedules.length + 1 });
    for (const schedule of this.#schedules) await this.#add(schedule);
  }

  async isLost(): Promise<boolean> {
    // The next times of all lie as much further away.
    if (this.#setBack.happened()) this.#isSetBack = true;
    if (this.#isSetBack) {
      this.#lost = new Map(this.#schedules.map(schedule => [schedule, this.#jobIds.get(schedule)]));
      return true;
    }
    this.#lost = await this.#findLost();
    if (!this.#lost.size) return false;
    // One that was taken up in between has another next job: that is made before its work begins.
    const again = await this.#findLost();
    for (const [schedule, id] of this.#lost) if (!again.has(schedule) || again.get(schedule) !== id) this.#lost.delete(schedule);
    return this.#lost.size > 0;
  }

  async restore(): Promise<void> {
    for (const schedule of this.#lost.keys()) {
      // What is left of the job before would keep the new one out. It can be removed when it belongs to no schedule any more.
      await this.#queue.removeJobScheduler(schedule.name);
      const jobId = this.#jobIds.get(schedule);
      if (jobId !== undefined) await this.#pipeline.queues.forget(this.#name, [jobId]);
      await this.#add(schedule);
    }
    this.#isSetBack = false;
  }

  async #run(name: string): Promise<void> {
    const schedule = this.#schedules.find(candidate => candidate.name === name);
    if (!schedule || this.#running.has(schedule)) return;
    this.#running.add(schedule);
    try {
      await schedule.run();
    } catch (error) {
      // At the end of the process a run is left to the next start.
      const level = error instanceof TryLaterError ? 'info' : 'warn';
      this.#pipeline.log[level]({ schedule: name, reason: messageOf(error) }, 'a scheduled run did not come to its end');
    } finally {
      this.#running.delete(schedule);
    }
  }

  /** Has it in the queue, and does it at once where its last time was missed. */
  async #add(schedule: Schedule): Promise<void> {
    const { name } = schedule;
    const repeat = await schedule.repeat();
    const options =
      'pattern' in repeat
        ? { pattern: repeat.pattern, ...(repeat.timeZone ? { tz: repeat.timeZone } : {}) }
        : // The queue's clock is the machine's.
          { every: repeat.everyMs, startDate: Date.now() + repeat.afterMs };
    const next = await this.#queue.upsertJobScheduler(name, options, { name });
    if (next?.id !== undefined) this.#jobIds.set(schedule, next.id);
    if (await schedule.missed()) await this.#pipeline.queues.add(this.#name, name, {}, { removeOnComplete: true, removeOnFail: true });
  }

  /** A Redis may lose a job's data, its place, or all that it knows of a schedule. */
  async #findLost(): Promise<Map<Schedule, string | undefined>> {
    const known = new Map((await this.#queue.getJobSchedulers()).map(({ key, next }) => [key, `repeat:${key}:${next}`]));
    const lost = new Map<Schedule, string | undefined>();
    for (const schedule of this.#schedules) {
      const id = known.get(schedule.name);
      if (id !== undefined) this.#jobIds.set(schedule, id);
      const job = id === undefined ? undefined : await this.#queue.getJob(id);
      if (!job || (await job.getState()) === 'unknown') lost.set(schedule, id);
    }
    return lost;
  }
}

/**
 * Looks every so often whether the queue still holds what it should: nothing else would tell, for to the workers an empty queue is one
 * without work.
 * @returns what ends it
 */
export function watchQueue({ log }: Pick<Pipeline, 'log'>, watched: WatchedQueue, everyMs: number): () => void {
  let looking = false;
  let closed = false;
  const look = async () => {
    // A Redis that is away answers when it is back, or not at all: then its connection tells the log.
    if (!(await watched.isLost().catch(() => false)) || closed) return;
    await watched.restore().catch(error => {
      if (!closed) log.warn({ reason: messageOf(error) }, 'the queue could not be filled again: tried again soon');
    });
  };
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look().finally(() => {
      looking = false;
    });
  }, everyMs);
  // It must not keep the process of who never closes it.
  timer.unref();
  return () => {
    closed = true;
    clearInterval(timer);
  };
}
