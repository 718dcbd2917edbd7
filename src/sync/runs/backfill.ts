import { addDays, dayOfMicros } from '../../../schema/instant.ts';
import { UsageError } from '../../base/errors.ts';
import type { Tokens } from '../../base/secrets/secrets.ts';
import { isOneTime, type ServiceClock } from '../../client/service-clock.ts';
import { getAccount, listAccounts, listParkedCollections, shownAccount } from '../../ledger/accounts.ts';
import type { RunRequest, Span } from '../../ledger/runs.ts';
import type { DayRange } from '../../ledger/windows.ts';
import type { Pipeline } from '../pipeline.ts';
import { noteUngranted } from '../verdicts/ungranted.ts';
import type { Run } from './run.ts';

/** Something that is not asked, and why: it was parked or paused before, or we have no token for this service (`without_token`). */
export interface Skipped {
  user_id: string;
  /** Null: the whole account. */
  collection: string | null;
  state: string;
  reason: string | null;
}

/** The two moments that may be now, the earlier first, in milliseconds: by the service's clock and by ours, where both are of one time. */
export function bothNows({ now, aheadMs = 0 }: Pick<ServiceClock, 'now' | 'aheadMs'>): [earlierMs: number, laterMs: number] {
  const theirs = now();
  const ours = isOneTime(aheadMs) ? theirs - aheadMs : theirs;
  return [Math.min(theirs, ours), Math.max(theirs, ours)];
}

/**
 * The days of `--last N`: those that end tomorrow (UTC), because it is tomorrow already somewhere. Where the service's clock and ours are
 * of one time, those of both and all between them: whichever is wrong, the last days are among them.
 */
export function lastDays(count: number, clock: Pick<ServiceClock, 'now' | 'aheadMs'>): DayRange {
  const [earlier, later] = bothNows(clock);
  return { from: addDays(dayOfMicros(earlier * 1000), 2 - count), to: addDays(dayOfMicros(later * 1000), 1) };
}

/** Before it nobody wore a ring; after it a range that is widened has a year of five digits, which no date of the interface can be. */
const POSSIBLE: DayRange = { from: '1900-01-01', to: '2199-12-31' };

/** @throws UsageError naming the option and the days that can be */
export function refuseImpossible({ from, to }: DayRange): void {
  for (const [option, day] of Object.entries({ from, to })) {
    if (day < POSSIBLE.from || day > POSSIBLE.to) {
      throw new UsageError(`--${option} ${day}: give a day from ${POSSIBLE.from} to ${POSSIBLE.to}`);
    }
  }
}

/**
 * The request for a run over the accounts that are active and (where `tokens` are given) have one, and what it leaves out.
 * @throws UsageError for a day that cannot be asked for, and for an account or a collection that does not exist, naming those that do
 */
export async function prepareRequest(
  { warehouse, collections, tokens }: Pick<Pipeline, 'warehouse' | 'collections'> & { tokens?: Pick<Tokens, 'whyMissing' | 'findSignIn'> },
  selection: { users?: readonly string[]; collections?: readonly string[] },
  rest: DayRange & Pick<RunRequest, 'kind' | 'refresh' | 'acceptDeletions'>,
): Promise<{ request: RunRequest; skipped: Skipped[] }> {
  refuseImpossible(rest);
  if (tokens) await noteUngranted({ warehouse, collections, tokens });
  const found = selection.users?.length
    ? await Promise.all([...new Set(selection.users)].map(name => getAccount(warehouse, name)))
    : await listAccounts(warehouse);
  const accounts = found.map(account => shownAccount(account, tokens));
  const names = collections.map(({ name }) => name);
  for (const name of selection.collections ?? []) {
    if (!names.includes(name)) throw new UsageError(`no collection ${JSON.stringify(name)}: there are ${names.join(', ')}`);
  }
  const { collections: wanted = [] } = selection;
  const chosen = wanted.length ? names.filter(name => wanted.includes(name)) : names;
  const users = accounts.filter(({ state }) => state === 'active').map(({ userId }) => userId);
  const parked = (await listParkedCollections(warehouse)).filter(
    ({ userId, collection }) => users.includes(userId) && chosen.includes(collection),
  );
  const skipped: Skipped[] = [
    ...accounts
      .filter(({ state }) => state !== 'active')
      .map(({ userId, state, reason }) => ({ user_id: userId, collection: null, state, reason })),
    ...parked.map(({ userId, collection, reason }) => ({ user_id: userId, collection, state: 'not_authorised', reason })),
  ];
  const request: RunRequest = { kind: rest.kind, from: rest.from, to: rest.to, refresh: rest.refresh, users, collections: chosen };
  return { request: rest.acceptDeletions ? { ...request, acceptDeletions: true } : request, skipped };
}

/** Reads exactly these days anew, of which there is at least one, in a run of its own. */
export function startSpans({ runs }: Pick<Pipeline, 'runs'>, spans: readonly Span[]): Promise<Run> {
  const days = spans.flatMap(({ from, to }) => [from, to]).sort();
  const [from = '', to = ''] = [days[0], days.at(-1)];
  const users = [...new Set(spans.map(({ userId }) => userId))];
  const collections = [...new Set(spans.map(({ collection }) => collection))];
  return runs.start({ kind: 'backfill', from, to, users, collections, refresh: true, spans });
}
