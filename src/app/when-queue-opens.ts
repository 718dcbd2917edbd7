import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../base/errors.ts';
import { withTimeout } from '../base/timeout.ts';
import { isPassing } from '../queue/environment-errors.ts';
import { QueueUnavailable } from '../queue/queues.ts';
import { addressOf } from '../queue/redis-address.ts';
import type { App } from './app.ts';

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
/** A slow machine may answer too late a few times; an embedded queue that never answers needs another process. */
const MOST_EMBEDDED = 5;
/** How long the end waits for a beginning that is under way. */
const END_MS = 2_000;

/**
 * Begins work that needs the queue: at once, or, with a Redis that is away, loading or not the one that writes, as soon as it takes work;
 * an embedded one that answers too late is opened again, a few times.
 * All else goes on meanwhile, and that is said once.
 * @param onFailed is told of what else keeps the work from beginning, when it has been waited for
 * @returns ends the work, or the waiting for it
 */
export async function whenQueueOpens(
  app: App,
  begin: () => Promise<() => unknown>,
  onFailed: (error: unknown) => void,
): Promise<() => Promise<void>> {
  const { log, settings } = app;
  const ending = new AbortController();
  const { signal } = ending;
  let end: () => unknown = () => undefined;
  let said = false;
  let attempts = 0;

  /** Whether there is nothing more to wait for. */
  async function attempt(url: string | undefined): Promise<boolean> {
    attempts++;
    try {
      await app.pipeline();
      if (signal.aborted) return true;
      const begun = await begin();
      if (signal.aborted) await begun();
      else end = begun;
    } catch (error) {
      if (signal.aborted) return true;
      if (!(url === undefined ? error instanceof QueueUnavailable && attempts < MOST_EMBEDDED : isPassing(error))) throw error;
      await app.dropPipeline(messageOf(error));
      if (!said) {
        const queue = url === undefined ? 'the embedded queue' : `Redis at ${addressOf(url)}`;
        log.warn({ reason: messageOf(error) }, `${queue} cannot be used; events are accepted and kept, the work begins when it answers`);
      }
      said = true;
      return false;
    }
    if (said) log.info('the queue is open: the work begins');
    return true;
  }

  async function tryAgain(): Promise<void> {
    for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, LONGEST_PAUSE_MS)) {
      await sleep(ms, undefined, { signal }).catch(() => undefined);
      if (signal.aborted || (await attempt(settings.queueUrl))) return;
    }
  }

  const waiting = (await attempt(settings.queueUrl)) ? undefined : tryAgain().catch(onFailed);
  return async () => {
    ending.abort();
    // A Redis that went away again while it began is not waited for: what it began closes with the queue.
    if (waiting) await withTimeout(waiting, END_MS).catch(() => undefined);
    await end();
  };
}
