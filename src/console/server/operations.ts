import { statfsSync, statSync } from 'node:fs';
import type { AppCommands } from '../../app/commands.ts';
import type { StatusReport } from '../../app/status-commands.ts';
import { messageOf, TryLaterError } from '../../base/errors.ts';
import { recentLines } from '../../base/log.ts';
import { version } from '../../base/version.ts';
import type { operationRoutes } from '../api/operations.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { tellBehind, tellOperations } from './behind.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';

type Operations = AnswerOf<'GET operations'>;
type Run = AnswerOf<'GET runs'>['runs'][number];

export const operationHandlers: Handlers<keyof typeof operationRoutes> = {
  'GET operations': findOperations,
  'GET runs': findRuns,
  'GET events': findEvents,
  'GET log': async () => ({ lines: recentLines().map(readLine).toReversed() }),
};

async function findOperations(_input: object, { commands, questions, settings }: Asking): Promise<Operations> {
  const status = await commands?.status();
  const behind = status ? tellBehind(status.accounts, Boolean(settings.enrolment && settings.signIn), settings) : [];
  const { queue, problem } = await findQueue(commands);
  const queueProblem = status?.queue.problem ?? problem;
  const silence = status?.service_unreachable?.reason ?? null;
  const full = (await commands?.readHindrances())?.disk_full ?? null;
  const hasFile = questions.stamp !== undefined;
  return {
    sentence: tellOperations(behind, { full, queueProblem, silence, hasOwner: status !== undefined }),
    has_owner: status !== undefined,
    behind,
    queue,
    queue_problem: queueProblem,
    lag: hasFile ? await findLag(questions) : null,
    machine: tellMachine(settings, status),
    versions: [
      { name: 'Ringneck', value: version },
      ...(hasFile ? [{ name: 'DuckDB', value: await findDuckDB(questions) }] : []),
      { name: 'Node', value: process.versions.node },
    ],
  };
}

/** Where the queue gives no answer, who is behind is told all the same. */
async function findQueue(commands: AppCommands | undefined): Promise<{ queue: Operations['queue']; problem: string | null }> {
  try {
    return { queue: (await commands?.queueReport()) ?? null, problem: null };
  } catch (error) {
    if (!(error instanceof TryLaterError)) throw error;
    return { queue: null, problem: messageOf(error) };
  }
}

/** Of the one that reads the snapshot, which is the one that stores. */
async function findDuckDB(questions: Asking['questions']): Promise<string> {
  return (await askFor(questions, 'duckdb')).text('version', 0)?.replace(/^v/, '') ?? '';
}

async function findLag(questions: Asking['questions']): Promise<Operations['lag']> {
  const lag = lagOf(await askFor(questions, 'event-lags'));
  return lag && { ...lag, sql: questions.sqlOf('event-lags', {}) };
}

const BARS = 24;

