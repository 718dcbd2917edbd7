import type { Resource } from '../../../schema/resource.ts';
import type { Client, DocumentAnswer } from '../../client/client.ts';
import { ServiceError } from '../../client/error.ts';
import type { Pipeline } from '../pipeline.ts';
import { type EventInWork, type EventResult, giveWay, noteEvents, parked, type SameDocument, storeAnswer } from './event-outcome.ts';

/** What a fetch came to: the event has its outcome, or its document is not there. */
export type Fetched = { finished: EventResult } | { missing: NotFound };

export interface NotFound {
  /** Whether the service says that the document does not exist: not every 404 does. */
  isGone: boolean;
  /** Whether the service may not have the route at all. */
  isRouteUnknown: boolean;
}

/** Where a 404 means that the document is gone: what 4.1 lists, and what has answered before. */
export const hasTrustedRoute = (client: Pick<Client, 'hasDocumentRoute'>, resource: Resource): boolean =>
  resource.specified.includes('document') || client.hasDocumentRoute(resource);

/** What a fetch came to for each of its events. */
type FetchedFor = (event: EventInWork) => Fetched;

interface Fetch {
  events: [EventInWork, ...EventInWork[]];
  done: Promise<FetchedFor>;
}

/**
 * Fetches the documents of events. Events of one document and token share a fetch for as long as it has not been sent: what is
 * announced later may not be in its answer.
 */
export class DocumentFetches {
  readonly #pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'tokens'>;
  readonly #unsent = new Map<string, Fetch>();

  constructor(pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'tokens'>) {
    this.#pipeline = pipeline;
  }

  async fetch(event: EventInWork): Promise<Fetched> {
    const key = `${event.userId}\n${event.resource.name}\n${event.event.object_id}\n${event.token}`;
    const unsent = this.#unsent.get(key);
    unsent?.events.push(event);
    return (await (unsent ?? this.#begin(key, event)).done)(event);
  }

  #begin(key: string, event: EventInWork): Fetch {
    const events: Fetch['events'] = [event];
    const close = () => {
      if (this.#unsent.get(key)?.events === events) this.#unsent.delete(key);
    };
    const begun = { events, done: this.#send(events, close).finally(close) };
    this.#unsent.set(key, begun);
    return begun;
  }

  #send(events: SameDocument, onSent: () => void): Promise<FetchedFor> {
    const { client, warehouse } = this.#pipeline;
    const [{ resource, event, token }] = events;
    // The moment of the last attempt: a 404 has none of its own, and removes only what was stored before it was asked for.
    return warehouse.clock.withRequest(async request => {
      const onSend = () => {
        onSent();
        request.send();
      };
      try {
        const query = { token, lane: 'live', releaseWhile: giveWay, onSend } as const;
        const finished = await client.document(resource, event.object_id, query, answer => this.#storeFound(answer, events));
        return () => ({ finished });
      } catch (error) {
        const missing = findMissing(error, hasTrustedRoute(client, resource));
        if (!missing) throw error;
        const [first, ...others] = missing.isGone ? events.filter(isDelete) : [];
        if (!first || request.sentAt === undefined) return () => ({ missing });
        const finished = await storeAnswer(this.#pipeline, { requestedAt: request.sentAt }, [first, ...others]);
        return one => (isDelete(one) ? { finished } : { missing });
      }
    });
  }

  #storeFound({ document, requestedAt }: DocumentAnswer, events: SameDocument): Promise<EventResult> {
    const [{ userId, event }] = events;
    if (isNamed(document, event.object_id)) return storeAnswer(this.#pipeline, { requestedAt, document }, events);
    const reason = 'the service answered with a document of another identifier';
    return noteEvents(this.#pipeline.warehouse, events, userId, parked(reason));
  }
}

const isDelete = ({ event }: EventInWork) => event.event_type === 'delete';

/** Whether an answer is the document of this identifier. */
export const isNamed = (document: unknown, id: string) =>
  typeof document === 'object' && document !== null && 'id' in document && document.id === id;

function findMissing(error: unknown, isTrusted: boolean): NotFound | undefined {
  if (!(error instanceof ServiceError)) return undefined;
  if (error.kind === 'not_found') return { isGone: isTrusted, isRouteUnknown: !isTrusted };
  // Some services say so of a document that they have announced a moment before.
  if (error.kind === 'invalid_request' && error.status === 400) return { isGone: false, isRouteUnknown: false };
  return undefined;
}
