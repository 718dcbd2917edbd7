import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import type { AppCommands } from '../../app/commands.ts';
import { connectControl } from '../../app/control/connect-control.ts';
import type { SubscriptionReport } from '../../sync/webhook-status.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note, noteLines } from '../terminal/note.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';
import { formatProblems } from '../terminal/subscription-problems.ts';

export function addSubscriptions(program: Command): void {
  const subscriptions = withExample(
    program
      .command('subscriptions')
      .description('manage webhook subscriptions at the service: ensure, list, remove; `ringneck up` maintains them'),
    'ringneck subscriptions list',
  );

  addEnsure(subscriptions);
  addList(subscriptions);
  addRemove(subscriptions);
}

function addEnsure(subscriptions: Command): void {
  withExample(
    subscriptions
      .command('ensure')
      .description('create what is missing, and have `ringneck up` maintain them again')
      .option('--json', 'print {active, wanted, problems}'),
    'ringneck subscriptions ensure',
  ).action(async (options: { json?: true }) => {
    const { settings } = await openSession();
    // Nobody else listens where the service verifies.
    const control = await connectControl<AppCommands>(settings.data);
    if (!control) {
      const { nobodyListens } = await import('../../app/subscription-commands.ts');
      throw nobodyListens(settings);
    }
    const report = await control.call('subscriptionsEnsure', {});
    const { active, wanted, problems } = report;
    if (problems.some(({ state }) => state !== 'not_offered')) process.exitCode = 1;
    if (options.json) return printJson(report);
    printLine(`${active} of ${wanted} subscriptions are active`);
    if (problems.length) noteLines(formatProblems(problems));
  });
}

function addList(subscriptions: Command): void {
  withExample(
    subscriptions.command('list').description('list the service’s subscriptions beside the ledger’s').option('--json', 'print an array'),
    'ringneck subscriptions list',
  ).action(async (options: { json?: true }) => {
    const list = await call(await openSession(), 'subscriptionsList', {});
    if (options.json) printJson(list);
    else printList(list);
  });
}

function addRemove(subscriptions: Command): void {
  withExample(
    subscriptions
      .command('remove')
      .description('cancel those that call our callback; `ringneck up` creates none until `subscriptions ensure`')
      .option('--on-next-event', 'cancel each by answering 410 to its next event, even where its id is unknown')
      .option('--json', 'print {removed, failed, listed, on_next_event}'),
    'ringneck subscriptions remove',
    'ringneck subscriptions remove --on-next-event',
  ).action(async (options: { onNextEvent?: true; json?: true }) => {
    const report = await call(await openSession(), 'subscriptionsRemove', { onNextEvent: options.onNextEvent ?? false });
    if (report.failed.length) process.exitCode = 1;
    if (options.json) return printJson(report);
    if (report.on_next_event) {
      printLine('each subscription ends by the answer of `ringneck up` to its next event; ringneck subscriptions ensure makes them again');
      return;
    }
    printLine(`${report.removed} subscriptions removed; ringneck subscriptions ensure makes them again`);
    if (!report.listed)
      note(
        'the service offers no list of subscriptions: some that call our callback may remain (remove --on-next-event cancels those too)',
      );
    for (const { event_type, data_type, reason } of report.failed) note(`not removed: ${event_type} ${data_type}: ${reason}`);
  });
}

function printList(list: readonly SubscriptionReport[]): void {
  if (!list.length) {
    note('no subscription: ringneck up makes them');
    return;
  }
  const rows = list.map(one => [
    one.data_type,
    one.event_type,
    one.state,
    one.at_service === null ? 'not told' : one.at_service ? 'yes' : 'no',
    one.expiration_time,
    one.callback_url,
    one.reason,
  ]);
  printLines(formatTable(['data type', 'event type', 'state', 'at the service', 'expires', 'callback', 'reason'], rows));
}
