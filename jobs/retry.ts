import type { Job } from 'bullmq';
import { messageOf } from '../src/base/errors.ts';
import { isPassing } from '../src/queue/environment-errors.ts';
import { QueueUnavailable } from '../src/queue/queues.ts';

/** Leaves the worker, to come back later without having used an attempt. */
export async function delay(job: Job, lock: string | undefined, ms: number): Promise<never> {
  try {
    // The queue's clock is the machine's, in whole milliseconds.
    await job.moveToDelayed(Date.now() + Math.ceil(ms), lock);
  } catch (error) {
    if (isPassing(error)) throw new QueueUnavailable(`the job cannot be put off: ${messageOf(error)}`, { cause: error });
    throw error;
  }
  throw new PutOff();
}

/** BullMQ knows it by its name. Its own class is not taken: it would load all of BullMQ for commands that have no queue. */
class PutOff extends Error {
  override name = 'DelayedError';
}
