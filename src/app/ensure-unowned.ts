import { setTimeout as sleep } from 'node:timers/promises';
import { TryLaterError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { connectControl } from './control/connect-control.ts';

const PATIENCE_MS = 10_000;
const EVERY_MS = 100;

/**
 * Waits for a command that is about to end; that another `up` has the folder is told at once. (Patience is for tests.)
 * @throws TryLaterError naming the process that owns the folder
 */
export async function ensureUnowned({ data, log }: { data: string; log: Log }, patienceMs = PATIENCE_MS): Promise<void> {
  const until = performance.now() + patienceMs;
  for (let isFirst = true; ; isFirst = false) {
    const owner = await connectControl(data);
    if (!owner) return;
    if (!owner.isPassing) throw new TryLaterError(`${data} is owned by a running ringneck (PID ${owner.pid}): end it first`);
    if (performance.now() >= until)
      throw new TryLaterError(`${data} is owned by a command that still runs (PID ${owner.pid}): try again when it has ended`);
    if (isFirst) log.info({ pid: owner.pid }, 'another command has the data folder: it is waited for, for a moment');
    await sleep(EVERY_MS);
  }
}
