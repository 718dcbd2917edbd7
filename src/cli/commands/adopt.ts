import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { notesOnCopy } from '../copy-notes.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { printJson, printLine } from '../terminal/print.ts';

export function addAdopt(program: Command): void {
  withExample(
    program
      .command('adopt')
      .description(
        'give a copied data folder an id of its own, so that it has queues of its own beside the original: rows and ledger stay; ' +
          'jobs in the queues of the old id stay with the original, and what the ledger and the inbox hold here is enqueued again; ' +
          'sign-ins stay with the original too, and end here with their tokens',
      )
      .option('--json', 'print {id, before, sign_in_again, dropped}'),
    'ringneck adopt',
  ).action(async ({ json }: { json?: true }) => {
    const session = await openSession();
    const adopted = await call(session, 'adopt', {});
    if (json) printJson(adopted);
    else printLine(`the warehouse has the id ${adopted.id} (before: ${adopted.before})`);
    for (const text of notesOnCopy(adopted)) note(text);
  });
}
