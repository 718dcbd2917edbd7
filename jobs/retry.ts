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

/** Why an attempt to deliver an event failed (6.1). Each class has retries of its own. */
export const FAILURE_CLASSES = ['4xx', '5xx', 'timeout'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

/** How often a delivery has failed, by class. */
export type Failures = Readonly<Partial<Record<FailureClass, number>>>;

export interface Retry {
  failures: Failures;
  delayMs: number;
}

/**
 * The 10 retries of a class (section 8), in seconds after the failure before: soon at first, an hour in all. Eleven timeouts of 10
 * seconds come to that, which together with the jitter stays between 54 and 66 minutes.
 */
const DELAYS = [15, 30, 60, 120, 240, 360, 480, 660, 780, 855];
const JITTER = 0.05;

/**
 * When to try again after a failure; undefined: never.
 * @param failures those before the latest
 * @param random from 0 to 1
 */
export function planRetry(failures: Failures, latest: FailureClass, random: number): Retry | undefined {
  const before = failures[latest] ?? 0;
  const seconds = DELAYS[before];
  if (seconds === undefined) return undefined;
  return { failures: { ...failures, [latest]: before + 1 }, delayMs: seconds * 1000 * (1 + JITTER * (2 * random - 1)) };
}
