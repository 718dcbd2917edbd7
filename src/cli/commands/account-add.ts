import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { addDays, dayOfMicros } from '../../../schema/instant.ts';
import type { AddedReport } from '../../app/account-commands.ts';
import type { LineReport } from '../../app/add-accounts.ts';
import { call } from '../../app/call.ts';
import type { RunReport } from '../../app/follow-run.ts';
import { readPeopleFile } from '../../app/people-file.ts';
import { messageOf, UsageError } from '../../base/errors.ts';
import { interruptible } from '../../base/interrupt.ts';
import { isToken, TOKEN_FORM } from '../../base/token.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { parseDay, withExample } from '../options.ts';
import { openSession, type Session } from '../session.ts';
import { printAccount } from '../terminal/account-line.ts';
import { askHidden } from '../terminal/ask.ts';
import { note } from '../terminal/note.ts';
import { noteFree, refuseLines } from '../terminal/people-file.ts';
import { printJson, printLine } from '../terminal/print.ts';
import { performRun, reportRun, runJson } from './backfill.ts';

interface Options {
  file?: string;
  tokenFile?: string;
  keepToken?: true;
  serviceUser?: string;
  from?: string;
  json?: true;
}

export function addAdd(account: Command): void {
  withExample(
    account
      .command('add [name]')
      .description(
        'add an account, or replace the token of one; reads the token from standard input; exits with 1 when the service refuses the token or cannot be asked',
      )
      .allowExcessArguments()
      .option('--token-file <file>', 'read the token from a file')
      .option('--file <file>', 'add everybody of a CSV file with the columns name and token, and what a study knows of them')
      .option('--keep-token', 'keep the stored token, for the address that RINGNECK_SERVICE_URL names now')
      .option('--service-user <id>', 'the service’s user id of the person, as events carry it')
      .option('--from <day>', 'backfill from this day on at once', parseDay)
      .option('--json', 'print the account as JSON; with --from its run too, as `backfill`, null where none came to its report'),
    'printf %s "$TOKEN" | ringneck account add ada',
    'ringneck account add ada --token-file ada.token',
    'ringneck account add --file people.csv',
  ).action(async (given: string | undefined, options: Options, command: Command) => {
    const session = await openSession();
    if (options.file !== undefined) return addPeople(session, options.file, given, options);
    if (given === undefined) throw new UsageError('whose account? give a name, or --file with many');
    const name = parseAccountName(given);
    if (command.args.length > 1)
      throw new UsageError('a token is never an argument, where others can see it: pipe it in, or use --token-file');
    refuseWrong(options);
    const { keepToken, tokenFile, serviceUser, from } = options;
    const token = keepToken ? undefined : await readToken(name, tokenFile);
    const added = await call(session, 'addAccount', {
      name,
      ...(token === undefined ? {} : { token }),
      ...(serviceUser ? { serviceUser } : {}),
      ...(from ? { from } : {}),
    });
    await showAdded(session, added, options);
  });
}

/** Says how an account stands that was added or given something new, and reads it from a day on, or its last days, where that is asked for. */
export async function showAdded(
  session: Session,
  { warning, ...report }: AddedReport & { warning: string | null },
  { from, last, json }: { from?: string; last?: number; json?: true },
): Promise<void> {
  offerMap(report);
  if (warning) note(`warning: ${warning}`);
  warnOfSamePerson(report);
  // Kept, and nothing is read with it, or nobody knows whether anything can be.
  if (report.state === 'parked' || !report.tried) process.exitCode = 1;
  if (from || last) await backfillAdded(session, report, { ...(from ? { from } : { last }), json: json ?? false });
  else printAccount(report, { ...(json && { json }) });
}

/** A line for each person, printed as it is done. */
async function addPeople(session: Session, file: string, name: string | undefined, options: Options): Promise<void> {
  const { tokenFile, keepToken, serviceUser, from, json } = options;
  if (name !== undefined || tokenFile || keepToken || serviceUser || from) {
    throw new UsageError('--file names everybody: give no name with it, nor another option but --json');
  }
  const { people, bad, free } = readPeopleFile(file, { withTokens: true });
  if (bad.length) throw refuseLines(file, bad);
  const shown = new Set<number>();
  const show = (report: LineReport) => {
    if (!json && !shown.has(report.line)) printLine(`${report.user_id} ${report.result}${report.reason ? `: ${report.reason}` : ''}`);
    shown.add(report.line);
  };
  const report = await interruptible(signal => call(session, 'addAccounts', { people }, { onEvent: show, signal }));
  if (report.bad.length) throw refuseLines(file, report.bad);
  noteFree(free);
  for (const line of report.people) show(line);
  if (json) printJson(report.people);
  const count = (result: LineReport['result']) => report.people.filter(line => line.result === result).length;
  note(`${people.length} in ${file}: ${count('added')} added, ${count('unchanged')} unchanged, ${count('failed')} failed`);
  if (count('failed')) process.exitCode = 1;
}

function refuseWrong({ from, keepToken, tokenFile }: Options): void {
  refuseFuture(from);
  if (keepToken && tokenFile) throw new UsageError('--keep-token and --token-file exclude each other');
}

/** The service's calendar decides, and may be ahead of ours; so far ahead is none. */
export function refuseFuture(from: string | undefined): void {
  if (from && from > addDays(dayOfMicros(Date.now() * 1000), 36_525)) throw new UsageError(`--from ${from} is in the future`);
}

function warnOfSamePerson({ user_id: name, same_person: same }: AddedReport): void {
  if (!same) return;
  const { accounts, events_go_to: to } = same;
  note(`warning: ${name} is the same person at the service as ${accounts.join(', ')}: events go to ${to} alone`);
}

/** Events name a person by an id of the service’s own: where it does not say whose token it is, its giver may. */
function offerMap({ user_id: name, service_user_id: id, state, tried }: AddedReport): void {
  if (id !== null || state !== 'active' || !tried) return;
  note(`${name}: the service does not say whose token it is. Its events are known once you do: ringneck account map ${name} ID`);
}

async function backfillAdded(
  session: Session,
  report: AddedReport,
  { json, ...days }: { from?: string; last?: number | undefined; json: boolean },
): Promise<void> {
  const input = { users: [report.user_id], refresh: false, plan: false, ...days };
  if (!json) {
    printAccount(report, {});
    return reportRun(session, 'backfill', input, {});
  }
  let run: RunReport | undefined;
  try {
    run = await performRun(session, 'backfill', input);
  } finally {
    // The account is kept whatever becomes of the run.
    printJson({ ...report, backfill: run ? runJson(run) : null });
  }
}

/** Never from the arguments: those stand in the list of processes and in the shell's history. */
async function readToken(name: string, file: string | undefined): Promise<string> {
  const content = file === undefined ? await readTokenInput() : readTokenFile(file);
  const token = content.trim();
  if (!token) {
    const how = `: give one by printf %s "$TOKEN" | ringneck account add ${name}, or sign in: ringneck account login ${name}`;
    throw new UsageError(`no token: ${file ?? 'standard input'} is empty${how}`);
  }
  if (!isToken(token)) throw new UsageError(`${file ?? 'standard input'} holds no token: ${TOKEN_FORM}`);
  return token;
}

/** At a terminal one line, which is not shown. */
async function readTokenInput(): Promise<string> {
  if (!process.stdin.isTTY) return text(process.stdin);
  return askHidden('Token (not shown): ');
}

function readTokenFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`cannot read the token file: ${messageOf(error)}`);
  }
}
