import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { writeParticipants } from '../../app/participants.ts';
import { MOST_LINES, readPeopleFile } from '../../app/people-file.ts';
import { messageOf, RingneckError, UsageError } from '../../base/errors.ts';
import { writeFileAtomically } from '../../base/files.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { noteFree, refuseLines } from '../terminal/people-file.ts';
import { formatCount, printJson, printLine, printLines } from '../terminal/print.ts';

export function addParticipants(program: Command): void {
  const participants = withExample(
    program
      .command('participants')
      .description('what a study knows of its participants, as the table participants that views can join: import, export, remove'),
    'ringneck participants import people.csv',
    'ringneck participants export people-2025.csv',
  );
  for (const add of [addImport, addExport, addRemove]) add(participants);
}

/** Who is not named stands in the file. */
const MOST_NAMED = 20;

const COLUMNS = `
The first line names the columns: name (of the account, which may be added later), and any of group_name, enrolled_from, enrolled_until
(YYYY-MM-DD, both days count), birth_year, max_heart_rate. Every other column is kept under its name in extra, numbers as numbers.
A line replaces what its columns say of a participant, an empty field empties it, and what the file has no column for stays.
When one line is wrong, nothing of the file is stored. Commas, semicolons or tabs may separate the fields; the text is UTF-8.`;

function addImport(participants: Command): void {
  withExample(
    participants
      .command('import <file>')
      .description(
        'read a CSV file with a line for each participant; importing it again changes nothing; exits with 1 when a line is wrong',
      )
      .option('--json', 'print {added, changed, unchanged, without_account, extra, bad}')
      .addHelpText('after', COLUMNS),
    'ringneck participants import people.csv',
  ).action(async (file: string, { json }: { json?: true }) => {
    const session = await openSession();
    const { people, bad, free } = readPeopleFile(file, { withTokens: false });
    const nothing = { added: [], changed: [], unchanged: [], without_account: [], bad };
    const report = bad.length ? nothing : await call(session, 'importParticipants', { people });
    if (json) printJson({ ...report, extra: free });
    if (report.bad.length) throw refuseLines(file, report.bad);
    const { added, changed, unchanged, without_account: planned } = report;
    if (planned.length) note(`no account yet: ${listSome(planned)}`);
    noteFree(free);
    if (json) return;
    const [news, others, same] = [added, changed, unchanged].map(({ length }) => formatCount(length));
    printLine(`${countPeople(people.length)}: ${news} added, ${others} changed, ${same} unchanged`);
  });
}

function addExport(participants: Command): void {
  withExample(
    participants
      .command('export [file]')
      .description(
        'write all participants as CSV, to a new file or to standard output, as `import` reads it; values are written as they are',
      )
      .addHelpText(
        'after',
        `\nOf more than ${formatCount(MOST_LINES)} participants make several files before they are imported, each with the first line.`,
      ),
    'ringneck participants export people-2025.csv',
  ).action(async (file: string | undefined) => {
    const session = await openSession();
    // A file that somebody wrote by hand may say more, and in another order.
    if (file !== undefined && existsSync(file)) throw new UsageError(`${file} is there already: name a new file, or remove that one`);
    const participants = await call(session, 'listParticipants', {});
    const text = writeParticipants(participants);
    if (file === undefined) return printLines(text.trimEnd());
    try {
      writeFileAtomically(file, text);
    } catch (error) {
      throw new RingneckError(`cannot write ${file}: ${messageOf(error)}`, 1, { cause: error });
    }
    printLine(`${resolve(file)}: ${countPeople(participants.length)}`);
  });
}

const listSome = (names: readonly string[]) =>
  names.length > MOST_NAMED
    ? `${names.slice(0, MOST_NAMED).join(', ')} and ${formatCount(names.length - MOST_NAMED)} more`
    : names.join(', ');

const countPeople = (count: number) => `${formatCount(count)} participant${count === 1 ? '' : 's'}`;

function addRemove(participants: Command): void {
  withExample(
    participants
      .command('remove <name...>')
      .description('forget what the study knows of participants; their accounts, and what was read of them, stay')
      .option('--json', 'print {removed}'),
    'ringneck participants remove zoe',
  ).action(async (names: string[], { json }: { json?: true }) => {
    const report = await call(await openSession(), 'removeParticipants', { names });
    if (json) return printJson(report);
    for (const name of report.removed) printLine(`${name} removed`);
  });
}
