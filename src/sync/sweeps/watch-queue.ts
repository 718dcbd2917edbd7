import { messageOf } from '../../base/errors.ts';
import type { Pipeline } from '../pipeline.ts';

/** A queue whose store may come back empty: a Redis that keeps nothing on disk, or was flushed. */
export interface WatchedQueue {
  isLost(): Promise<boolean>;
  /** Puts into it what it should hold. */
  restore(): Promise<void>;
}

/**
 * Looks every so often whether the queue still holds what it should: nothing else would tell, for to the workers an empty queue is one
 * without work.
 * @returns what ends it
 */
export function watchQueue({ log }: Pick<Pipeline, 'log'>, { isLost, restore }: WatchedQueue, everyMs: number): () => void {
  let looking = false;
  let closed = false;
  const look = async () => {
    // A Redis that is away answers when it is back, or not at all: then its connection tells the log.
    if (!(await isLost().catch(() => false)) || closed) return;
    await restore().catch(error => {
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
