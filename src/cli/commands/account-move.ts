import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { interruptible } from '../../base/interrupt.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatCount, printJson, printLine } from '../terminal/print.ts';

const ABOUT = `
Rows, ledger, tokens and the mirror's token get the new name; the queue is emptied, and what waits is enqueued again; the snapshot is made
anew. A new file is written in place of the warehouse: the disk must have room for it, and it takes as long as copying it. A running
\`ringneck up\` pauses meanwhile. Interrupted, it is finished by the next command, or nothing has changed. Other accounts stay as they are.
It does not reach: dated snapshots, exports and backups, which keep the former name.`;

export function addMove(account: Command): void {
  withExample(
    account
      .command('move <old> <new>')
      .description('give an account another name, with all that is kept of it; the new name must not be in use')
      .option('--json', 'print {user_id, before, moved, snapshot, left}: moved has the number of rows, by table')
      .addHelpText('after', ABOUT),
    'ringneck account move ada p-017',
  ).action(async (from: string, to: string, options: { json?: true }) => {
    const session = await openSession();
    const report = await interruptible(signal => {
      signal.addEventListener('abort', () => note(GOES_ON), { once: true });
      return call(session, 'moveAccount', { from, to }, { signal });
    });
    if (options.json) return printJson(report);
    const counts = Object.values(report.moved);
    const rows = counts.reduce((sum, count) => sum + count, 0);
    printLine(`${report.before} is ${report.user_id} now: ${formatCount(rows)} rows in ${counts.length} tables`);
    if (report.snapshot) printLine(`snapshot rebuilt: ${report.snapshot}`);
    if (report.left) note(report.left);
  });
}

const GOES_ON = 'the move goes on; Ctrl-C again leaves it: where nobody else is at it, the next command that opens the folder finishes it';
