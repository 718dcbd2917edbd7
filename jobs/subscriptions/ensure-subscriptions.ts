import { dataTypeOf, namesOf, OPERATIONS } from '../../schema/webhook.ts';
import { ServiceError } from '../../src/client/error.ts';
import type { SubscriptionClient, TheirSubscription } from '../../src/client/subscriptions.ts';
import { messageOf } from '../../src/errors.ts';
import type { Log } from '../../src/log.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { concealQuery, keyOf, readSubscriptions, type SubscriptionRow, subscriptionEntry } from './subscription-rows.ts';

export interface SubscriptionParts {
  client: SubscriptionClient;
  warehouse: Warehouse;
  callbackUrl: string;
  /** The kinds of data that we hold. */
  dataTypes: readonly string[];
  /** Those that the service turned out not to know: not asked for again. */
  notOffered: Set<string>;
  log: Log;
}

export interface Ensured {
  /** One for each kind of data and operation, but for those that could not be asked for at all. */
  rows: SubscriptionRow[];
  /** Those that are to be asked for again, by `keyOf`. */
  failed: Set<string>;
  /** Why some of them could not be renewed or turned to our callback, by `keyOf`. */
  notKept: Map<string, string>;
}

type Kind = Pick<SubscriptionRow, 'eventType' | 'dataType'>;

/** What is the same for all in one round. */
interface Round extends SubscriptionParts {
  listed: readonly TheirSubscription[] | undefined;
  /** Said of our callback, which all share, by the first that was refused for it. */
  callbackRefused?: string;
  lost: string[];
  redirected: string[];
  failed: Set<string>;
  notKept: Map<string, string>;
}

const SIDE_BY_SIDE = 4;
const DAY = 86_400_000_000;
/** Taken where the service does not say how long one lasts: less than the 90 days that are known. */
const SUPPOSED_LIFE = 30 * DAY;

/** Concern all of them alike: a dead client, a wrong address. What answered 5xx to one may still make the others. */
export const OF_ALL: ReadonlySet<ServiceError['kind']> = new Set([
  'unauthorized',
  'forbidden',
  'not_found',
  'redirected',
  'rate_limited',
  'stopped',
]);

/** Every subscription that we want: one for each kind of data and operation (4.4). */
export const kindsOf = (dataTypes: readonly string[]): Kind[] =>
  dataTypes.flatMap(dataType => OPERATIONS.map(eventType => ({ eventType, dataType })));

/** When one is to be renewed: with a third of its life left. Microseconds. */
export function dueAt({ since, renewedAt, expiresAt }: SubscriptionRow): number {
  const life = renewedAt !== null && expiresAt !== null ? expiresAt - renewedAt : SUPPOSED_LIFE;
  return (expiresAt ?? (renewedAt ?? since) + SUPPOSED_LIFE) - life / 3;
}

/**
 * Makes what is missing, renews what ends soon, turns to our callback what goes elsewhere. Each is committed when it is done. What exists is
 * taken from the service's list; where it offers none, from our table, and each is renewed to see whether it still exists.
 * @throws ServiceError that concerns all of them
 */
export async function ensureSubscriptions(parts: SubscriptionParts): Promise<Ensured> {
  const { warehouse, log } = parts;
  const known = await readSubscriptions(warehouse);
  const listed = await parts.client.list();
  const round: Round = { ...parts, listed, lost: [], redirected: [], failed: new Set(), notKept: new Map() };
  const rows: SubscriptionRow[] = [];
  const news: SubscriptionRow[] = [];
  try {
    await eachSideBySide(kindsOf(parts.dataTypes), async kind => {
      const before = known.get(keyOf(kind));
      const row = await keepOne(round, kind, before);
      rows.push(row);
      if (before && JSON.stringify(before) === JSON.stringify(row)) return;
      await warehouse.record([subscriptionEntry(row)]);
      if (row.state !== 'active' && row.reason !== before?.reason) news.push(row);
    });
  } finally {
    if (round.lost.length) log.warn({ lost: round.lost }, 'subscriptions were lost at the service: they are made again');
    if (round.redirected.length)
      log.warn({ redirected: round.redirected }, 'subscriptions went to another callback: they come to ours now');
    for (const [reason, some] of groupByReason(news)) {
      const level = some[0]!.state === 'not_offered' ? 'info' : 'warn';
      log[level]({ subscriptions: some.map(keyOf), state: some[0]!.state, reason }, 'there is no subscription');
    }
  }
  return { rows, failed: round.failed, notKept: round.notKept };
}

