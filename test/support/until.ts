import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until something is so; fails with its name when it is not after the time. Asking takes a third of the time at most: what is waited for needs it. */
export async function until(name: string, isSo: () => boolean | Promise<boolean>, ms = 120_000): Promise<void> {
  const end = Date.now() + ms;
  for (;;) {
    const asked = performance.now();
    if (await isSo()) return;
    if (Date.now() > end) throw new Error(`not after ${ms} ms: ${name}`);
    await sleep(Math.max(10, 2 * (performance.now() - asked)));
  }
}
