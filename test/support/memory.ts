import { mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const PREFIX = 'ringneck-test-';
const ENOUGH_BYTES = 4e9;

/**
 * Lays temporary files in memory where there is room: else the suite waits for a disk that confirms, thousands of times. To a process that is
 * killed it is the same.
 */
export default function setup(): (() => void) | undefined {
  if (process.env.TMPDIR?.startsWith(join(MEMORY, PREFIX)) || freeBytes() < ENOUGH_BYTES) return;
  removeLeft();
  const folder = join(MEMORY, `${PREFIX}${process.pid}`);
  // Tests that become another user go through it.
  mkdirSync(folder, { mode: 0o711 });
  process.env.TMPDIR = folder;
  // A browser that has been ended may still write a file of its profile.
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}

function freeBytes(): number {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

/** What suites left that were killed. */
function removeLeft(): void {
  for (const name of readdirSync(MEMORY)) {
    if (name.startsWith(PREFIX) && !isRunning(Number(name.slice(PREFIX.length)))) {
      rmSync(join(MEMORY, name), { recursive: true, force: true });
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
