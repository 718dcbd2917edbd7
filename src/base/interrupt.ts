import { RingneckError } from './errors.ts';

/** Ended by its user, as shells count it: 128 + SIGINT. */
export class Interrupted extends RingneckError {
  constructor() {
    super('interrupted', 130);
  }
}

/**
 * Runs `work` with a signal that Ctrl-C, SIGTERM and a terminal that is closed abort, so that it can stop cleanly. A second Ctrl-C ends the
 * process at once: everything committed is safe.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Interrupted());
  };
  // The system says it, and the shell may say it again.
  const leave = () => controller.abort(new Interrupted());
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  process.on('SIGHUP', leave);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
    process.off('SIGHUP', leave);
  }
}

/** Closes everything, the last opened first, also when one of them fails; then throws the first failure. */
export async function closeAll(closing: (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closing.toReversed()) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length) throw failures[0];
}
