import { setMaxListeners } from 'node:events';

/**
 * Everything that is being read, so that it can be stopped by its own signal or all at once. One controller for each read:
 * `AbortSignal.any` would do, but on Node 20 it keeps memory for as long as its longest-lived source.
 */
export class AbortRegistry {
  readonly #controllers = new Set<AbortController>();
  #closed = false;

  /** A read begins; `leave` is called when it is over, whichever way. */
  open(signal?: AbortSignal): { signal: AbortSignal; leave(): void } {
    const controller = new AbortController();
    const stop = () => controller.abort();
    if (this.#closed || signal?.aborted) stop();
    if (signal) {
      // One signal stops many reads; Node would warn of a leak at the eleventh.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', stop, { once: true });
    }
    this.#controllers.add(controller);
    const leave = () => {
      signal?.removeEventListener('abort', stop);
      this.#controllers.delete(controller);
    };
    return { signal: controller.signal, leave };
  }

  stopAll(): void {
    this.#closed = true;
    for (const controller of this.#controllers) controller.abort();
  }
}
