import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until something is so; fails with its name when it is not after the time. */
export async function until(name: string, isSo: () => boolean | Promise<boolean>, ms = 120_000): Promise<void> {
  const end = Date.now() + ms;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`not after ${ms} ms: ${name}`);
    await sleep(10);
  }
}
