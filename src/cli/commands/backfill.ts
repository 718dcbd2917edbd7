import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { isRefused, sentenceOf, tellAlike } from '../../app/fixes.ts';
import type { RunReport, ShownRun } from '../../app/follow-run.ts';
import type { BackfillInput, NightlyInput } from '../../app/run-commands.ts';
import { UsageError, withDetail } from '../../base/errors.ts';
import { interruptible } from '../../base/interrupt.ts';
import { nameRun, type RunName } from '../../sync/runs/run-name.ts';
import { collect, parseDay, wholeNumber, withExample } from '../options.ts';
import { openSession, type Session } from '../session.ts';
import { note, noteLines } from '../terminal/note.ts';
import { formatCount, formatTable, printJson, printLine } from '../terminal/print.ts';

interface Options {
  from?: string;
  to?: string;
  last?: number;
  user?: string[];
  resource?: string[];
  refresh?: true;
  acceptDeletions?: true;
  plan?: true;
  detach?: true;
  json?: true;
}

export function addBackfill(program: Command): void {
  withExample(
    program
      .command('backfill')
      .description(
        'read a range of days of everything from the service into the warehouse; what is covered and settled is skipped. Documents are asked for ' +
          'from two days before to two days after, because services differ in where a range ends: what comes of these days is stored and counted too',
      )
      .option('--from <day>', 'first day', parseDay)
      .option('--to <day>', 'last day (tomorrow, UTC, by the service’s clock: today everywhere)', parseDay)
      .option('--last <n>', 'the n days that end tomorrow (UTC, by the service’s clock)', wholeNumber(1, 36_500))
      .option('--user <name>', 'only this account (may be repeated)', collect)
      .option('--resource <collection>', 'only this collection (may be repeated)', collect)
      .option('--refresh', 'read again what is covered and settled')
      .option('--accept-deletions', 'remove what the service no longer has, however much it is')
      .option('--plan', 'only say how much would be read')
      .option('--detach', 'let a running `ringneck up` go on with it when this command ends')
      .option('--json', 'print the summary as JSON'),
    'ringneck backfill --from 2025-01-01 --to 2025-12-31',
    'ringneck backfill --from 2025-01-01',
    'ringneck backfill --last 30 --user ada --resource sleep',
  ).action(async (options: Options) => {
    const range = rangeOf(options);
    const input: BackfillInput = {
      ...range,
      ...(options.user ? { users: options.user } : {}),
      ...(options.resource ? { collections: options.resource } : {}),
      refresh: options.refresh ?? false,
      acceptDeletions: options.acceptDeletions ?? false,
      plan: options.plan ?? false,
      ...(options.detach ? { detach: true } : {}),
    };
    await reportRun(await openSession(), 'backfill', input, options);
  });
}

/** @throws UsageError where the options name no range */
export function rangeOf({ from, to, last }: Pick<Options, 'from' | 'to' | 'last'>): Pick<BackfillInput, 'from' | 'to' | 'last'> {
  if (last !== undefined) {
    if (from || to) throw new UsageError('give --last N, or --from and --to, not both');
    return { last };
  }
  if (!from) throw new UsageError('which days? give --from DAY, with --to DAY or up to today, or --last N');
  if (!to) return { from };
  if (from > to) throw new UsageError(`--from ${from} is after --to ${to}`);
  return { from, to };
}

/** Runs a backfill or a nightly with its progress on stderr and its summary on stdout; sets the exit code. */
export async function reportRun(
  session: Session,
  command: 'backfill' | 'nightly',
  input: BackfillInput | NightlyInput,
  { json }: { json?: true | undefined },
): Promise<void> {
  const report = await performRun(session, command, input);
  if (json) printJson(runJson(report));
  else printReport(report, command, 'plan' in input && input.plan);
}

