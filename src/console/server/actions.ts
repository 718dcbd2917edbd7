import { randomBytes } from 'node:crypto';
import type { AppCommands } from '../../app/commands.ts';
import type { RunReport } from '../../app/follow-run.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ActionName, actionRoutes } from '../api/actions.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import type { Asking, Handlers } from './handlers.ts';
import { Refusal } from './refusal.ts';

type Input = ParsedInputOf<'POST actions/:name/plan'>;
type Done = AnswerOf<'POST actions/:name'>;

/** What would be done, and how it is. */
interface Planned {
  says: string[];
  report?: RunReport;
  /** Undefined: there is nothing to do. */
  run?(): Promise<Done>;
}

interface Kept {
  name: ActionName;
  session: string;
  at: number;
  run(): Promise<Done>;
}

const PLAN_MS = 120_000;
const MOST_PLANS = 100;
const INVITED_DAYS = 14;

/** What acts: planned first, then done by the plan, which holds once and for two minutes. */
export class Actions {
  readonly #plans = new Map<string, Kept>();
  /** Aborted by nobody: what was begun goes on when its page is closed. */
  readonly #signal = new AbortController().signal;

  readonly handlers: Handlers<keyof typeof actionRoutes> = {
    'POST actions/:name/plan': (input, asking) => this.#plan(input, asking),
    'POST actions/:name': (input, asking) => this.#do(input, asking),
  };

  async #plan(input: Input, { commands, session, now, log, signal }: Asking): Promise<AnswerOf<'POST actions/:name/plan'>> {
    if (!commands) throw new Refusal(503, 'Nobody owns the data folder.', 'Start ringneck up: then it can be done here.');
    const { says, report, run } = await this.#planOf(input, commands, log, signal);
    const at = now();
    const plan = run ? randomBytes(32).toString('base64url') : null;
    if (run && plan) {
      const [oldest] = this.#plans.keys();
      if (this.#plans.size >= MOST_PLANS && oldest !== undefined) this.#plans.delete(oldest);
      this.#plans.set(plan, { name: input.name, session: session.id, at, run });
    }
    const windows = report?.windows.planned ?? null;
    // Each window is one request at least.
    return { plan, says, windows, requests: windows, expires_at: Math.floor((at + PLAN_MS) / 1000) };
  }

