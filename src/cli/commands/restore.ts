import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { RestoreReport } from '../../app/backup/restore.ts';
import { interruptible } from '../../base/interrupt.ts';
import { loginCommand } from '../../base/sign-in-again.ts';
import { notesOnCopy } from '../copy-notes.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatCount, printJson, printLine } from '../terminal/print.ts';

const ABOUT = `
The folder must hold no warehouse (RINGNECK_DATA names it); a secret.key that was kept elsewhere may lie there already. Everything in the backup is checked before
anything is in its place. The warehouse keeps its id: it moves, and the folder that it came from is not to be started again, for two that renew one
sign-in end it for both. With --as-copy both live on: this one gets an id of its own, and the original goes on to renew the sign-ins.`;

const MS_PER_DAY = 86_400_000;

export function addRestore(program: Command): void {
  withExample(
    program
      .command('restore <folder>')
      .description('make the data folder from a backup; without --as-copy the warehouse moves here')
      .option('--as-copy', 'the original lives on: give the warehouse an id of its own')
      .option(
        '--json',
        'print {data, made_at, service_at, ringneck, id, before, events, signed_in, sign_in_again, dropped, tokens_closed, removed, left}',
      )
      .addHelpText('after', ABOUT),
    'ringneck restore /mnt/backups/ring-2026-01-31',
  ).action(async (folder: string, { asCopy = false, json }: { asCopy?: boolean; json?: true }) => {
    const { settings } = await openSession();
    const { restoreBackup } = await import('../../app/backup/restore.ts');
    const report = await interruptible(signal => restoreBackup(settings, { folder: resolve(folder), asCopy }, signal));
    if (json) printJson(report);
    else {
      const waiting = report.events
        ? `; ${formatCount(report.events)} ${report.events === 1 ? 'event that waited is' : 'events that waited are'} worked off by the next start`
        : '';
      printLine(`${report.data} is as it was at ${report.made_at} (Ringneck ${report.ringneck})${waiting}`);
    }
    for (const text of notesOn(report, settings.settledDays)) note(text);
  });
}

/** What the backup cannot know. */
function notesOn(report: RestoreReport, settledDays: number): string[] {
  const { service_at, before, signed_in, tokens_closed, removed, left } = report;
  // Of days that were not settled by then, by the service's clock, later versions may have come.
  const from = new Date(Date.parse(service_at) - (settledDays + 1) * MS_PER_DAY).toISOString().slice(0, 10);
  const notes = [
    `what came since, events too, is not in it: ringneck backfill --from ${from} reads it`,
    'accounts that were removed or erased since, or withdrew, are there again: ringneck account list',
  ];
  if (removed.length) notes.push(`what readers had of the warehouse that lay here before is gone: ${removed.join(', ')}`);
  notes.push(...left);
  if (tokens_closed !== null) notes.push(`no token can be opened: ${tokens_closed}`);
  if (before !== null) notes.push(...notesOnCopy(report));
  else if (signed_in.length) {
    notes.push('do not start the folder again that this was a backup of: two that renew one sign-in end it for both');
    notes.push(`a sign-in that was renewed since is over: where status says so, ${loginCommand('NAME')} (${signed_in.join(', ')})`);
  }
  return notes;
}
