import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import type { EraseReport } from '../../app/erase/report.ts';
import { isClean } from '../../app/erase/report.ts';
import { RingneckError, UsageError } from '../../base/errors.ts';
import { Interrupted, interruptible } from '../../base/interrupt.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { printAccount } from '../terminal/account-line.ts';
import { linesOf } from '../terminal/erase-report.ts';
import { note } from '../terminal/note.ts';
import { formatCount, formatTable, printJson, printLine, printLines } from '../terminal/print.ts';

const ABOUT_ERASING = `
--erase removes all that is kept of a person: rows, samples, tombstones, rejected documents, events, the ledger's entries, token. A new
file of what remains is written in place of the old one, the queue is emptied (what waits for others is enqueued again), the snapshot is made
anew, halves of copies that a crash left are removed, and all of it is searched afterwards for name, service id and token. A running
\`ringneck up\` pauses meanwhile. Interrupted, it is finished by the next command, which says what the search found.
It does not reach: backups that were made before, which bring the person back when they are restored, and copies of yours; exports, of which those in the data folder are listed; dated snapshots, which are listed
where they hold the person and never altered; and what a disk keeps of removed files until it is written over (on an SSD or a journaling
file system writing over them would not change that; an encrypted disk does). The service goes on sending events of the person until the person's consent is withdrawn there: of those nothing is noted. That they are
known again takes one keyed hash of each of the person's service ids, which stays in sync.meta and in no snapshot. They count again for an
account that has such an id: \`account add\`, or \`account map\`.`;

interface Options {
  erase?: true;
  yes?: true;
  json?: true;
}

export function addRemove(account: Command): void {
  withExample(
    account
      .command('remove <name>')
      .description('remove an account and its token; its rows stay unless --erase is given')
      .option('--erase', 'erase everything that is stored about the person')
      .option('--yes', 'do not ask for the name before erasing')
      .option('--json', 'print the account as JSON, or what was erased')
      .addHelpText('after', ABOUT_ERASING),
    'ringneck account remove ada',
    'ringneck account remove ada --erase',
  ).action(async (name: string, options: Options) => {
    const session = await openSession();
    if (!options.erase) {
      if (options.yes) throw new UsageError('--yes belongs to --erase');
      printAccount(await call(session, 'removeAccount', { name }), options);
      return;
    }
    parseAccountName(name);
    if (!options.yes) {
      ensureTerminal();
      await call(session, 'ensureErasable', { name });
      await confirmErase(name);
    }
    const report = await interruptible(signal => {
      signal.addEventListener('abort', () => note(GOES_ON), { once: true });
      return call(session, 'eraseAccount', { name }, { signal });
    });
    if (options.json) printJson(report);
    else printReport(report);
    if (!isClean(report)) process.exitCode = 1;
  });
}

const GOES_ON =
  'the erasing goes on; Ctrl-C again leaves it: where nobody else is at it, the next command that opens the folder finishes it';

function ensureTerminal(): void {
  if (!process.stdin.isTTY) throw new UsageError('--erase asks for the name again, and nobody is there to type it: add --yes');
}

async function confirmErase(name: string): Promise<void> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const typed = await Promise.race([
      prompt.question(`All that is kept of ${name} will be gone for good. Type the name to go on: `),
      // Ctrl-C.
      new Promise<never>((_, reject) => prompt.once('SIGINT', () => reject(new Interrupted()))),
      // Ctrl-D.
      new Promise<string>(resolve => prompt.once('close', () => resolve(''))),
    ]);
    if (typed.trim() !== name) throw new RingneckError('that is not the name: nothing was erased');
  } finally {
    prompt.close();
  }
}

function printReport(report: EraseReport): void {
  const { user_id: name, found } = report;
  const rows = Object.entries(report.removed);
  if (rows.length)
    printLines(
      formatTable(
        ['table', 'rows removed'],
        rows.map(([table, count]) => [table, formatCount(count)]),
      ),
    );
  if (report.events) printLine(`${formatCount(report.events)} waiting events removed`);
  if (report.snapshot) printLine(`snapshot rebuilt: ${report.snapshot}`);
  const words = report.searched_for.join(', ');
  printLine(`${formatCount(report.files)} files searched for ${words}: ${found.length ? 'found' : 'nothing found'}`);
  for (const line of linesOf(report)) printLine(line);
  printLine(isClean(report) ? `${name} is erased` : `${name} is erased from the warehouse, but not from all that was searched: see above`);
}
