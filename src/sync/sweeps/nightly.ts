import { messageOf } from '../../base/errors.ts';
import { ServiceError } from '../../client/error.ts';
import { type Account, changeAccounts, isAsRead, listAccounts, setAccountState } from '../../ledger/accounts.ts';
import { forgetSweeps } from '../../ledger/forget-sweeps.ts';
import { countAround } from '../../ledger/runs.ts';
import { ANOTHER_PERSON, isUnchecked, twinOf, UNCHECKED } from '../../ledger/unproven.ts';
import { takeUpEvents } from '../events/take-up.ts';
import type { Pipeline } from '../pipeline.ts';
import { probeAccount } from '../verdicts/probe.ts';
import { askRefused } from '../verdicts/refusals.ts';
import { findPerson, findTwin, isAnother } from '../verdicts/same-person.ts';
import { type Schedule, SWEEP_PATIENCE_MS, type Sweep, startSweep, sweepOnSchedule } from './sweep.ts';

export interface NightlySettings {
  /** A cron pattern. */
  pattern: string;
  /** An IANA zone. */
  timeZone: string | undefined;
  /** How many days are read again. */
  days: number;
}

/** Reads the last days of everything again for every account: a longer sweep. */
export async function startNightly(pipeline: Pipeline, days: number, acceptDeletions = false, signal?: AbortSignal): Promise<Sweep> {
  await tidyUp(pipeline, signal);
  return startSweep(pipeline, { kind: 'nightly', days, acceptDeletions }, signal);
}

/**
 * Before a night each account that was parked by 403, or of whose new token nobody knows whose it is, is asked: a membership that was
 * renewed un-parks it, but a new token only when it is shown to be of the same person. So is each collection that was refused. And sweeps of
 * long ago are forgotten.
 * @param signal leaves what is not done yet to the next night
 */
async function tidyUp(pipeline: Pipeline, signal?: AbortSignal): Promise<void> {
  await askForbidden(pipeline, signal);
  await askRefused(pipeline, signal);
  await takeUpEvents(pipeline);
  await forgetSweeps(pipeline);
}

async function askForbidden(pipeline: Pipeline, signal?: AbortSignal): Promise<void> {
  const { warehouse, client, tokens, log } = pipeline;
  for (const account of await listAccounts(warehouse)) {
    const isAsked = account.reason?.startsWith('forbidden') || isUnchecked(account.reason);
    if (account.state !== 'parked' || !isAsked) continue;
    try {
      const token = tokens.find(account.userId);
      if (!token) continue;
      await probeAccount(pipeline, token, { scopes: tokens.findSignIn(account.userId)?.scopes, isOnce: true, signal });
      const person = await findPerson(client, token, signal);
      await changeAccounts(warehouse, async () => {
        if (!tokens.isSame(account.userId, token) || !(await isAsRead(warehouse, account.userId, account))) return;
        await decideParked(pipeline, account, person);
      });
    } catch (error) {
      signal?.throwIfAborted();
      const kind = error instanceof ServiceError ? error.kind : messageOf(error);
      log.info({ account: account.userId, kind }, 'the account stays parked');
    }
  }
}

/** Says how a parked account goes on whose token the service takes. */
async function decideParked({ warehouse, log }: Pipeline, account: Account, person: string | undefined): Promise<void> {
  const twin = await findTwin(warehouse, account.userId, person);
  if (isAnother(account, person)) {
    await setAccountState(warehouse, account, 'parked', ANOTHER_PERSON);
    log.warn({ account: account.userId }, 'the token of the account is that of another person');
  } else if (twin !== undefined) {
    await setAccountState(warehouse, account, 'parked', twinOf(twin));
    log.warn({ account: account.userId, other: twin }, 'the token of the account is of the person of another account');
  } else if ((person === undefined || account.serviceUserId === null) && isUnchecked(account.reason)) {
    if (account.reason !== UNCHECKED) await setAccountState(warehouse, account, 'parked', UNCHECKED);
    log.info({ account: account.userId }, 'the account stays parked: the service does not say whose its new token is');
  } else {
    await setAccountState(warehouse, account, 'active', null);
    log.info({ account: account.userId }, 'the service answers for the account again: no longer parked');
  }
}

/** Reads the last days at a time of the night; where it was missed, at once. */
export function nightlySchedule(pipeline: Pipeline, settings: NightlySettings, patienceMs = SWEEP_PATIENCE_MS): Schedule {
  return {
    name: 'nightly',
    repeat: async () => settings,
    missed: () => missed(pipeline, settings),
    run: async () => {
      await tidyUp(pipeline);
      await sweepOnSchedule(pipeline, { kind: 'nightly', days: settings.days }, patienceMs);
    },
  };
}

/** Whether the last time of the schedule went by without a run, although there was an account, or a run of one, already. */
export async function missed({ warehouse, now }: Pick<Pipeline, 'warehouse' | 'now'>, settings: NightlySettings): Promise<boolean> {
  const due = (await findLastDue(settings, now())) * 1000;
  const { accountsBefore, runsBefore, accounts, nightliesSince } = await countAround(warehouse, due, Math.ceil(now() * 1000));
  // An account's `since` is younger than the account once its token was replaced or it was resumed: then an earlier run tells.
  return (accountsBefore > 0 || (runsBefore > 0 && accounts > 0)) && nightliesSince === 0;
}

/** When the schedule was due last, in milliseconds. */
async function findLastDue({ pattern, timeZone }: NightlySettings, nowMs: number): Promise<number> {
  const { CronExpressionParser } = await import('cron-parser');
  const from = (currentDate: Date) => CronExpressionParser.parse(pattern, { currentDate, ...(timeZone ? { tz: timeZone } : {}) });
  // The schedule goes forward, and backward the parser finds other times where a clock is changed: a little back, and forward from there.
  const back = from(new Date(nowMs));
  for (let i = 0; i < 3; i++) back.prev();
  const forth = from(back.prev().toDate());
  let due = forth.next().getTime();
  for (let next = due; next <= nowMs; next = forth.next().getTime()) due = next;
  return due;
}
