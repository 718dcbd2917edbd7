import type { Resource } from '../../../schema/resource.ts';
import type { Client } from '../../client/client.ts';
import { ServiceError } from '../../client/error.ts';
import type { Pipeline } from '../pipeline.ts';
import { type EventInWork, type EventResult, giveWay, noteEvents, parked, storeAnswer } from './event-outcome.ts';

/** What a fetch came to: the event is settled, or its document is not there. */
export type Fetched = { finished: EventResult } | { missing: Missing };

export interface Missing {
  /** Whether the service says that the document does not exist: not every 404 does. */
  isGone: boolean;
  /** Whether the service may not have the route at all. */
  isRouteUnknown: boolean;
}

/** Where a 404 means that the document is gone: what 4.1 lists, and what has answered before. */
export const hasTrustedRoute = (client: Pick<Client, 'hasDocumentRoute'>, resource: Resource): boolean =>
  resource.specified.includes('document') || client.hasDocumentRoute(resource);

/**
 * Fetches the documents of events. Events of one document and token share a fetch for as long as it has not been sent: what is
 * announced later may not be in its answer.
 */
export function createDocumentFetches(
  pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'tokens'>,
): (event: EventInWork) => Promise<Fetched> {
  const { client, warehouse } = pipeline;
  type Fetch = { events: EventInWork[]; done: Promise<(event: EventInWork) => Fetched> };
  const unsent = new Map<string, Fetch>();

  async function fetch(events: readonly EventInWork[], close: () => void): Promise<(event: EventInWork) => Fetched> {
    const { resource, event, token } = events[0]!;
    const { clock } = warehouse;
    // The moment of the last attempt: a 404 has none of its own, and removes only what was stored before it was asked for.
    let sentAt: number | undefined;
    const onSend = () => {
      close();
      if (sentAt !== undefined) clock.release(sentAt);
      sentAt = clock.lease();
    };
    try {
      const answer = await client.document(resource, event.object_id, { token, lane: 'live', releaseWhile: giveWay, onSend });
      try {
        const finished = await storeFound(answer.document, answer.requestedAt, events);
        return () => ({ finished });
      } finally {
        answer.done();
      }
    } catch (error) {
      const missing = findMissing(error, hasTrustedRoute(client, resource));
      if (!missing) throw error;
      const deletes = missing.isGone ? events.filter(isDelete) : [];
      if (!deletes.length || sentAt === undefined) return () => ({ missing });
      const finished = await storeAnswer(pipeline, { requestedAt: sentAt }, deletes);
      return event => (isDelete(event) ? { finished } : { missing });
    } finally {
      close();
      if (sentAt !== undefined) clock.release(sentAt);
    }
  }

  function storeFound(document: unknown, requestedAt: number, events: readonly EventInWork[]): Promise<EventResult> {
    const { userId, event } = events[0]!;
    if (isNamed(document, event.object_id)) return storeAnswer(pipeline, { requestedAt, document }, events);
    return noteEvents(warehouse, events, userId, parked('the service answered with a document of another identifier'));
  }

  return async event => {
    const key = `${event.userId}\n${event.resource.name}\n${event.event.object_id}\n${event.token}`;
    let open = unsent.get(key);
    if (open) open.events.push(event);
    else {
      const events = [event];
      const close = () => {
        if (unsent.get(key)?.events === events) unsent.delete(key);
      };
      open = { events, done: fetch(events, close) };
      unsent.set(key, open);
    }
    return (await open.done)(event);
  };
}

const isDelete = ({ event }: EventInWork) => event.event_type === 'delete';

/** Whether an answer is the document of this identifier. */
export const isNamed = (document: unknown, id: string) =>
  typeof document === 'object' && document !== null && 'id' in document && document.id === id;

function findMissing(error: unknown, isTrusted: boolean): Missing | undefined {
  if (!(error instanceof ServiceError)) return undefined;
  if (error.kind === 'not_found') return { isGone: isTrusted, isRouteUnknown: !isTrusted };
  // Some services say so of a document that they have announced a moment before.
  if (error.kind === 'invalid_request' && error.status === 400) return { isGone: false, isRouteUnknown: false };
  return undefined;
}
