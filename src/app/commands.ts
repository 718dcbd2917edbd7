import { statSync } from 'node:fs';
import { messageOf, TryLaterError, UsageError } from '../base/errors.ts';
import type { ServiceClock } from '../client/client.ts';
import {
  type Account,
  accountEntry,
  changeAccounts,
  getAccount,
  listAccounts,
  parseAccountName,
  setAccountState,
  setAccountStates,
  shownAccount,
} from '../ledger/accounts.ts';
import { isOfUnknownPerson } from '../ledger/unproven.ts';
import type { DayRange } from '../ledger/windows.ts';
import { collectionsOf } from '../sync/collections.ts';
import { takeUpEvents } from '../sync/events/take-up.ts';
import { lastDays, prepareRequest, type Skipped } from '../sync/runs/backfill.ts';
import { planWindows } from '../sync/runs/plan-windows.ts';
import type { RunRequest, RunSummary } from '../sync/runs/run.ts';
import { collectQueue, renewWarehouseId, warehouseId } from '../sync/runs/runs.ts';
import { askServiceClock } from '../sync/service-clock.ts';
import { readSilence, type Silence } from '../sync/silence.ts';
import { type AccountStatus, type DriftStatus, isoOf, reportAccounts, reportDrift } from '../sync/status.ts';
import { startNightly } from '../sync/sweeps/nightly.ts';
import { listSamePersons } from '../sync/verdicts/same-person.ts';
import { reportWebhooks, type WebhookStatus } from '../sync/webhook-status.ts';
import { quoteText } from '../warehouse/tables.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import { BLIND, beginAccount, ensureIdFree, greet } from './add-account.ts';
import type { App } from './app.ts';
import type { CommandContext } from './control/command.ts';
import { coverageCommands } from './coverage-commands.ts';
import { doctorCommands } from './doctor/commands.ts';
import { eraseCommands } from './erase/commands.ts';
import { sentenceOf, tellAlike } from './fixes.ts';
import { andGoOn, followRun, type RunReport, type ShownRun } from './follow-run.ts';
import { snapshotCommands } from './snapshot/commands.ts';
import { subscriptionCommands } from './subscription-commands.ts';

export interface BackfillInput extends Partial<DayRange> {
  /** The last days of the service’s calendar, in place of a range; a range without an end goes as far as they do. */
  last?: number;
  users?: string[];
  collections?: string[];
  refresh: boolean;
  /** Removes what the service no longer has, however much it is. */
  acceptDeletions?: boolean;
  /** Only counts what would be read. */
  plan: boolean;
  /** The run goes on when its caller goes away. */
  detach?: boolean;
}

export type { RunReport, ShownRun } from './follow-run.ts';

export interface NightlyInput {
  days: number;
  acceptDeletions?: boolean;
}

export interface AccountReport {
  user_id: string;
  service_user_id: string | null;
  state: string;
  reason: string | null;
  since: string;
}

export interface AddedReport extends AccountReport {
  /** The other accounts of the same person, and which one of all has the events. Null: there is no other. */
  same_person: { accounts: string[]; events_go_to: string } | null;
}

export interface StatusReport {
  accounts: AccountStatus[];
  /** Windows that are planned, and events that are accepted and not settled, in the queue or not; `problem`: why the queue cannot be asked. */
  queue: { waiting: number; active: number; delayed: number; failed: number; events: number; problem: string | null };
  /** Null: not configured. */
  webhooks: WebhookStatus | null;
  snapshot: { at: string | null };
  /** The file, and when it was compacted last. */
  warehouse: { bytes: number; compacted_at: string | null };
  heart_rate_path: string | null;
  /** Of the last 30 days. */
  drift: DriftStatus[];
  /** What time it is at the service, and how many seconds that is ahead of our clock. Null: no answer has told. */
  service_clock: { at: string; ahead: number } | null;
  /** From what this process has asked, else an earlier one. Null: somebody answered last. */
  service_unreachable: Silence | null;
}

const reportOf = ({ userId, serviceUserId, state, reason, since }: ReturnType<typeof shownAccount>): AccountReport => ({
  user_id: userId,
  service_user_id: serviceUserId,
  state,
  reason,
  since: isoOf(since),
});

