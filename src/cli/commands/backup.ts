import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { BackupReport } from '../../app/backup/backup.ts';
import { call } from '../../app/call.ts';
import { interruptible } from '../../base/interrupt.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatBytes, formatCount, printJson, printLine } from '../terminal/print.ts';

const ABOUT = `
In it are the warehouse, the sealed tokens and sign-ins with their key, and the events that are accepted and not worked off. Not in it are
the queue, which is made again from these, snapshots and exports, the prompt's history, and your settings: keep .env with it.
The folder appears when it is whole. A person who is erased stays in the backups that were made before: remove those, too.`;

const KEYS: Record<BackupReport['key'], string> = {
  included: 'the key is in it: whoever can read the backup can use the tokens',
  left_out: 'the key is not in it: keep secret.key elsewhere, for without it everybody has to sign in again',
  environment: 'the key is not in it: keep RINGNECK_SECRET_KEY, for without it everybody has to sign in again',
  none: 'there is no key in the data folder, and none in the backup',
};

export function addBackup(program: Command): void {
  withExample(
    program
      .command('backup <folder>')
      .description('copy all that cannot be made again into a new folder, also while `ringneck up` runs; `ringneck restore` reads it')
      .option('--without-key', 'leave secret.key out: then the backup opens no token')
      .option('--json', 'print {path, made_at, id, bytes, events, key, unreadable}')
      .addHelpText('after', ABOUT),
    'ringneck backup /mnt/backups/ring-2026-01-31',
  ).action(async (folder: string, { withoutKey = false, json }: { withoutKey?: boolean; json?: true }) => {
    const session = await openSession();
    const input = { folder: resolve(folder), withoutKey };
    const report = await interruptible(signal => call(session, 'backup', input, { signal }));
    if (json) return printJson(report);
    const waiting = report.events ? `, ${formatCount(report.events)} ${report.events === 1 ? 'event that waits' : 'events that wait'}` : '';
    printLine(`${report.path}: ${formatBytes(report.bytes)}${waiting}`);
    note(KEYS[report.key]);
    for (const file of report.unreadable) note(`the lines of ${file} that cannot be read are not in it: ringneck doctor says what to do`);
  });
}
