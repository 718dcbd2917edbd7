import { setMaxListeners } from 'node:events';

/** Everything that is being read, so that it can be stopped by its own signal or all at once. */
export interface AbortRegistry {
  open(signal?: AbortSignal): AbortEntry;
  stopAll(): void;
}

export interface AbortEntry {
  signal: AbortSignal;
  /** To be called when the read is over, whichever way. */
  leave(): void;
}

/** One controller for each read. `AbortSignal.any` would do, but on Node 20 it keeps memory for as long as its longest-lived source. */
export function createAbortRegistry(): AbortRegistry {
  const controllers = new Set<AbortController>();
  let closed = false;
  return {
    open(signal) {
      const controller = new AbortController();
      const stop = () => controller.abort();
      if (closed || signal?.aborted) stop();
      if (signal) {
        // One signal stops many reads; Node would warn of a leak at the eleventh.
        setMaxListeners(0, signal);
        signal.addEventListener('abort', stop, { once: true });
      }
      controllers.add(controller);
      return {
        signal: controller.signal,
        leave() {
          signal?.removeEventListener('abort', stop);
          controllers.delete(controller);
        },
      };
    },
    stopAll() {
      closed = true;
      for (const controller of controllers) controller.abort();
    },
  };
}
