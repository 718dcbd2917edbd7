import { setTimeout as sleep } from 'node:timers/promises';
import { checkRedis } from '../../queue/check-redis.ts';
import type { App } from '../app.ts';

const LONGEST_PAUSE_MS = 10_000;
/** Each try may write a snapshot before it fails. */
const LONGEST_FOR_FILE_MS = 60_000;
const REDIS_MS = 5_000;

/** What is kept from one waiting to the next. */
export interface ErasingWait {
  /** Before the next attempt. */
  ms: number;
  said: boolean;
}

/**
 * Has an erasing that waits finished as soon as it can be: the folder is closed, and finishes it when it is opened again.
 * @returns ends the waiting
 */
export function whenErased(app: App, wait: ErasingWait): () => void {
  const { log, settings, erasing } = app;
  const ending = new AbortController();
  const { signal } = ending;
  if (!wait.said) {
    const what = `an account is being erased, which waits for ${erasing?.waitsFor}; events are accepted and kept, but for those of that person, all else waits`;
    const closed = 'each try closes the folder for a while: events are answered 503 then, and the service sends them again';
    log.warn({ reason: erasing?.reason }, `${what}; ${closed}`);
  }
  wait.said = true;

  async function tryAgain(): Promise<void> {
    for (;;) {
      await sleep(wait.ms, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      wait.ms = Math.min(2 * wait.ms, erasing?.waitsFor === 'Redis' ? LONGEST_PAUSE_MS : LONGEST_FOR_FILE_MS);
      try {
        if (settings.queueUrl) await checkRedis(settings.queueUrl, REDIS_MS);
        if (signal.aborted) return;
        // From here on another waiting follows, where it is needed.
        return await app.withExclusive(async () => undefined);
      } catch {
        // Away still, or the folder is about to be closed by somebody else.
      }
    }
  }

  void tryAgain();
  return () => ending.abort();
}
