import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { readPeopleFile } from '../../app/people-file.ts';
import { UsageError } from '../../base/errors.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { wholeNumber, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { noteFree, refuseLines } from '../terminal/people-file.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';

interface Options {
  file?: string;
  days?: number;
  revoke?: true;
  withdrawal?: true;
  replace?: true;
  json?: true;
}

const DAYS = 7;

export function addInvite(account: Command): void {
  withExample(
    account
      .command('invite [name]')
      .description('print a link by which a person signs in on a device of their own; it works once, and ends the earlier one of the name')
      .option('--days <days>', `for how many days it can be used (default: ${DAYS})`, wholeNumber(1, 365))
      .option('--revoke', 'end the link of the name')
      .option('--withdrawal', 'print another link by which the person of the account withdraws; it does not expire')
      .option('--file <file>', 'make a link for everybody of a CSV file who needs one, and print them as CSV: name, url')
      .option('--replace', 'with --file: another link also for those who have one that can still be used, which ends')
      .option(
        '--json',
        'print {user_id, url, expires_at, replaced}, with --revoke {user_id, revoked}, with --withdrawal {user_id, url}; with --file an array',
      ),
    'ringneck account invite ada --days 14',
    'ringneck account invite ada --revoke',
    'ringneck account invite ada --withdrawal',
    'ringneck account invite --file people.csv > links.csv',
  ).action(async (given: string | undefined, options: Options) => {
    const { file, days, revoke, withdrawal, json } = options;
    if (file !== undefined) return invitePeople(file, given, options);
    if (given === undefined) throw new UsageError('whom? give a name, or --file with many');
    if (options.replace) throw new UsageError('--replace goes with --file: the link of a name alone is always replaced');
    const name = parseAccountName(given);
    if (revoke && days !== undefined) throw new UsageError('--days and --revoke exclude each other');
    if (withdrawal && (revoke || days !== undefined)) throw new UsageError('--withdrawal excludes --days and --revoke');
    const session = await openSession();
    if (withdrawal) {
      const made = await call(session, 'makeWithdrawalLink', { name });
      if (json) return printJson(made);
      note(`By this link ${name} withdraws, while \`ringneck up\` runs. Send it to this person alone:`);
      return printLine(made.url);
    }
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

/** The links go to standard output, and nothing else does: it may become the file that the letters are made of. */
async function invitePeople(
  file: string,
  name: string | undefined,
  { days = DAYS, revoke, withdrawal, replace, json }: Options,
): Promise<void> {
  if (name !== undefined || revoke || withdrawal) {
    throw new UsageError('--file names everybody: give no name with it, nor --revoke or --withdrawal');
  }
  const session = await openSession();
  const { people, bad, free } = readPeopleFile(file, { withTokens: false });
  if (bad.length) throw refuseLines(file, bad);
  const report = await call(session, 'inviteAccounts', { people, days, replace: replace ?? false });
  if (report.bad.length) throw refuseLines(file, report.bad);
  noteFree(free);
  for (const { user_id, result, reason } of report.people) if (result !== 'invited') note(`${user_id} ${result}: ${reason}`);
  const invited = report.people.filter(({ url }) => url !== null);
  if (json) printJson(report.people);
  else printLines(['name,url', ...invited.map(({ user_id, url }) => `${user_id},${url}`)].join('\n'));
  const failed = report.people.filter(({ result }) => result === 'failed').length;
  const same = people.length - invited.length - failed;
  note(`${people.length} in ${file}: ${invited.length} invited, ${same} unchanged, ${failed} failed`);
  if (failed) process.exitCode = 1;
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
