import { findInstant } from '../../../schema/instant.ts';
import type { Resource } from '../../../schema/resource.ts';
import type { WebhookEvent } from '../../../schema/webhook.ts';
import type { ReleaseWhile } from '../../client/client.ts';
import type { EventOutcome } from '../../ledger/events.ts';
import type { DayRange } from '../../ledger/windows.ts';
import type { RequestClock } from '../../warehouse/request-clock.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { WriteResult } from '../../warehouse/write-result.ts';
import type { Pipeline } from '../pipeline.ts';
import { tokenGuard } from '../pipeline.ts';

/** What became of an event. */
export interface EventResult {
  outcome: EventOutcome;
  reason: string | null;
  /** How many documents left the warehouse. */
  removedRows?: number;
}

/** What a document's own route says that does not bring it: that it does not exist, or nothing that counts. */
export type RouteSaid = 'gone' | 'nothing';

/** How often an event was worked on in vain. */
export interface Tries {
  /** Its document was not there. */
  misses: number;
  /** It was absent from a complete read that counts. */
  absences: number;
  /** There was no clear answer, or it could not be stored. */
  failures: number;
  /** Its collection was refused. */
  refusals?: number;
  /** A look through long ranges was interrupted: all its days since this one were read, and lack the document. */
  readFrom?: string | undefined;
  /** What its own route has said in this look, which had to wait then: asked first each time, it would use up what the service allows. */
  routeSaid?: RouteSaid | undefined;
}

/** Where the work on an event stands: done, or to be taken up again after so many milliseconds. */
export type EventStep = { finished: EventResult } | { again: number; tries: Tries };

/** An accepted event. */
export interface AcceptedEvent {
  /** Microseconds; no two events share it. */
  receivedAt: number;
  event: WebhookEvent;
  tries: Tries;
  /** It has its outcome, and is only looked at once more: its document may not have been readable as it is now. */
  again?: boolean;
  /** Since when its account is what it was seen as. */
  accountSince?: number | undefined;
}

/** One whose document can be asked for. */
export interface EventInWork extends AcceptedEvent {
  userId: string;
  resource: Resource;
  token: string;
  /** The service says by the document's own route that it does not exist. */
  isGone?: boolean;
}

/** Events that speak of one document. */
export type SameDocument = readonly [EventInWork, ...EventInWork[]];

/** The ledger's row of an event. A job that runs twice replaces it. */
function eventEntry(
  { receivedAt, event, accountSince }: AcceptedEvent,
  userId: string | null,
  finished: EventResult,
  clock: Pick<RequestClock, 'next' | 'wall'>,
): LedgerEntry {
  return {
    table: 'sync.events',
    key: { received_at: receivedAt },
    row: {
      event_time: findInstant(event.event_time)?.micros ?? null,
      event_type: event.event_type,
      data_type: event.data_type,
      object_id: event.object_id,
      service_user_id: event.user_id,
      user_id: userId,
      outcome: finished.outcome,
      reason: finished.reason,
      committed_at: clock.next(),
      settled_at: clock.wall(),
      account_since: accountSince ?? null,
    },
  };
}

/** The ledger's rows of events; of one that is looked at once more only where that has changed something. */
const entriesOf = (warehouse: Warehouse, events: readonly AcceptedEvent[], userId: string | null, finished: EventResult): LedgerEntry[] =>
  events
    .filter(({ again }) => !again || finished.outcome === 'stored' || finished.outcome === 'removed')
    .map(event => eventEntry(event, userId, finished, warehouse.clock));

/** Notes events for which nothing is stored. */
export async function noteEvents(
  warehouse: Warehouse,
  events: readonly AcceptedEvent[],
  userId: string | null,
  finished: EventResult,
): Promise<EventResult> {
  await warehouse.record(entriesOf(warehouse, events, userId, finished));
  return finished;
}

/** An event that the service asks to wait leaves its place to those of other accounts, and comes back. */
export const giveWay: ReleaseWhile = () => undefined;

/** Of an event about somebody who was erased or removed, or has withdrawn: it is neither noted nor told of. */
export const FORGOTTEN: EventResult = { outcome: 'unknown_user', reason: null };

export const parked = (reason: string): EventResult => ({ outcome: 'parked', reason });

/** What the service answered about the document of events: itself, or that it is gone. */
export interface Answered {
  /** When the request was sent. */
  requestedAt: number;
  /** Undefined: it is gone. */
  document?: unknown;
  /** The days from which it is absent, where nothing else says that it is gone. */
  absentFrom?: DayRange | undefined;
}

/** Stores what the service answered about a document, and in the same transaction what became of the events that speak of it. */
export async function storeAnswer(
  { warehouse, tokens }: Pick<Pipeline, 'warehouse' | 'tokens'>,
  { requestedAt, document, absentFrom }: Answered,
  events: SameDocument,
): Promise<EventResult> {
  const { userId, resource, event, token } = events[0];
  const change = document === undefined ? { documents: [], removed: [event.object_id], absentFrom } : { documents: [document] };
  const counts = await warehouse.storeDocuments(
    { userId, resource, requestedAt, ...change },
    {
      lane: 'live',
      guard: tokenGuard(tokens, userId, token),
      ledger: stored => entriesOf(warehouse, events, userId, outcomeOf(stored)),
    },
  );
  return outcomeOf(counts);
}

function outcomeOf(counts: WriteResult): EventResult {
  if (counts.rejected) return parked('the document cannot be stored: sync.rejected has it and says why');
  if (counts.removed) return { outcome: 'removed', reason: null, removedRows: counts.changes.length };
  // Also when something newer is stored than what was asked for now.
  return { outcome: counts.stored ? 'stored' : 'unchanged', reason: null };
}

/** An event may come before the change that it speaks of can be read, and reports tell of minutes. */
const READABLE_AFTER_MS = 180_000;

/** Whether an event found its document as if nothing had happened, so soon that it may be worth another look. */
export function mayBeEarly({ event, receivedAt }: AcceptedEvent, { outcome }: EventResult, nowMs: number): boolean {
  const happenedAt = findInstant(event.event_time)?.micros ?? receivedAt;
  if (nowMs - happenedAt / 1000 > READABLE_AFTER_MS) return false;
  return event.event_type === 'delete'
    ? outcome === 'stored' || outcome === 'unchanged'
    : event.event_type === 'update' && outcome === 'unchanged';
}
