import { readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';

/** Host, device and inode: two folders never share them, and a folder keeps them when it is opened again. */
export function identityOfFolder(folder: string): string {
  const { dev, ino } = statSync(folder);
  return `${hostOf()} ${dev}:${ino}`;
}

/** A machine that was cloned has the name of the other; what counts its starts differs. */
function hostOf(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return hostname();
  }
}
