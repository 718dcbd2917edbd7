import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { UsageError } from '../../base/errors.ts';
import { accessCommand } from '../../base/sign-in-again.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { printAccount } from '../terminal/account-line.ts';
import { note } from '../terminal/note.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';
import { addAdd } from './account-add.ts';
import { addInvitations, addInvite } from './account-invite.ts';
import { addLogin } from './account-login.ts';
import { addMove } from './account-move.ts';
import { addRemove } from './account-remove.ts';

export function addAccount(program: Command): void {
  const account = withExample(
    program
      .command('account')
      .description('manage accounts: login, add, invite, invitations, list, remove, pause, resume, map, move, mirror-token'),
    'ringneck account login ada',
    'printf %s "$TOKEN" | ringneck account add ada',
    'ringneck account list',
  );
  for (const add of [addLogin, addAdd, addInvite, addInvitations, addList, addRemove, addPause, addResume, addMap, addMove, addMirrorToken])
    add(account);
}

function addList(account: Command): void {
  withExample(
    account.command('list').description('list the accounts and their states').option('--json', 'print an array'),
    'ringneck account list',
  ).action(async (options: { json?: true }) => {
    const session = await openSession();
    const accounts = await call(session, 'listAccounts', {});
    if (options.json) printJson(accounts);
    else if (!accounts.length) note(`no account yet: ${accessCommand('NAME', session.settings)}`);
    else {
      const rows = accounts.map(({ user_id, state, since, service_user_id, reason }) => [user_id, state, since, service_user_id, reason]);
      printLines(formatTable(['account', 'state', 'since', 'service user', 'reason'], rows));
    }
  });
}

function addPause(account: Command): void {
  withExample(
    account
      .command('pause <name>')
      .description('stop reading an account until it is resumed')
      .option('--json', 'print the account as JSON'),
    'ringneck account pause ada',
  ).action(async (name: string, options: { json?: true }) =>
    printAccount(await call(await openSession(), 'pauseAccount', { name }), options),
  );
}

function addResume(account: Command): void {
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
}

function addMap(account: Command): void {
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
}

function addMirrorToken(account: Command): void {
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