  async #do({ name, plan }: ParsedInputOf<'POST actions/:name'>, { session, now }: Asking): Promise<Done> {
    const kept = this.#plans.get(plan);
    const isMine = kept?.session === session.id && kept.name === name;
    if (isMine) this.#plans.delete(plan);
    const age = now() - (kept?.at ?? 0);
    if (!kept || !isMine || age < 0 || age >= PLAN_MS) {
      throw new Refusal(410, 'This plan was used already, or is older than two minutes.', 'Look at what would be done again.');
    }
    return kept.run();
  }

  async #planOf(input: Input, commands: AppCommands, log: Log, signal: AbortSignal): Promise<Planned> {
    const context = { emit: () => undefined, signal };
    switch (input.name) {
      case 'backfill': {
        const asked = { ...selectionOf(input), refresh: true };
        const report = await commands.backfill({ ...asked, plan: true }, context);
        return readingOf(report, emit => commands.backfill({ ...asked, plan: false, detach: true }, { emit, signal: this.#signal }), log);
      }
      case 'repair': {
        const asked = selectionOf(input);
        const report = await commands.repairPlan(asked, context);
        if (!report) return { says: ['Nothing is missing that may be asked for.'] };
        return readingOf(report, emit => commands.repair({ ...asked, detach: true }, { emit, signal: this.#signal }), log);
      }
      case 'resume':
      case 'pause':
      case 'invite':
        return accountPlan(input.name, oneUser(input), commands);
      case 'stop': {
        const id = need(input.id, 'the run');
        const run = (await commands.activeRuns()).find(active => active.id === id);
        if (!run) return { says: ['Nobody works on this run any more.'] };
        const { done, planned } = run.progress.windows;
        return {
          says: [
            `The ${run.kind} of ${run.from} to ${run.to} ends: ${done} of ${planned} windows are read.`,
            'What is stored stays; the rest is read when you ask for it again.',
          ],
          run: async () => {
            await commands.stopRun({ id });
            return { says: 'The run was stopped.', url: null };
          },
        };
      }
      case 'retry': {
        const [id, queue] = [need(input.id, 'the job'), need(input.queue, 'the queue')];
        return {
          says: [`The job is tried again at once, in the queue ${queue}.`],
          run: async () => {
            await commands.retryJob({ id, queue });
            return { says: 'The job waits to be worked on again.', url: null };
          },
        };
      }
    }
  }
}

function selectionOf({ users, collections, from, to }: Input) {
  return { ...(users ? { users } : {}), ...(collections ? { collections } : {}), ...(from ? { from } : {}), ...(to ? { to } : {}) };
}

function need<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Refusal(400, `It is not said for which one: ${what} is missing.`, 'Load the page again.');
  return value;
}

function oneUser({ users = [] }: Input): string {
  const [user, ...others] = users;
  if (user === undefined || others.length) throw new Refusal(400, 'This is done for one account at a time.', 'Name one.');
  return user;
}

function readingOf(report: RunReport, start: (emit: () => void) => Promise<RunReport | null>, log: Log): Planned {
  const { from, to, windows, not_asked: left } = report;
  if (!windows.planned) return { says: [`There is nothing to read from ${from} to ${to}.`] };
  const says = [
    `${windows.planned.toLocaleString('en')} ${windows.planned === 1 ? 'window' : 'windows'} from ${from} to ${to} ${windows.planned === 1 ? 'is' : 'are'} read: at least as many requests.`,
  ];
  const closed = new Set(left.filter(({ collection }) => collection === null).map(({ user_id: user }) => user));
  if (closed.size) says.push(`Not asked, because they are paused or parked: ${[...closed].join(', ')}.`);
  return { says, report, run: () => begin(start, log) };
}

/** Waits until it is under way, or has failed at once; its end is told by what the page shows of runs. */
async function begin(start: (emit: () => void) => Promise<RunReport | null>, log: Log): Promise<Done> {
  let began: () => void = () => {};
  const underWay = new Promise<'under way'>(resolve => {
    began = () => resolve('under way');
  });
  const done = start(() => began());
  done.catch(error => log.warn({ reason: messageOf(error) }, 'what was begun in the console has failed'));
  const first = await Promise.race([underWay, done]);
  if (first === 'under way') return { says: 'It is being read: Operations shows how far it is.', url: null };
  if (!first) return { says: 'Nothing is missing any more.', url: null };
  const { windows } = first;
  return { says: `${windows.done} of ${windows.planned} windows were read.`, url: null };
}

async function accountPlan(name: 'resume' | 'pause' | 'invite', user: string, commands: AppCommands): Promise<Planned> {
  switch (name) {
    case 'resume':
      return {
        says: [`${user} is read again, what is missing too.`],
        run: async () => {
          const [report] = await commands.resumeAccounts({ names: [user] });
          return { says: report?.warning ?? `${user} is ${report?.state ?? 'active'}.`, url: null };
        },
      };
    case 'pause':
      return {
        says: [`${user} is not read until somebody resumes it. What is stored stays.`],
        run: async () => {
          const { state } = await commands.pauseAccount({ name: user });
          return { says: `${user} is ${state}.`, url: null };
        },
      };
    case 'invite':
      await commands.planInvitation({ name: user });
      return {
        says: [`A link is made by which ${user} signs in, for ${INVITED_DAYS} days. It ends an earlier one, and is shown once.`],
        run: async () => {
          const { url } = await commands.inviteAccount({ name: user, days: INVITED_DAYS });
          return { says: `Give this link to ${user}, and to nobody else.`, url };
        },
      };
  }
}