function groupByReason(rows: readonly SubscriptionRow[]): Map<string | null, SubscriptionRow[]> {
  const groups = new Map<string | null, SubscriptionRow[]>();
  for (const row of rows) groups.set(row.reason, [...(groups.get(row.reason) ?? []), row]);
  return groups;
}

export async function eachSideBySide<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  let stopped = false;
  const worker = async () => {
    for (const item of left) {
      if (stopped) return;
      try {
        await work(item);
      } catch (error) {
        stopped = true;
        throw error;
      }
    }
  };
  // All are waited for: what one of them has made must be committed.
  const ended = await Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, worker));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}

async function keepOne(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow> {
  try {
    const kept = round.listed ? await keepListed(round, kind, before) : await keepKnown(round, kind, before);
    if (kept) return kept;
    if (before?.state === 'active') round.lost.push(keyOf(kind));
    return await create(round, kind, before);
  } catch (error) {
    if (!isOfOne(error)) throw error;
    round.failed.add(keyOf(kind));
    if (before?.state === 'active' && !round.lost.includes(keyOf(kind))) return stand(round, kind, before, error);
    const state = before?.state === 'active' || before?.state === 'lost' ? 'lost' : 'refused';
    return inactive(round, kind, before, state, `not made yet: ${messageOf(error)}`);
  }
}

/** Keeps one that the service lists; undefined when there is none. */
async function keepListed(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow | undefined> {
  const { warehouse } = round;
  const same = round.listed!.filter(({ eventType, dataType }) => eventType === kind.eventType && dataTypeOf(dataType) === kind.dataType);
  const found = same.find(({ callbackUrl }) => isOurs(round, callbackUrl)) ?? same[0];
  if (!found) return undefined;
  if (!isOurs(round, found.callbackUrl)) return redirect(round, kind, before, found.id);
  const row = active(round, kind, before, found, false);
  if (dueAt(row) > warehouse.moments.next()) return row;
  return renew(round, kind, before, row);
}

/** Without a list: one that is renewed still exists. */
async function keepKnown(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow | undefined> {
  if (!before?.id) return undefined;
  if (before.callbackUrl !== concealQuery(round.callbackUrl)) return redirect(round, kind, before, before.id);
  return renew(round, kind, before, before);
}

/** Asks for a longer life; undefined when there is none to renew. */
async function renew(
  round: Round,
  kind: Kind,
  before: SubscriptionRow | undefined,
  standing: SubscriptionRow,
): Promise<SubscriptionRow | undefined> {
  try {
    return await orUndefined404(async () => active(round, kind, before, await round.client.renew(standing.id!), true));
  } catch (error) {
    if (!isOfOne(error) || (standing.state !== 'active' && !isExpired(standing, round.warehouse))) throw error;
    return stand(round, kind, standing, error);
  }
}

/** What an error leaves of one: it takes nothing away before the life that it has is over. */
function stand(round: Round, kind: Kind, row: SubscriptionRow, error: ServiceError): SubscriptionRow {
  round.failed.add(keyOf(kind));
  round.notKept.set(keyOf(kind), messageOf(error));
  return isExpired(row, round.warehouse) ? loseExpired(round, row, messageOf(error)) : row;
}

const isExpired = ({ expiresAt }: SubscriptionRow, { moments }: Warehouse) => expiresAt !== null && expiresAt <= moments.next();

const loseExpired = (parts: Pick<SubscriptionParts, 'warehouse'>, row: SubscriptionRow, reason: string) =>
  inactive(parts, row, row, 'lost', `it has expired and could not be renewed: ${reason}`);

/** For a round that came to nothing: what has expired meanwhile is lost. */
export async function noteExpired(parts: Pick<SubscriptionParts, 'warehouse'>, reason: string): Promise<void> {
  const { warehouse } = parts;
  const known = await readSubscriptions(warehouse);
  const expired = [...known.values()].filter(row => row.state === 'active' && isExpired(row, warehouse));
  await warehouse.record(expired.map(row => subscriptionEntry(loseExpired(parts, row, reason))));
}

/** Sends its events to our callback from now on; a service that leaves the address as it is gets a new subscription. */
async function redirect(round: Round, kind: Kind, before: SubscriptionRow | undefined, id: string): Promise<SubscriptionRow | undefined> {
  const { client } = round;
  if (round.callbackRefused) return refuseCallback(round, kind, before, round.callbackRefused);
  try {
    const theirs = await orUndefined404(() => client.update(id));
    // Whatever came of it until now did not come to us.
    const elsewhere = before && { ...before, state: 'lost' as const };
    if (theirs && isOurs(round, theirs.callbackUrl)) {
      round.redirected.push(keyOf(kind));
      return active(round, kind, elsewhere, theirs, false);
    }
    if (theirs) await client.remove(id);
    return undefined;
  } catch (error) {
    if (isAbout(error, 'callback_url')) return refuseCallback(round, kind, before, messageOf(error));
    throw error;
  }
}

async function create(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow> {
  const { eventType, dataType } = kind;
  if (round.callbackRefused) return refuseCallback(round, kind, before, round.callbackRefused);
  for (const name of namesOf(dataType)) {
    if (round.notOffered.has(name)) continue;
    try {
      return active(round, kind, before, await round.client.create(eventType, name), true);
    } catch (error) {
      if (isAbout(error, 'callback_url')) return refuseCallback(round, kind, before, messageOf(error));
      if (isAbout(error, 'data_type')) {
        round.notOffered.add(name);
        continue;
      }
      if (!(error instanceof ServiceError) || error.kind !== 'invalid_request') throw error;
      round.failed.add(keyOf(kind));
      return inactive(round, kind, before, 'refused', error.status === 409 ? existsUnknown(round) : messageOf(error));
    }
  }
  return inactive(round, kind, before, 'not_offered', 'the service knows no such kind of data; asked again at the next start');
}

/** The one callback is shared by all: they are not tried one after the other. */
function refuseCallback(round: Round, kind: Kind, before: SubscriptionRow | undefined, said: string): SubscriptionRow {
  round.callbackRefused = said;
  round.failed.add(keyOf(kind));
  return inactive(
    round,
    kind,
    before,
    'refused',
    `the service could not verify our callback: check RINGNECK_CALLBACK_URL, the reverse proxy and RINGNECK_VERIFICATION_TOKEN, or run ringneck doctor (${said})`,
  );
}

const existsUnknown = ({ listed }: Round) =>
  `the service has this subscription already, ${listed ? 'but does not list it' : 'offers no list, and we do not know its id'}: if its events come to our callback, ` +
  'ringneck subscriptions remove --on-next-event ends it, and ringneck subscriptions ensure then makes it anew; else it goes when it expires';

function active(
  { warehouse, callbackUrl }: Round,
  { eventType, dataType }: Kind,
  before: SubscriptionRow | undefined,
  theirs: TheirSubscription,
  renewed: boolean,
): SubscriptionRow {
  const now = warehouse.moments.next();
  const same = before?.id === theirs.id;
  const unbroken = same && before.state === 'active' && before.callbackUrl === concealQuery(callbackUrl);
  return {
    eventType,
    dataType,
    id: theirs.id,
    callbackUrl: concealQuery(callbackUrl),
    state: 'active',
    reason: null,
    since: unbroken ? before.since : now,
    renewedAt: renewed ? now : same ? before.renewedAt : null,
    expiresAt: theirs.expiresAt,
  };
}

/** The id is kept: what answered 404 may have been something on the way. */
function inactive(
  { warehouse }: Pick<SubscriptionParts, 'warehouse'>,
  { eventType, dataType }: Kind,
  before: SubscriptionRow | undefined,
  state: SubscriptionRow['state'],
  reason: string,
): SubscriptionRow {
  return {
    eventType,
    dataType,
    id: before?.id ?? null,
    callbackUrl: before?.callbackUrl ?? null,
    state,
    reason,
    since: before?.state === state ? before.since : warehouse.moments.next(),
    renewedAt: before?.renewedAt ?? null,
    expiresAt: before?.expiresAt ?? null,
  };
}

/** Whether an address is that of our callback. */
export const isOurs = ({ callbackUrl }: { callbackUrl: string }, theirs: string) =>
  URL.canParse(theirs) && new URL(theirs).href === callbackUrl;

const isOfOne = (error: unknown): error is ServiceError => error instanceof ServiceError && !OF_ALL.has(error.kind);

const isAbout = (error: unknown, field: string): boolean => error instanceof ServiceError && error.status === 422 && error.field === field;

async function orUndefined404<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ServiceError && error.kind === 'not_found') return undefined;
    throw error;
  }
}
