import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { UsageError } from '../../base/errors.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { wholeNumber, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';

interface Options {
  days?: number;
  revoke?: true;
  json?: true;
}

const DAYS = 7;

export function addInvite(account: Command): void {
  withExample(
    account
      .command('invite <name>')
      .description('print a link by which a person signs in on a device of their own; it works once, and ends the earlier one of the name')
      .option('--days <days>', `for how many days it can be used (default: ${DAYS})`, wholeNumber(1, 365))
      .option('--revoke', 'end the link of the name')
      .option('--json', 'print {user_id, url, expires_at, replaced}, with --revoke {user_id, revoked}'),
    'ringneck account invite ada --days 14',
    'ringneck account invite ada --revoke',
  ).action(async (given: string, { days, revoke, json }: Options) => {
    const name = parseAccountName(given);
    if (revoke && days !== undefined) throw new UsageError('--days and --revoke exclude each other');
    const session = await openSession();
    if (revoke) {
      const revoked = await call(session, 'revokeInvitation', { name });
      if (json) printJson(revoked);
      else printLine(`the invitation of ${name} is revoked`);
      return;
    }
    const invited = await call(session, 'inviteAccount', { name, days: days ?? DAYS });
    if (json) return printJson(invited);
    const { url, expires_at: end, replaced } = invited;
    note(`For ${name}, to be used once until ${end.slice(0, 16)}Z, while \`ringneck up\` runs. Send it to this person alone:`);
    printLine(url);
    if (replaced) note(`the link that ${name} had before has ended`);
  });
}

export function addInvitations(account: Command): void {
  withExample(
    account
      .command('invitations')
      .description('list the invitations that were not used yet, and who was refused that signed in by them')
      .option('--json', 'print an array'),
    'ringneck account invitations',
  ).action(async ({ json }: { json?: true }) => {
    const invitations = await call(await openSession(), 'listInvitations', {});
    if (json) printJson(invitations);
    else if (!invitations.length) note('no invitation: ringneck account invite NAME');
    else {
      const rows = invitations.map(({ user_id, state, created_at, expires_at, problem }) => [
        user_id,
        state,
        created_at,
        expires_at,
        problem,
      ]);
      printLines(formatTable(['account', 'state', 'since', 'until', 'problem'], rows));
    }
  });
}
