import type { Command } from 'commander';
import type { StatusReport } from './operations.ts';
import { withExample } from './options.ts';
import { perform } from './perform.ts';
import { formatTable, printJson, printLine, remark } from './print.ts';
import { openSession } from './session.ts';

export function addStatus(program: Command): void {
  withExample(
    program
      .command('status')
      .description('show per account and collection the newest day, the last success, failures, and what is parked and why')
      .option('--json', 'print the report as JSON'),
    'ringneck status',
  ).action(async (options: { json?: true }) => {
    const report = await perform(openSession(), 'status', {});
    if (options.json) printJson(report);
    else printStatus(report);
  });
}

function printStatus({ accounts, queue, snapshot, heart_rate_path: path }: StatusReport): void {
  if (!accounts.length) remark('no account yet: ringneck account add NAME');
  for (const account of accounts) {
    printLine(`${account.user_id}: ${account.state}${account.reason ? ` (${account.reason})` : ''}`);
    const rows = account.collections.map(({ name, state, newest_day, lag, failures, reason }) => [
      `  ${name}`,
      state,
      newest_day,
      lag === null ? null : formatLag(lag),
      failures || null,
      reason,
    ]);
    printLine(formatTable(['  collection', 'state', 'newest day', 'read', 'failures', 'reason'], rows));
    printLine();
  }
  printLine(`queue: ${queue.waiting} waiting, ${queue.active} active, ${queue.delayed} delayed, ${queue.failed} failed`);
  printLine(`snapshot: ${snapshot.at ?? 'none yet'}`);
  printLine('webhooks: not configured');
  if (path) printLine(`heart rate: ${path}${path.includes('/sandbox/') ? ' (generated data)' : ''}`);
}

function formatLag(seconds: number): string {
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} days ago`;
}
