import { z } from 'zod';
import { findInstant } from '../../schema/instant.ts';
import { createAbortRegistry } from './abort-registry.ts';
import { parseBaseUrl } from './base-url.ts';
import { isVerdict, ServiceError } from './error.ts';
import { readResponse, type ServiceRequest } from './response.ts';
import { createTransport, TransportError } from './transport.ts';

export interface SubscriptionClientOptions {
  /** RINGNECK_SERVICE_URL; may have a path. */
  baseUrl: string;
  clientId: string;
  clientSecret: string;
  callbackUrl: string;
  verificationToken: string;
  /** For one request. A POST is answered after the service has verified the callback, which alone may take 10 s. */
  deadlineMs?: number;
  /** Milliseconds since the epoch. */
  now?: () => number;
}

/** A subscription as the service tells it (2.15). */
export interface RemoteSubscription {
  id: string;
  callbackUrl: string;
  /** create, update, delete. */
  eventType: string;
  dataType: string;
  /** Microseconds since the epoch; null where the service does not say, or not readably. */
  expiresAt: number | null;
}

/**
 * The subscription endpoints (4.4) of one service, for one client. Each is asked once: when to ask again is the caller's affair. All throw
 * ServiceError, whose `field` says what a 422 is about.
 */
export interface SubscriptionClient {
  /** Undefined where the service does not offer the list, which the specification does not show. */
  list(): Promise<RemoteSubscription[] | undefined>;
  create(eventType: string, dataType: string): Promise<RemoteSubscription>;
  /** Sends its events to our callback from now on. */
  update(id: string): Promise<RemoteSubscription>;
  renew(id: string): Promise<RemoteSubscription>;
  /** Whether it was there. */
  remove(id: string): Promise<boolean>;
  /** Stops what is under way and closes the connections. */
  close(): Promise<void>;
}

const ROUTE = '/v2/webhook/subscription';
const CONNECTIONS = 8;

// Tolerant, for we only read: but an id becomes part of a path, and must not name another one.
const subscription = z
  .object({
    id: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/),
    callback_url: z.string(),
    event_type: z.string(),
    data_type: z.string(),
    expiration_time: z.unknown(),
  })
  .transform(
    ({ id, callback_url, event_type, data_type, expiration_time }): RemoteSubscription => ({
      id,
      callbackUrl: callback_url,
      eventType: event_type,
      dataType: data_type,
      expiresAt: typeof expiration_time === 'string' ? (findInstant(expiration_time)?.micros ?? null) : null,
    }),
  );

interface Request<T> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As errors name it. */
  route: string;
  path: string;
  body?: object;
  accept: (value: unknown) => T | undefined;
}

/** Makes the client of the subscription endpoints. */
export function createSubscriptionClient(options: SubscriptionClientOptions): SubscriptionClient {
  const { clientId, clientSecret, callbackUrl, verificationToken, now = Date.now } = options;
  const transport = createTransport(parseBaseUrl(options.baseUrl), {
    deadlineMs: options.deadlineMs ?? 30_000,
    maxResponseBytes: 1024 * 1024,
    connections: CONNECTIONS,
  });
  const aborts = createAbortRegistry();
  const query = new URL(callbackUrl).search.slice(1);
  // The service's sentences may repeat what it was sent.
  const secrets = [verificationToken, clientId, query, ...new URLSearchParams(query).values()].filter(({ length }) => length > 3);
  const headers = ['x-client-id', clientId, 'x-client-secret', clientSecret];

  async function send<T>({ method, route, path, body, accept }: Request<T>): Promise<T> {
    const request: ServiceRequest<T> = {
      route: method === 'GET' ? route : `${method} ${route}`,
      path,
      token: clientSecret,
      secrets,
      accept,
      takesAnySuccess: method !== 'GET',
    };
    const read = aborts.open();
    try {
      const message = {
        method,
        path,
        // Renew and DELETE have no body, and say the type all the same (4.4).
        headers: method === 'GET' ? headers : [...headers, 'content-type', 'application/json'],
        ...(body ? { body: JSON.stringify(body) } : {}),
      };
      const answer = await transport.send(message, read.signal);
      // The shape of a DELETE's answer is not shown (4.4): empty, or JSON of any kind.
      const isEmpty = method === 'DELETE' && answer.body.trim() === '';
      const outcome = readResponse(request, isEmpty ? { ...answer, body: 'null' } : answer, now());
      if ('error' in outcome) throw outcome.error;
      return outcome.value;
    } catch (error) {
      throw error instanceof TransportError ? new ServiceError(error.kind, request.route, error.message) : error;
    } finally {
      read.leave();
    }
  }

  return {
    async list() {
      try {
        return await send({ method: 'GET', route: ROUTE, path: ROUTE, accept: value => z.array(subscription).safeParse(value).data });
      } catch (error) {
        if (error instanceof ServiceError && isVerdict(error) && (error.status === 404 || error.status === 405)) return undefined;
        throw error;
      }
    },
    create: (eventType, dataType) =>
      send({
        method: 'POST',
        route: ROUTE,
        path: ROUTE,
        body: { callback_url: callbackUrl, verification_token: verificationToken, event_type: eventType, data_type: dataType },
        accept: acceptOne,
      }),
    update: id =>
      send({
        method: 'PUT',
        route: `${ROUTE}/{id}`,
        path: `${ROUTE}/${id}`,
        body: { verification_token: verificationToken, callback_url: callbackUrl },
        accept: acceptOne,
      }),
    renew: id => send({ method: 'PUT', route: `${ROUTE}/renew/{id}`, path: `${ROUTE}/renew/${id}`, accept: acceptOne }),
    async remove(id) {
      try {
        return await send({ method: 'DELETE', route: `${ROUTE}/{id}`, path: `${ROUTE}/${id}`, accept: () => true });
      } catch (error) {
        if (error instanceof ServiceError && error.kind === 'not_found') return false;
        throw error;
      }
    },
    async close() {
      aborts.stopAll();
      await transport.close();
    },
  };
}

const acceptOne = (value: unknown): RemoteSubscription | undefined => subscription.safeParse(value).data;
