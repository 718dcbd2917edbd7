import { readFileSync } from 'node:fs';
import type { Said } from './child.ts';

/** What one piece of work cost this process, all its threads together. */
export interface Cost {
  /** Seconds, user and system. */
  cpu: number;
  /** Seconds. */
  wall: number;
  /** Highest resident set of the process so far, bytes. */
  peak: number;
}

/** Makes this process do one task for the one that forked it, and end. */
export function performTask<Job, Result>(perform: (job: Job) => Promise<Result>): void {
  process.once('message', async ({ job }: { job: Job }) => {
    const said: Said<Result> = await perform(job).then(
      result => ({ result }),
      error => ({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    );
    process.send!(said, () => process.connected && process.disconnect());
  });
}

/** Runs work and says what it cost. What the process did before (start, loading modules, reading its input) is not in it. */
export async function withCost<Result>(work: () => Promise<Result>): Promise<{ cost: Cost; result: Result }> {
  const before = process.cpuUsage();
  const start = performance.now();
  const result = await work();
  const wall = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(before);
  return { cost: { cpu: (user + system) / 1e6, wall, peak: peakBytes() }, result };
}

/** What this process has cost since its start: Node's own and the loading of modules are in it. */
export function wholeCost(): Cost {
  const { user, system } = process.cpuUsage();
  return { cpu: (user + system) / 1e6, wall: performance.now() / 1000, peak: peakBytes() };
}

function peakBytes(): number {
  try {
    // `maxRSS` of a child begins with that of its parent on Linux.
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]) * 1024;
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}
