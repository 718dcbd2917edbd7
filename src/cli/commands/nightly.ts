import type { Command } from 'commander';
import { wholeNumber, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { reportRun } from './backfill.ts';

export function addNightly(program: Command): void {
  withExample(
    program
      .command('nightly')
      .description('read the last days of every collection again, once; for cron (`ringneck up` does this by itself)')
      .option('--days <n>', 'how many days (RINGNECK_NIGHTLY_DAYS)', wholeNumber(1, 36_500))
      .option('--accept-deletions', 'remove what the service no longer has, however much it is')
      .option('--json', 'print the summary as JSON'),
    'ringneck nightly',
  ).action(async (options: { days?: number; acceptDeletions?: true; json?: true }) => {
    const session = await openSession();
    const input = { days: options.days ?? session.settings.nightlyDays, acceptDeletions: options.acceptDeletions ?? false };
    await reportRun(session, 'nightly', input, options);
  });
}
