import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { formatSpan } from '../../app/doctor/clock.ts';
import { isSignInOver, isWell, READ_MISSING, readFirst } from '../../app/fixes.ts';
import { type SignInStatus, tellSignIn } from '../../app/sign-in-status.ts';
import type { StatusReport } from '../../app/status-commands.ts';
import { noAccount } from '../../base/no-account.ts';
import { accessCommand, loginCommand } from '../../base/sign-in-again.ts';
import { isOneTime } from '../../client/service-clock.ts';
import { mapCommand } from '../../sync/events/map-command.ts';
import type { CollectionStatus, DriftStatus } from '../../sync/status.ts';
import type { WebhookStatus } from '../../sync/webhook-status.ts';
import { collect, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';
import { formatProblems } from '../terminal/subscription-problems.ts';

export function addStatus(program: Command): void {
  withExample(
    program
      .command('status')
      .description('show the newest day, last success and failures per account and collection, and what is parked and why')
      .option('--user <name>', 'only this account (may be repeated)', collect)
      .option('--problems', 'only accounts and collections that something is wrong with')
      .option('--json', 'print the report as JSON'),
    'ringneck status',
    'ringneck status --problems',
  ).action(async (options: Options) => {
    const session = await openSession();
    const all = await call(session, 'status', {});
    const report = { ...all, accounts: choose(all.accounts, options) };
    if (options.json) printJson(report);
    else if (all.accounts.length && !report.accounts.length) {
      printLine('nothing is wrong with any account');
      if (isAmiss(report)) printStatus(report);
    } else {
      if (!all.accounts.length) note(`no account yet: ${accessCommand('NAME', session.settings)}`);
      printStatus(report);
    }
  });
}

interface Options {
  user?: string[];
  problems?: true;
  json?: true;
}

type Accounts = StatusReport['accounts'];

/** Whether anything is wrong that is no account’s. */
const isAmiss = ({ service_unreachable: silence, queue, snapshot, webhooks, invitations }: StatusReport): boolean =>
  Boolean(silence || queue.problem || queue.unreadable_events || snapshot.failure || webhooks?.problem || webhooks?.problems.length) ||
  invitations.some(({ problem }) => problem !== null);

/** @throws UsageError for an account that there is not */
function choose(accounts: Accounts, { user, problems }: Options): Accounts {
  const names = accounts.map(({ user_id: name }) => name);
  const unknown = user?.find(name => !names.includes(name));
  if (unknown !== undefined) throw noAccount(unknown, names);
  const chosen = accounts.filter(({ user_id: name }) => user?.includes(name) ?? true);
  if (!problems) return chosen;
  return (
    chosen
      // Why an account is not read is said once, with what to do: of each of its collections it is the same.
      .map(account => ({ ...account, collections: account.state !== 'active' ? [] : account.collections.filter(one => !isWell(one)) }))
      .filter(({ state, collections, sign_in: signIn }) => state !== 'active' || collections.length || signIn?.problem)
  );
}

function printStatus({
  accounts,
  works_elsewhere: elsewhere,
  queue,
  invitations,
  webhooks,
  snapshot,
  warehouse,
  heart_rate_path: path,
  drift,
  service_clock: clock,
  service_unreachable: silence,
}: StatusReport): void {
  if (elsewhere) printLine(`${elsewhere.host} works on the lake since ${elsewhere.since}; this machine waits`);
  for (const account of accounts) {
    printLine(`${account.user_id}: ${account.state}${account.reason ? ` (${account.reason})` : ''}`);
    if (account.sign_in) printSignIn(account, account.sign_in);
    const rows = account.collections.map(({ name, state, newest_day, lag, failures, reason }) => [
      `  ${name}`,
      state,
      newest_day,
      lag === null ? null : `${formatSpan(lag * 1000)} ago`,
      failures || null,
      reason,
    ]);
    if (rows.length) printLines(formatTable(['  collection', 'state', 'newest day', 'read', 'failures', 'reason'], rows));
    printLine();
  }
  if (accounts.some(({ collections }) => collections.some(isFixable))) printLines(`${READ_MISSING}\n`);
  const [unread, ...others] = accounts.filter(isNeverAsked);
  if (unread) printLines(`What was never asked for is read so: ${readFirst(others.length ? 'NAME' : unread.user_id)}\n`);
  const { waiting, active, delayed, failed, events } = queue;
  printLine(`queue: ${events} events waiting; windows: ${waiting} waiting, ${active} active, ${delayed} delayed, ${failed} failed`);
  if (queue.unreadable_events) printLine(`  ${queue.unreadable_events} events could not be read any more, and are lost: ringneck doctor`);
  if (queue.problem) printLine(`  unreachable: ${queue.problem}`);
  printLine(`snapshot: ${snapshot.at ?? 'none yet'}`);
  if (snapshot.failure) printLine(`  could not be made since ${snapshot.failure.since}: ${snapshot.failure.reason}`);
  printLine(`warehouse: ${Math.ceil(warehouse.bytes / 1e6)} MB${warehouse.compacted_at ? `, compacted ${warehouse.compacted_at}` : ''}`);
  if (invitations.length) printInvitations(invitations);
  if (webhooks) printWebhooks(webhooks);
  else printLine('webhooks: not configured (RINGNECK_CALLBACK_URL)');
  if (path) printLine(`heart rate: ${path}${path.includes('/sandbox/') ? ' (generated data)' : ''}`);
  if (silence) printLine(`service: cannot be reached since ${silence.since} (${silence.reason})`);
  if (clock && Math.abs(clock.ahead) > TOLD_SKEW_S) printLine(`service: ${tellSkew(clock)}; ${tellDays(clock)}`);
  if (drift.length) printLine(`drift: ${countDrift(drift)}: ringneck sql 'FROM sync.drift'`);
}

function printSignIn({ user_id: name, reason }: StatusReport['accounts'][number], status: SignInStatus): void {
  printLine(`  signed in: ${tellSignIn(status)}`);
  if (status.problem) printLine(`  → it cannot be renewed for now: ${status.problem}`);
  if (!status.is_renewed && !isSignInOver(reason)) printLine(`  → it cannot be renewed: ${loginCommand(name)}, or see ringneck doctor`);
}

function printInvitations(invitations: StatusReport['invitations']): void {
  const count = (wanted: string) => invitations.filter(({ state }) => state === wanted).length;
  printLine(`invitations: ${count('open')} open, ${count('expired')} expired (ringneck account invitations)`);
  for (const { user_id: name, problem } of invitations) if (problem) printLine(`  ${name}: ${problem}`);
}

const isNeverAsked = ({ state, collections }: StatusReport['accounts'][number]) =>
  state === 'active' && collections.some(collection => collection.state === 'never_asked');

const isFixable = ({ state, unread_days: days }: CollectionStatus) => days > 0 || MENDED_BY_READING.includes(state);

const MENDED_BY_READING = ['failed', 'suspicious', 'not_asked', 'interrupted'];

/** A service may send events of all who use an application. */
const SHOWN_UNKNOWN = 5;

/** A smaller difference changes no day for long. */
const TOLD_SKEW_S = 3_600;

const tellDays = ({ ahead }: NonNullable<StatusReport['service_clock']>): string =>
  isOneTime(ahead * 1000) ? 'the last days of both clocks are read' : 'its days are read by its own clock';

const tellSkew = ({ at, ahead }: NonNullable<StatusReport['service_clock']>): string =>
  `its clock (${at.slice(0, 16)}Z) is ${formatSpan(ahead * 1000)} ${ahead > 0 ? 'ahead of' : 'behind'} ours`;

/** 3 unknown fields, 1 unknown value since 2026-11-01 */
function countDrift(drift: readonly DriftStatus[]): string {
  const counts: Record<string, number> = {};
  for (const { kind } of drift) counts[kind] = (counts[kind] ?? 0) + 1;
  const [since = ''] = drift.map(({ first_seen_at: first }) => first).sort();
  return `${Object.entries(counts)
    .map(([kind, count]) => `${count} ${DRIFT_NAMES[kind]?.[count === 1 ? 0 : 1] ?? kind}`)
    .join(', ')} since ${since.slice(0, 10)}`;
}

const DRIFT_NAMES: Record<string, readonly [one: string, several: string]> = {
  'unknown field': ['unknown field', 'unknown fields'],
  'unknown value': ['unknown value', 'unknown values'],
  missing: ['missing field', 'missing fields'],
  'wrong type': ['wrong type', 'wrong types'],
  'bad format': ['bad format', 'bad formats'],
  'out of range': ['field out of range', 'fields out of range'],
  disagreement: ['disagreement', 'disagreements'],
};

function printWebhooks(status: WebhookStatus): void {
  const { callback_url: url, subscriptions, active, wanted, problem, problems, last_event_at: last, missed_24h: missed } = status;
  const kept =
    subscriptions === 'ensured' ? `${active} of ${wanted} subscriptions active` : `removed by command (ringneck subscriptions ensure)`;
  printLine(`webhooks: ${kept}, at ${url}`);
  if (problem) printLine(`  in the way: ${problem}`);
  if (problems.length) printLines(formatProblems(problems, '  '));
  const waiting = status.waiting === null ? 'what waits is known to a running `ringneck up`' : `${status.waiting} waiting`;
  printLine(`  last event: ${last ?? 'none yet'}; ${waiting}; in the last 24 hours: ${countAll(status.events_24h)}; missed: ${missed}`);
  for (const { events, service_user_id: id } of status.unknown_users.slice(0, SHOWN_UNKNOWN)) {
    printLine(`  ${events} of ${id}, whom no account is known to be: ${mapCommand(id)}`);
  }
  if (status.unknown_users.length > SHOWN_UNKNOWN) printLine(`  and of ${status.unknown_users.length - SHOWN_UNKNOWN} others`);
  if (Object.keys(status.refused).length) printLine(`  refused since the start: ${countAll(status.refused)}`);
}

function countAll(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return parts.length ? parts.join(', ') : 'none';
}