/**
 * What the owner of a data folder does, for its own command or for another one through the control socket. Input, events and results are
 * plain JSON.
 */
export function commandsOf(app: App) {
  const { warehouse, now, serviceClock } = app;

  /** A key that is missing or wrong concerns every account: it is said at once, and not once for each window. */
  function ensureTokensReadable(users: readonly string[]): void {
    for (const user of users) {
      try {
        app.secrets.find(user);
      } catch (error) {
        if (error instanceof UsageError) throw error;
      }
    }
  }

  /** The days that are asked for. Where it depends on today, that is the service's. */
  async function findRange({ from, to, last = 1, plan }: BackfillInput, signal: AbortSignal): Promise<DayRange> {
    if (from !== undefined && to !== undefined) return { from, to };
    const asked = plan || !app.settings.serviceUrl ? serviceClock : await askClock(signal);
    const days = lastDays(last, asked);
    if (from === undefined) return days;
    if (from > days.to) throw new UsageError(`--from ${from} is in the future`);
    return { from, to: days.to };
  }

  const askClock = async (signal?: AbortSignal) =>
    askServiceClock({ serviceClock, warehouse, client: await app.client(), tokens: app.secrets }, signal);

  return {
    ...subscriptionCommands(app),
    ...coverageCommands(app),
    ...doctorCommands(app),
    ...eraseCommands(app),
    ...snapshotCommands(app),

    async backfill(input: BackfillInput, context: CommandContext<ShownRun>): Promise<RunReport> {
      const selected = { warehouse, collections: collectionsOf(warehouse.mappings.map(({ resource }) => resource)), tokens: app.secrets };
      const selection = {
        ...(input.users ? { users: input.users } : {}),
        ...(input.collections ? { collections: input.collections } : {}),
      };
      const accepted = input.acceptDeletions ? { acceptDeletions: true as const } : {};
      const rest = { kind: 'backfill' as const, ...(await findRange(input, context.signal)), refresh: input.refresh, ...accepted };
      const { request, skipped } = await prepareRequest(selected, selection, rest);
      if (!request.users.length) throw nobodyToAsk(app, skipped);
      // Counting must not take up what an earlier run left open.
      if (input.plan) {
        const parts = { ...selected, settledDays: app.settings.settledDays };
        return { ...(await planOnly(parts, request)), not_asked: skipped, heart_rate_path: null };
      }
      ensureTokensReadable(request.users);
      const pipeline = await app.pipeline();
      return andGoOn(app, pipeline, context, async () => followRun(app, await pipeline.runs.start(request), skipped, context));
    },

    async nightly({ days, acceptDeletions }: NightlyInput, context: CommandContext<ShownRun>): Promise<RunReport> {
      const accounts = await listAccounts(warehouse);
      if (!accounts.length) throw nobodyToAsk(app, []);
      ensureTokensReadable(accounts.map(({ userId }) => userId));
      const pipeline = await app.pipeline();
      return andGoOn(app, pipeline, context, async () => {
        const { run, skipped } = await startNightly(pipeline, days, acceptDeletions, context.signal);
        if (!run.request.users.length) {
          await run.done;
          throw nobodyToAsk(app, skipped);
        }
        return followRun(app, run, skipped, context);
      });
    },

    /**
     * Adds an account or gives a known one its new token, or (without `token`) the one that it has for this address too; asks the service
     * whether it takes the token.
     */
    async addAccount(input: {
      name: string;
      token?: string;
      serviceUser?: string;
      from?: string;
    }): Promise<AddedReport & { warning: string | null }> {
      const name = parseAccountName(input.name);
      const { to } = lastDays(1, serviceClock);
      if (input.from && input.from > to) throw new UsageError(`--from ${input.from} is in the future`);
      const token = input.token ?? app.secrets.findOfAny(name);
      if (token === undefined) throw new UsageError(`${name} has no token that could be kept: give one without --keep-token`);
      const added = await changeAccounts(warehouse, () => beginAccount(app, name, token, input.serviceUser));
      const { account, warning } = await greet(app, added);
      const waiting = await takeUpWaiting(app);
      return {
        ...reportOf(account),
        warning: warning ?? (added.isBlind ? BLIND : waiting),
        same_person: await findSamePerson(warehouse, name),
      };
    },

    /** Gives the warehouse an id, and with it queues, of its own: for a copied data folder. */
    async adopt(_: Record<string, never>): Promise<{ id: string; before: string }> {
      if (app.opened || app.queueProblem !== undefined) throw new TryLaterError('ringneck is at work in this data folder: end it first');
      const before = await warehouseId(warehouse);
      return { id: await renewWarehouseId(warehouse), before };
    },

    async mapAccount({ name, serviceUser }: { name: string; serviceUser: string }): Promise<AccountReport & { warning: string | null }> {
      const { before, account } = await changeAccounts(warehouse, async () => {
        const known = await getAccount(warehouse, name);
        await ensureIdFree(warehouse, name, serviceUser);
        const mapped = { ...known, serviceUserId: serviceUser };
        await warehouse.record([accountEntry(mapped)]);
        return { before: known.serviceUserId, account: mapped };
      });
      const waiting = await takeUpWaiting(app);
      const warning =
        before === null || before === serviceUser
          ? waiting
          : `${name} was ${before} at the service until now: events of that id find no account any more`;
      return { ...reportOf(account), warning };
    },

    async listAccounts(_: Record<string, never>): Promise<AccountReport[]> {
      return (await listAccounts(warehouse)).map(account => reportOf(shownAccount(account, app.secrets)));
    },

    /** Forgets the token; the rows stay. */
    async removeAccount({ name }: { name: string }): Promise<AccountReport> {
      return changeAccounts(warehouse, async () => {
        const removed = await setAccountState(warehouse, await getAccount(warehouse, name), 'removed', null);
        app.secrets.remove(name);
        app.mirrorTokens.remove(name);
        return reportOf(removed);
      });
    },

    async pauseAccount({ name }: { name: string }): Promise<AccountReport> {
      return changeAccounts(warehouse, async () =>
        reportOf(await setAccountState(warehouse, await getAccount(warehouse, name), 'paused', 'paused by command')),
      );
    },

    /** Those named, all or none; without names all that are parked, but those whose token may be of somebody else, which stay so. */
    async resumeAccounts({ names, parked }: { names?: string[]; parked?: true }): Promise<(AccountReport & { warning: string | null })[]> {
      const stays = ({ reason }: Account) => parked === true && isOfUnknownPerson(reason);
      const { chosen, resumed } = await changeAccounts(warehouse, async () => {
        const chosen = parked
          ? (await listAccounts(warehouse)).filter(({ state }) => state === 'parked')
          : await Promise.all([...new Set(names)].map(name => getAccount(warehouse, name)));
        const asked = chosen.filter(account => !stays(account));
        return { chosen, resumed: await setAccountStates(warehouse, asked, 'active', null) };
      });
      const warning = resumed.length ? await takeUpWaiting(app) : null;
      return chosen.map(account => {
        const changed = resumed.find(({ userId }) => userId === account.userId);
        return changed ? { ...reportOf(changed), warning } : { ...reportOf(account), warning: null };
      });
    },

    async mirrorToken({ name }: { name: string }): Promise<{ user_id: string; token: string }> {
      await getAccount(warehouse, name);
      return { user_id: name, token: app.mirrorTokens.create(name) };
    },

    async status(_: Record<string, never>): Promise<StatusReport> {
      const collections = collectionsOf(warehouse.mappings.map(({ resource }) => resource));
      return {
        accounts: await reportAccounts({ warehouse, now, serviceClock, tokens: app.secrets }, collections, await app.workedOn()),
        queue: { ...(await countQueue(app)), events: (await app.inbox()).size },
        webhooks: await reportWebhooks(warehouse, app.settings, now, {
          refused: app.refusals(),
          waiting: (await app.inbox()).size,
        }),
        snapshot: { at: modifiedAt(app.settings.snapshot) },
        warehouse: await tellSize(warehouse),
        heart_rate_path: await readHeartRatePath(warehouse, app.settings.serviceUrl),
        drift: await reportDrift({ warehouse, now }),
        service_clock: tellClock(serviceClock),
        service_unreachable: await readSilence({ warehouse, client: await app.openedClient, service: app.settings.serviceUrl, now }),
      };
    },
  };
}

