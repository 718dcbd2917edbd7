import { MICROS_PER_DAY } from '../../../schema/instant.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { messageOf } from '../../base/errors.ts';
import { ServiceError } from '../../client/error.ts';
import { type Account, changeAccounts, isAsRead, listAccounts, setAccountState } from '../../ledger/accounts.ts';
import { ANOTHER_PERSON, isUnchecked, UNCHECKED } from '../../ledger/unproven.ts';
import { WIDENED_DAYS } from '../../ledger/windows.ts';
import { takeUpEvents } from '../events/take-up.ts';
import type { Pipeline } from '../pipeline.ts';
import { askRefused } from '../verdicts/refusals.ts';
import { findPerson, isAnother } from '../verdicts/same-person.ts';
import type { Schedule } from './schedule.ts';
import { SWEEP_PATIENCE_MS, type Sweep, startSweep, sweepOnSchedule } from './sweep.ts';
import { TRIED_DAYS } from './unread.ts';

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
    const token = tokens.find(account.userId);
    const isAsked = account.reason?.startsWith('forbidden') || isUnchecked(account.reason);
    if (account.state !== 'parked' || !isAsked || !token) continue;
    try {
      await client.probe(token, signal);
      const person = await findPerson(client, token, signal);
      await changeAccounts(warehouse, async () => {
        if (tokens.find(account.userId) !== token || !(await isAsRead(warehouse, account.userId, account))) return;
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
  if (isAnother(account, person)) {
    await setAccountState(warehouse, account, 'parked', ANOTHER_PERSON);
    log.warn({ account: account.userId }, 'the token of the account is that of another person');
  } else if (person === undefined && isUnchecked(account.reason)) {
    if (account.reason !== UNCHECKED) await setAccountState(warehouse, account, 'parked', UNCHECKED);
    log.info({ account: account.userId }, 'the account stays parked: the service does not say whose its new token is');
  } else {
    await setAccountState(warehouse, account, 'active', null);
    log.info({ account: account.userId }, 'the service answers for the account again: no longer parked');
  }
}

const KEPT_DAYS = 7;
/** For longer than they are tried again: by the oldest it is known since when. */
const FAILED_KEPT_DAYS = TRIED_DAYS + 1;

/**
 * Takes sweeps out of the ledger, complete ones after a week, failed ones after a month: heart rate alone makes a hundred a day. One that
 * settled a day, because it read far back, stays: a backfill would read that day again. So does the last that read a day to its end which
 * another reading did not: without it the day would be called what that one came to. And the last that failed over a day, or beside it,
 * which nobody has read to its end since it was over, and the last that read such a day before: without them the part of it that may have
 * come would be called stored. Of those that read heart rate from the sandbox path the last of each range stays: by it the rows are found,
 * should they turn out to be nobody's.
 */
export async function forgetSweeps({ warehouse, now, settledDays }: Pick<Pipeline, 'warehouse' | 'now' | 'settledDays'>): Promise<void> {
  const before = (days: number) => `make_timestamp(${now() * 1000 - days * MICROS_PER_DAY}::BIGINT)`;
  // Joined day by day: of one account and collection there are thousands of windows, and to compare each with each takes minutes.
  const number = (moment: string) => `date_diff('day', TIMESTAMP '1970-01-01', ${moment})`;
  const days = (wider: number) =>
    `unnest(CASE WHEN start_at IS NULL THEN [NULL] ELSE range(${number('start_at')} - ${wider}, ${number('end_at')} + ${wider}) END)`;
  const rows = await warehouse.read(
    `WITH
       unread AS (SELECT run_id, user_id, collection, start_at, end_at, outcome, committed_at, ${days(WIDENED_DAYS)} AS n
                  FROM sync.windows WHERE outcome IS DISTINCT FROM 'complete'),
       readings AS (SELECT run_id, user_id, collection, ${days(0)} AS n, requested_at, committed_at, sync.over_at(service_at, read_at) AS over_at
                    FROM sync.windows WHERE outcome = 'complete' AND requested_at IS NOT NULL),
       deciding AS (SELECT unnest([arg_max(run_id, requested_at), arg_max(run_id, committed_at)]) AS run_id
                    FROM readings r SEMI JOIN unread u
                      ON u.user_id = r.user_id AND u.collection = r.collection AND u.n IS NOT DISTINCT FROM r.n
                    GROUP BY user_id, collection, n),
       answered AS (SELECT user_id, collection, n FROM readings WHERE n IS NULL OR ${number('over_at')} > n),
       begun AS (SELECT unnest([arg_max(run_id, committed_at),
                                arg_max(run_id, committed_at) FILTER (n BETWEEN ${number('start_at')} AND ${number('end_at')} - 1)]) AS run_id
                 FROM unread u ANTI JOIN answered a
                   ON a.user_id = u.user_id AND a.collection = u.collection AND a.n IS NOT DISTINCT FROM u.n
                 WHERE outcome <> 'not_offered' GROUP BY user_id, collection, n),
       early AS (SELECT arg_max(run_id, requested_at) AS run_id
                 FROM readings r ANTI JOIN answered a ON a.user_id = r.user_id AND a.collection = r.collection AND a.n = r.n
                 WHERE n IS NOT NULL GROUP BY user_id, collection, n)
     SELECT run_id FROM sync.runs r WHERE kind = 'sweep'
     AND (state = 'complete' AND ended_at < ${before(KEPT_DAYS)} OR state = 'failed' AND ended_at < ${before(FAILED_KEPT_DAYS)})
     AND NOT EXISTS (SELECT 1 FROM sync.windows w WHERE w.run_id = r.run_id AND w.outcome = 'complete'
                     AND sync.over_at(w.service_at, w.read_at) >= w.start_at + INTERVAL ${settledDays + 1} DAY)
     AND run_id NOT IN (SELECT run_id FROM (FROM deciding UNION ALL FROM begun UNION ALL FROM early) WHERE run_id IS NOT NULL)
     AND run_id NOT IN (SELECT arg_max(run_id, committed_at) FROM sync.windows
                        WHERE route = '${heartRate.sandboxPath}' AND outcome = 'complete' GROUP BY user_id, start_at, end_at)`,
  );
  const keys = rows.map(([runId]) => ({ run_id: runId as string }));
  await warehouse.record(['sync.windows', 'sync.runs'].flatMap(table => keys.map(key => ({ table, key }))));
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
  const [row] = await warehouse.read(
    `SELECT (SELECT count(*) FROM sync.accounts WHERE state <> 'removed' AND since < make_timestamp(${due}::BIGINT)),
            (SELECT count(*) FROM sync.runs WHERE started_at < make_timestamp(${due}::BIGINT)),
            (SELECT count(*) FROM sync.accounts WHERE state <> 'removed'),
            (SELECT count(*) FROM sync.runs WHERE kind = 'nightly' AND started_at BETWEEN make_timestamp(${due}::BIGINT)
               AND make_timestamp(${Math.ceil(now() * 1000)}::BIGINT))`,
  );
  const [before, runsBefore, accounts, nightlies] = row as number[];
  // An account's `since` is younger than the account once its token was replaced or it was resumed: then an earlier run tells.
  return (before! > 0 || (runsBefore! > 0 && accounts! > 0)) && nightlies === 0;
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
