import { spawnSync } from 'node:child_process';

/** Whether this machine has Prometheus's own checker. DEMAND_TOOLS=1 turns its absence into a failure instead of skipped tests. */
export const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
if (!hasPromtool && process.env.DEMAND_TOOLS === '1') {
  throw new Error('promtool (Debian: prometheus) is not there, and DEMAND_TOOLS=1 demands it');
}

/** What it printed; throws where it finds something wrong. */
export function promtool(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout + stderr;
}
