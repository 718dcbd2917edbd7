import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { interruptible } from '../../base/interrupt.ts';
import { accessCommand } from '../../base/sign-in-again.ts';
import type { CoverageSelection } from '../../sync/coverage.ts';
import { collect, parseDay, withExample } from '../options.ts';
import { openSession, type Session } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatCount, printJson, printLines } from '../terminal/print.ts';

interface Options {
  user?: string[];
  resource?: string[];
  from?: string;
  to?: string;
  repair?: true;
  detach?: true;
  json?: true;
}

export function addCoverage(program: Command): void {
  withExample(
    program
      .command('coverage')
      .description(
        'show coverage per account, collection and day: stored, empty at the service, or missing and why; exits with 1 when anything is missing',
      )
      .option('--user <name>', 'only this account, also one that was removed (may be repeated)', collect)
      .option('--resource <collection>', 'only this collection (may be repeated)', collect)
      .option('--from <day>', 'first day (the first that was ever planned)', parseDay)
      .option('--to <day>', 'last day (yesterday, UTC)', parseDay)
      .option('--repair', 'read exactly what is missing, then show what is still missing')
      .option('--detach', 'with --repair: let a running `ringneck up` go on with it when this command ends')
      .option('--json', 'print an array of {user_id, collection, from, to, state, reason}'),
    'ringneck coverage',
    'ringneck coverage --user ada --resource sleep --from 2025-01-01',
    'ringneck coverage --repair',
  ).action(async (options: Options) => {
    const session = await openSession();
    const selection: CoverageSelection = {
      ...(options.user ? { users: options.user } : {}),
      ...(options.resource ? { collections: options.resource } : {}),
      ...(options.from ? { from: options.from } : {}),
      ...(options.to ? { to: options.to } : {}),
    };
    if (options.repair && !(await repair(session, selection, options.detach ?? false))) return;
    const report = await call(session, 'coverage', selection);
    const { coverageLines, hasTrouble } = await import('../terminal/calendar.ts');
    if (hasTrouble(report)) process.exitCode = 1;
    if (options.json) return printJson(report.runs);
    if (!report.runs.length) return note(`no account yet: ${accessCommand('NAME', session.settings)}`);
    // Node knows of NO_COLOR and of terminals without colours.
    const colours = process.stdout.isTTY === true && process.stdout.hasColors();
    for (const line of coverageLines(report, colours)) printLines(line, { coloured: colours });
  });
}

/** False when its user stopped it. */
async function repair(session: Session, selection: CoverageSelection, detach: boolean): Promise<boolean> {
  const { showRun } = await import('../terminal/run-progress.ts');
  const progress = showRun();
  const input = { ...selection, ...(detach ? { detach } : {}) };
  const report = await interruptible(async signal => {
    try {
      return await call(session, 'repair', input, { onEvent: progress.update, signal });
    } finally {
      progress.end();
    }
  });
  if (report?.state === 'stopped') {
    note('stopped; the same command goes on with it');
    process.exitCode = 130;
    return false;
  }
  if (report) note(`read ${formatCount(report.windows.done)} of ${formatCount(report.windows.planned)} windows that were missing`);
  else note('nothing that may be asked for is missing');
  return true;
}
