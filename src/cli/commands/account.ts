import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { addDays, dayOfMicros } from '../../../schema/instant.ts';
import { call } from '../../app/call.ts';
import { sentenceOf, tellAlike } from '../../app/fixes.ts';
import type { RunReport } from '../../app/follow-run.ts';
import { messageOf, UsageError } from '../../base/errors.ts';
import { Interrupted } from '../../base/interrupt.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { parseDay, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { printAccount } from '../terminal/account-line.ts';
import { note } from '../terminal/note.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';
import { addRemove } from './account-remove.ts';
import { performRun, reportRun, runJson } from './backfill.ts';

/** A token has at most this many characters; more is a wrong file. */
const MAX_TOKEN = 8_192;

export function addAccount(program: Command): void {
  const account = withExample(
    program.command('account').description('manage accounts: add, list, remove, pause, resume, map, mirror-token'),
    'printf %s "$TOKEN" | ringneck account add ada',
    'ringneck account list',
  );

  withExample(
    account
      .command('add <name>')
      .description(
        'add an account, or replace the token of one; reads the token from standard input; exits with 1 when the account is parked',
      )
      .allowExcessArguments()
      .option('--token-file <file>', 'read the token from a file')
      .option('--keep-token', 'keep the stored token, for the address that RINGNECK_SERVICE_URL names now')
      .option('--service-user <id>', 'the service’s user id of the person, as events carry it')
      .option('--from <day>', 'backfill from this day on at once', parseDay)
      .option('--json', 'print the account as JSON; with --from its run too, as `backfill`, null where none came to its report'),
    'printf %s "$TOKEN" | ringneck account add ada',
    'ringneck account add ada --token-file ada.token',
  ).action(
    async (
      given: string,
      options: { tokenFile?: string; keepToken?: true; serviceUser?: string; from?: string; json?: true },
      command: Command,
    ) => {
      const session = await openSession();
      const name = parseAccountName(given);
      if (command.args.length > 1)
        throw new UsageError('a token is never an argument, where others can see it: pipe it in, or use --token-file');
      // The service's calendar decides, and may be ahead of ours; so far ahead is none.
      if (options.from && options.from > addDays(dayOfMicros(Date.now() * 1000), 36_525))
        throw new UsageError(`--from ${options.from} is in the future`);
      if (options.keepToken && options.tokenFile) throw new UsageError('--keep-token and --token-file exclude each other');
      const token = options.keepToken ? undefined : await readToken(options.tokenFile);
      const added = await call(session, 'addAccount', {
        name,
        ...(token === undefined ? {} : { token }),
        ...(options.serviceUser ? { serviceUser: options.serviceUser } : {}),
        ...(options.from ? { from: options.from } : {}),
      });
      const { warning, ...report } = added;
      if (warning) note(`warning: ${warning}`);
      if (report.same_person) {
        const { accounts, events_go_to: to } = report.same_person;
        note(`warning: ${name} is the same person at the service as ${accounts.join(', ')}: events go to ${to} alone`);
      }
      // Kept, and nothing is read with it.
      if (report.state === 'parked') process.exitCode = 1;
      const backfill = { users: [name], refresh: false, plan: false };
      if (options.json && options.from) {
        let run: RunReport | undefined;
        try {
          run = await performRun(session, 'backfill', { ...backfill, from: options.from });
        } finally {
          // The account is kept whatever becomes of the run.
          printJson({ ...report, backfill: run ? runJson(run) : null });
        }
      } else {
        printAccount(report, options);
        if (options.from) await reportRun(session, 'backfill', { ...backfill, from: options.from }, {});
      }
    },
  );

  withExample(
    account.command('list').description('list the accounts and their states').option('--json', 'print an array'),
    'ringneck account list',
  ).action(async (options: { json?: true }) => {
    const accounts = await call(await openSession(), 'listAccounts', {});
    if (options.json) printJson(accounts);
    else if (!accounts.length) note('no account yet: ringneck account add NAME');
    else {
      const rows = accounts.map(({ user_id, state, since, service_user_id, reason }) => [user_id, state, since, service_user_id, reason]);
      printLines(formatTable(['account', 'state', 'since', 'service user', 'reason'], rows));
      for (const alike of tellAlike(accounts)) if (alike.fix) note(sentenceOf(alike));
    }
  });

  addRemove(account);

  withExample(
    account
      .command('pause <name>')
      .description('stop reading an account until it is resumed')
      .option('--json', 'print the account as JSON'),
    'ringneck account pause ada',
  ).action(async (name: string, options: { json?: true }) =>
    printAccount(await call(await openSession(), 'pauseAccount', { name }), options),
  );

  withExample(
    account
      .command('resume [name...]')
      .description('read accounts again that were paused or parked; exits with 1 when one stays parked')
      .option('--parked', 'every parked account, except those whose token may belong to another person')
      .option('--json', 'print the account as JSON; of several names, or with --parked, an array'),
    'ringneck account resume ada ben',
    'ringneck account resume --parked',
  ).action(async (names: string[], { parked, json }: { parked?: true; json?: true }) => {
    if (names.length > 0 === (parked ?? false)) throw new UsageError('which accounts? give names, or --parked');
    const resumed = await call(await openSession(), 'resumeAccounts', parked ? { parked } : { names });
    const warning = resumed.find(report => report.warning)?.warning;
    if (warning) note(`warning: ${warning}`);
    const reports = resumed.map(({ warning: _, ...report }) => report);
    if (reports.some(({ state }) => state === 'parked')) process.exitCode = 1;
    if (json) return printJson(names.length === 1 ? reports[0] : reports);
    if (!reports.length) note('no account is parked');
    for (const report of reports) printAccount(report, {});
  });

  withExample(
    account
      .command('map <name> <id>')
      .description('set the service’s user id of an account, as events carry it; an id that another account has is refused')
      .option('--json', 'print the account as JSON'),
    'ringneck account map ada 8f9a5221-639e-4a85-81cb-4065ef23f979',
  ).action(async (name: string, id: string, options: { json?: true }) => {
    const { warning, ...report } = await call(await openSession(), 'mapAccount', { name, serviceUser: id });
    if (warning) note(`warning: ${warning}`);
    printAccount(report, options);
  });

  withExample(
    account
      .command('mirror-token <name>')
      .description('create a token for the mirror; it replaces the previous one and is shown once')
      .option('--json', 'print {user_id, token}'),
    'ringneck account mirror-token ada',
  ).action(async (name: string, options: { json?: true }) => {
    const made = await call(await openSession(), 'mirrorToken', { name });
    if (options.json) printJson(made);
    else printLine(made.token);
  });
}

/** Never from the arguments: those stand in the list of processes and in the shell's history. */
async function readToken(file: string | undefined): Promise<string> {
  const content = file === undefined ? await readTokenInput() : readTokenFile(file);
  const token = content.trim();
  if (!token) throw new UsageError(`no token: ${file ?? 'standard input'} is empty`);
  if (token.length > MAX_TOKEN || !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(`${file ?? 'standard input'} holds no token: one word of printable ASCII, at most ${MAX_TOKEN} characters`);
  }
  return token;
}

/** At a terminal one line, which is not shown. */
async function readTokenInput(): Promise<string> {
  if (!process.stdin.isTTY) return text(process.stdin);
  const prompt = createInterface({ input: process.stdin, output: new Writable({ write: (_, __, done) => done() }), terminal: true });
  // Only now: what is typed before it would be shown.
  process.stderr.write('Token (not shown): ');
  try {
    return await new Promise<string>((resolve, reject) => {
      prompt.once('line', resolve).once('close', () => resolve(''));
      prompt.once('SIGINT', () => reject(new Interrupted()));
    });
  } finally {
    prompt.close();
    note('');
  }
}

function readTokenFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`cannot read the token file: ${messageOf(error)}`);
  }
}