async function findSamePerson(warehouse: Warehouse, name: string): Promise<AddedReport['same_person']> {
  const same = (await listSamePersons(warehouse)).find(({ accounts }) => accounts.includes(name));
  return same ? { accounts: same.accounts.filter(other => other !== name), events_go_to: same.eventsGoTo } : null;
}

async function tellSize(warehouse: Warehouse): Promise<StatusReport['warehouse']> {
  const { bytes, compacted } = await warehouse.size();
  return { bytes, compacted_at: compacted ? isoOf(compacted.at) : null };
}

function tellClock({ now, aheadMs }: ServiceClock): StatusReport['service_clock'] {
  return aheadMs === undefined ? null : { at: isoOf(Math.floor(now()) * 1000), ahead: Math.round(aheadMs / 1000) };
}

export type AppCommands = ReturnType<typeof commandsOf>;

/**
 * Where events are worked off, those that waited for their account are taken up now; elsewhere at the next start of `up`.
 * @returns what to warn of
 */
async function takeUpWaiting({ opened }: App): Promise<string | null> {
  const pipeline = await opened;
  if (!pipeline || (await takeUpEvents(pipeline))) return null;
  return 'events that waited for their accounts could not be taken up now: it is tried again each minute';
}

function nobodyToAsk({ settings }: App, skipped: readonly Skipped[]): Error {
  const told = tellAlike(skipped).map(sentenceOf);
  return new NobodyToAsk(
    told.length
      ? `nobody can be asked: ${told.join('; ')}`
      : `there is no account yet in ${settings.data} (RINGNECK_DATA): ringneck account add NAME`,
  );
}