/** The same without the summary, which its caller prints. */
export async function performRun(
  session: Session,
  command: 'backfill' | 'nightly',
  input: BackfillInput | NightlyInput,
): Promise<RunReport> {
  const { showRun } = await import('../terminal/run-progress.ts');
  let progress = showRun();
  let shown: RunName | undefined;
  let isInterrupted = false;
  const onEvent = ({ going_on: run, ...facts }: ShownRun) => {
    if (run && !isDeepStrictEqual(run, shown)) {
      shown = run;
      progress.end();
      note(`going on with ${nameRun(run)} that was interrupted`);
      progress = showRun();
    }
    progress.update(facts);
  };
  const report = await interruptible(async signal => {
    try {
      const options = { onEvent, signal };
      return command === 'backfill'
        ? await call(session, 'backfill', input as BackfillInput, options)
        : await call(session, 'nightly', input as NightlyInput, options);
    } finally {
      isInterrupted = signal.aborted;
      progress.end();
    }
  });
  if (report.state === 'stopped' || isInterrupted) process.exitCode = 130;
  else if (report.failures.length || report.gone_on?.some(({ state, failures }) => state === 'running' || failures.length))
    process.exitCode = 1;
  return report;
}

const ENDED = {
  complete: 'complete',
  failed: 'ended with failures',
  stopped: 'stopped; the same command goes on with it',
  running: 'not at its end; the next start goes on with it',
};

const tellSkipped = ({ windows }: Pick<RunReport, 'windows'>) =>
  windows.skipped ? `, ${formatCount(windows.skipped)} skipped as settled` : '';

function printCounts(run: Omit<RunReport, 'state' | 'not_asked' | 'parked' | 'heart_rate_path'>): void {
  const { windows, documents, samples, unchanged, rejected, removed, requests } = run;
  printLine(
    `${formatCount(windows.done)} of ${formatCount(windows.planned)} windows${tellSkipped(run)}, ${formatCount(requests)} requests`,
  );
  const notStored = rejected ? `, ${formatCount(rejected)} rejected (see sync.rejected)` : '';
  const gone = removed ? `, ${formatCount(removed)} removed` : '';
  printLine(`${formatCount(documents)} documents, ${formatCount(samples)} samples, ${formatCount(unchanged)} unchanged${gone}${notStored}`);
}

export function runJson({
  run,
  from,
  to,
  windows,
  documents,
  samples,
  unchanged,
  rejected,
  requests,
  failures,
  parked: _parked,
  ...rest
}: RunReport): unknown {
  return { run, from, to, windows, documents, samples, unchanged, rejected, requests, failures, ...rest };
}

/** A nightly reads the last days as they are then. */
const STOPPED_NIGHTLY = 'stopped; the same command reads all of it again';

function printReport(report: RunReport, command: 'backfill' | 'nightly', plan: boolean): void {
  const { windows, failures, parked, not_asked: notAsked, from, to, read_before: before, gone_on: goneOn = [] } = report;
  if (plan) {
    printLine(`${from} to ${to}: ${formatCount(windows.planned)} windows to read${tellSkipped(report)}`);
  } else {
    const ended = command === 'nightly' && report.state === 'stopped' ? STOPPED_NIGHTLY : ENDED[report.state];
    printLine(`${from} to ${to}: ${ended}`);
    printCounts(report);
    if (before) {
      const since = `${before.since.slice(0, 16).replace('T', ' ')} UTC`;
      note(`${formatCount(before.windows)} of these windows were read before the run was stopped or interrupted, from ${since} on`);
    }
  }
  for (const run of goneOn) {
    printLine(`${nameRun(run)} that was interrupted: ${ENDED[run.state]}${run.reason ? ` (${run.reason})` : ''}`);
    printCounts(run);
  }
  if (report.heart_rate_path?.includes('/sandbox/')) note(`heart rate was read at ${report.heart_rate_path}: it is generated data`);
  for (const alike of tellAlike(notAsked.filter(({ collection }) => collection === null))) note(`not asked: ${sentenceOf(alike)}`);
  for (const { user_id, collection, state, reason } of notAsked) {
    if (collection) note(`not asked: ${user_id} ${collection} is ${state}${reason ? ` (${reason})` : ''}`);
  }
  // A line for each collection of an account that is refused would hide what else has failed.
  const isTold = (failure: RunReport['failures'][number]) =>
    isRefused(failure) && parked.some(({ user_id: name }) => name === failure.user_id);
  for (const alike of tellAlike(parked)) note(`refused: ${sentenceOf(alike)}`);
  const all = [...failures.filter(failure => !isTold(failure)), ...goneOn.flatMap(run => run.failures)];
  if (all.length) {
    note('');
    noteLines(
      formatTable(
        ['failed', 'collection', 'from', 'to', 'kind', 'why'],
        all.map(f => [f.user_id, f.collection, f.from, f.to, f.kind, withDetail(f.message, f.detail)]),
      ),
    );
  }
}
