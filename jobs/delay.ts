import { DelayedError, type Job } from 'bullmq';

/** Leaves the worker, to come back later without having used an attempt. */
export async function delay(job: Job, lock: string | undefined, ms: number): Promise<never> {
  // The queue's clock is the machine's, in whole milliseconds.
  await job.moveToDelayed(Date.now() + Math.ceil(ms), lock);
  throw new DelayedError();
}