/** Bars of equal width from 0 to the 99th of 100, and where the middle and the 95th of 100 lie. */
export function lagOf(lags: Pick<Answered, 'numbers'>): Omit<NonNullable<Operations['lag']>, 'sql'> | null {
  const sorted = lags.numbers('lag').filter(value => value !== null);
  const received = lags.numbers('received').filter(value => value !== null);
  if (!sorted.length) return null;
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? 0;
  const width = Math.max(0.001, at(0.99) / BARS);
  const bars = Array.from({ length: BARS }, () => 0);
  for (const lag of sorted) {
    const bar = Math.floor(lag / width);
    // The longest that is drawn ends the last bar.
    if (lag <= at(0.99)) bars[Math.min(bar, BARS - 1)] = (bars[Math.min(bar, BARS - 1)] ?? 0) + 1;
  }
  return { count: sorted.length, since: Math.min(...received), p50: at(0.5), p95: at(0.95), p99: at(0.99), width, bars };
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `28 MB` */
export function bytesText(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** step;
  return `${value < 10 && step > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[step]}`;
}

function tellMachine({ data, snapshot }: Asking['settings'], status: StatusReport | undefined): Operations['machine'] {
  const rows: Operations['machine'] = [];
  const add = (name: string, value: string | null | undefined) => {
    if (value) rows.push({ name, value });
  };
  add('Warehouse', status && bytesText(status.warehouse.bytes));
  add('Compacted, UTC', status?.warehouse.compacted_at?.slice(0, 16).replace('T', ' '));
  const file = statSync(snapshot, { throwIfNoEntry: false });
  add('Snapshot', file && bytesText(file.size));
  add('Snapshot made, UTC', file?.mtime.toISOString().slice(0, 19).replace('T', ' '));
  add('No newer snapshot', status?.snapshot.failure?.reason);
  add('Disk free', freeText(data));
  const webhooks = status?.webhooks;
  add('Subscriptions', webhooks ? `${webhooks.active} of ${webhooks.wanted}` : status && 'none are kept: events do not come');
  add('In the way of subscriptions', webhooks?.problem);
  add('Last event, UTC', webhooks?.last_event_at?.slice(0, 19).replace('T', ' '));
  return rows;
}

function freeText(path: string): string | null {
  try {
    const { bavail, bsize, blocks } = statfsSync(path);
    return blocks ? bytesText(bavail * bsize) : null;
  } catch {
    return null;
  }
}

async function findRuns({ state }: ParsedInputOf<'GET runs'>, { commands, questions }: Asking): Promise<AnswerOf<'GET runs'>> {
  const active = new Map((await commands?.activeRuns())?.map(run => [run.id, run]));
  const known = questions.stamp === undefined || state === 'running' ? undefined : await askFor(questions, 'runs');
  const runs = (known?.rows() ?? []).map((row): Run => {
    const [text, number] = [(name: string) => known?.text(name, row) ?? null, (name: string) => known?.number(name, row) ?? 0];
    const id = text('id') ?? '';
    const live = active.get(id);
    active.delete(id);
    return {
      id,
      kind: text('kind') ?? '',
      state: live ? 'running' : (text('state') ?? ''),
      started: number('started'),
      ended: known?.number('ended', row) ?? null,
      from: text('from'),
      to: text('to'),
      planned: number('planned'),
      done: number('done'),
      failed: number('failed'),
      requests: number('requests'),
      documents: number('documents'),
      is_active: false,
      waits_for: null,
      ...(live ? progressOf(live.progress) : {}),
    };
  });
  const begun = [...active.values()].map(
    ({ id, kind, from, to, started, progress }): Run => ({
      id,
      kind,
      state: 'running',
      started,
      ended: null,
      from,
      to,
      ...progressOf(progress),
    }),
  );
  const all = [...begun, ...runs];
  // A long one is not to be pushed out of sight by those that began after it: who looks may want to stop it.
  return { runs: [...all.filter(run => run.is_active), ...all.filter(run => !run.is_active)] };
}

type Progress = Awaited<ReturnType<NonNullable<Asking['commands']>['activeRuns']>>[number]['progress'];

function progressOf({ windows, requests, documents, waiting_for, waiting_until }: Progress) {
  return {
    planned: windows.planned,
    done: windows.done,
    failed: windows.failed,
    requests,
    documents,
    is_active: true,
    waits_for: waiting_for ?? (waiting_until ? `the service, until ${waiting_until.at.slice(11, 19)} UTC` : null),
  };
}

async function findEvents({ before, user, outcome }: ParsedInputOf<'GET events'>, { questions }: Asking): Promise<AnswerOf<'GET events'>> {
  if (questions.stamp === undefined) return { events: [] };
  const found = await askFor(questions, 'events', { before: before ?? null, user: user ?? null, outcome: outcome ?? null });
  return {
    events: found.rows().map(row => ({
      received: found.number('received', row) ?? 0,
      id: found.text('id', row),
      change: found.text('change', row) ?? '',
      kind: found.text('kind', row) ?? '',
      outcome: found.text('outcome', row) ?? '',
      reason: found.text('reason', row),
      lag: found.number('lag', row),
    })),
  };
}

const LEVELS: Readonly<Record<number, string>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' };

function readLine(line: string): AnswerOf<'GET log'>['lines'][number] {
  const { time, level, msg, pid: _pid, hostname: _hostname, ...rest }: Record<string, unknown> = JSON.parse(line);
  return {
    at: typeof time === 'number' ? time / 1000 : 0,
    level: LEVELS[Number(level)] ?? '',
    message: typeof msg === 'string' ? msg : '',
    rest: Object.entries(rest)
      .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join(', '),
  };
}