class NobodyToAsk extends UsageError {
  override readonly exitCode = 1;
}

async function planOnly(parts: Parameters<typeof planWindows>[0], request: RunRequest): Promise<RunSummary> {
  const { windows, skipped } = await planWindows(parts, request);
  const nothing = { documents: 0, samples: 0, unchanged: 0, rejected: 0, removed: 0, requests: 0, waits: 0, failures: [] };
  const counts = { planned: windows.length, done: 0, skipped, failed: 0 };
  return { run: '', state: 'complete', from: request.from, to: request.to, windows: counts, ...nothing };
}

/** What is planned waits, in the queue or not yet: the ledger knows of it, also while the queue is away. */
async function countQueue({ warehouse, log, queueProblem, opened }: App): Promise<Omit<StatusReport['queue'], 'events'>> {
  const planned = await countPlanned(warehouse);
  // An attempt to open it may take its time.
  if (queueProblem !== undefined) return { ...NO_JOBS, waiting: planned, problem: queueProblem };
  const pipeline = await opened;
  try {
    const { failed } = (await pipeline?.queues.counts(await collectQueue(warehouse))) ?? NO_JOBS;
    const { active, delayed } = pipeline?.runs.countWindows() ?? NO_JOBS;
    return { waiting: Math.max(0, planned - active - delayed), active, delayed, failed, problem: null };
  } catch (error) {
    log.warn({ reason: messageOf(error) }, 'the queue does not answer');
    return { ...NO_JOBS, waiting: planned, problem: messageOf(error) };
  }
}

const NO_JOBS = { waiting: 0, active: 0, delayed: 0, failed: 0 };

async function countPlanned(warehouse: App['warehouse']): Promise<number> {
  const [row] = await warehouse.read(
    `SELECT count(*) FROM sync.windows JOIN sync.runs USING (run_id) WHERE outcome IS NULL AND state = 'running'`,
  );
  return row![0] as number;
}

/** Which heart-rate path last answered: the sandbox one only where the plain one never did. */
async function readHeartRatePath(warehouse: App['warehouse'], service: string | undefined): Promise<string | null> {
  const rows = await warehouse.read(
    `SELECT route FROM sync.routes WHERE route LIKE '%/heartrate' AND last_200_at IS NOT NULL
     AND coalesce(service = ${quoteText(service ?? '')}, true) ORDER BY last_200_at DESC LIMIT 1`,
  );
  return rows[0] ? (rows[0][0] as string).replace(/^GET /, '') : null;
}

function modifiedAt(path: string): string | null {
  try {
    return isoOf(Math.floor(statSync(path).mtimeMs * 1000));
  } catch {
    return null;
  }
}
