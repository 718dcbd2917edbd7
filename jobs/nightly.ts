import { CronExpressionParser } from 'cron-parser';
import { ServiceError } from '../src/client/error.ts';
import { messageOf } from '../src/errors.ts';
import { listAccounts, setAccountState } from './accounts.ts';
import { lastDays, prepareRequest, type Skipped } from './backfill.ts';
import type { Pipeline } from './pipeline.ts';
import type { Run } from './run.ts';
import { scheduleQueue } from './runs.ts';

export interface NightlySettings {
  /** A cron pattern. */
  pattern: string;
  /** An IANA zone. */
  timeZone: string | undefined;
  /** How many days are read again. */
  days: number;
}

/**
 * Reads the last days of everything again for every account. First each account that was parked by 403 is asked with one request:
 * a membership that was renewed un-parks it.
 */
export async function startNightly(pipeline: Pipeline, days: number): Promise<{ run: Run; skipped: Skipped[] }> {
  await askForbidden(pipeline);
  const range = lastDays(days, pipeline.now());
  const { request, skipped } = await prepareRequest(pipeline, {}, { ...range, kind: 'nightly', refresh: true });
  return { run: await pipeline.runs.start(request), skipped };
}

async function askForbidden({ warehouse, client, tokens, log }: Pipeline): Promise<void> {
  for (const account of await listAccounts(warehouse)) {
    const token = tokens.find(account.userId);
    if (account.state !== 'parked' || !account.reason?.startsWith('forbidden') || !token) continue;
    try {
      await client.probe(token);
      await setAccountState(warehouse, account, 'active', null);
      log.info({ account: account.userId }, 'the service answers for the account again: no longer parked');
    } catch (error) {
      const kind = error instanceof ServiceError ? error.kind : messageOf(error);
      log.info({ account: account.userId, kind }, 'the account stays parked');
    }
  }
}

/** Keeps the schedule in the queue, and runs at once what was missed while nobody was there. */
export async function scheduleNightly(pipeline: Pipeline, settings: NightlySettings): Promise<void> {
  const name = await scheduleQueue(pipeline.warehouse);
  const run = async () => {
    const { run } = await startNightly(pipeline, settings.days);
    run.claim();
    const { state, documents, failures } = await run.done;
    pipeline.log.info({ run: run.id, state, documents, failures: failures.length }, 'nightly run ended');
  };
  // The schedule is made anew from the settings; an iteration that a dead process had begun is covered by `missed`.
  await pipeline.queues.queue(name).obliterate({ force: true });
  pipeline.queues.worker(name, run, { concurrency: 1 });
  const repeat = settings.timeZone ? { pattern: settings.pattern, tz: settings.timeZone } : { pattern: settings.pattern };
  await pipeline.queues.queue(name).upsertJobScheduler('nightly', repeat, { name: 'nightly' });
  if (await missed(pipeline, settings)) await pipeline.queues.add(name, 'nightly', {}, { removeOnComplete: true, removeOnFail: true });
}

/** Whether the last time of the schedule went by without a run, although there was an account, or a run of one, already. */
export async function missed({ warehouse, now }: Pick<Pipeline, 'warehouse' | 'now'>, settings: NightlySettings): Promise<boolean> {
  const due = findLastDue(settings, now()) * 1000;
  const [row] = await warehouse.read(
    `SELECT (SELECT count(*) FROM sync.accounts WHERE state <> 'removed' AND since < make_timestamp(${due}::BIGINT)),
            (SELECT count(*) FROM sync.runs WHERE started_at < make_timestamp(${due}::BIGINT)),
            (SELECT count(*) FROM sync.accounts WHERE state <> 'removed'),
            (SELECT count(*) FROM sync.runs WHERE kind = 'nightly' AND started_at >= make_timestamp(${due}::BIGINT))`,
  );
  const [before, runsBefore, accounts, nightlies] = row as number[];
  // An account's `since` is younger than the account once its token was replaced or it was resumed: then an earlier run tells.
  return (before! > 0 || (runsBefore! > 0 && accounts! > 0)) && nightlies === 0;
}

/** When the schedule was due last, in milliseconds. */
function findLastDue({ pattern, timeZone }: NightlySettings, nowMs: number): number {
  const from = (currentDate: Date) => CronExpressionParser.parse(pattern, { currentDate, ...(timeZone ? { tz: timeZone } : {}) });
  // The schedule goes forward, and backward the parser finds other times where a clock is changed: a little back, and forward from there.
  const back = from(new Date(nowMs));
  for (let i = 0; i < 3; i++) back.prev();
  const forth = from(back.prev().toDate());
  let due = forth.next().getTime();
  for (let next = due; next <= nowMs; next = forth.next().getTime()) due = next;
  return due;
}
