import { z } from 'zod';
import { findInstant } from '../../schema/instant.ts';
import { AbortRegistry } from './abort-registry.ts';
import { parseBaseUrl } from './base-url.ts';
import { isVerdict, ServiceError } from './error.ts';
import { readResponse, type ServiceRequest } from './response.ts';
import { Transport, TransportError } from './transport.ts';

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

/**
 * The subscription endpoints (4.4) of one service, for one client. Each is asked once: when to ask again is the caller's affair. All throw
 * ServiceError, whose `field` says what a 422 is about.
 */
export class SubscriptionClient {
  readonly #clientSecret: string;
  readonly #callback: { callback_url: string; verification_token: string };
  readonly #headers: string[];
  readonly #secrets: string[];
  readonly #now: () => number;
  readonly #transport: Transport;
  readonly #aborts = new AbortRegistry();

  constructor(options: SubscriptionClientOptions) {
    const { clientId, clientSecret, callbackUrl, verificationToken, now = Date.now } = options;
    this.#clientSecret = clientSecret;
    this.#callback = { callback_url: callbackUrl, verification_token: verificationToken };
    this.#headers = ['x-client-id', clientId, 'x-client-secret', clientSecret];
    const query = new URL(callbackUrl).search.slice(1);
    // The service's sentences may repeat what it was sent.
    this.#secrets = [verificationToken, clientId, query, ...new URLSearchParams(query).values()].filter(({ length }) => length > 3);
    this.#now = now;
    this.#transport = new Transport(parseBaseUrl(options.baseUrl), {
      deadlineMs: options.deadlineMs ?? 30_000,
      maxResponseBytes: 1024 * 1024,
      connections: CONNECTIONS,
    });
  }

  /** Undefined where the service does not offer the list, which the specification does not show. */
  async list(): Promise<RemoteSubscription[] | undefined> {
    try {
      return await this.#send({ method: 'GET', route: ROUTE, path: ROUTE, accept: value => z.array(subscription).safeParse(value).data });
    } catch (error) {
      if (error instanceof ServiceError && isVerdict(error) && (error.status === 404 || error.status === 405)) return undefined;
      throw error;
    }
  }

  create(eventType: string, dataType: string): Promise<RemoteSubscription> {
    const body = { ...this.#callback, event_type: eventType, data_type: dataType };
    return this.#send({ method: 'POST', route: ROUTE, path: ROUTE, body, accept: acceptOne });
  }

  /** Sends its events to our callback from now on. */
  update(id: string): Promise<RemoteSubscription> {
    return this.#send({ method: 'PUT', route: `${ROUTE}/{id}`, path: `${ROUTE}/${id}`, body: this.#callback, accept: acceptOne });
  }

  renew(id: string): Promise<RemoteSubscription> {
    return this.#send({ method: 'PUT', route: `${ROUTE}/renew/{id}`, path: `${ROUTE}/renew/${id}`, accept: acceptOne });
  }

  /** Whether it was there. */
  async remove(id: string): Promise<boolean> {
    try {
      return await this.#send({ method: 'DELETE', route: `${ROUTE}/{id}`, path: `${ROUTE}/${id}`, accept: () => true });
    } catch (error) {
      if (error instanceof ServiceError && error.kind === 'not_found') return false;
      throw error;
    }
  }

  /** Stops what is under way and closes the connections. */
  async close(): Promise<void> {
    this.#aborts.stopAll();
    await this.#transport.close();
  }

  async #send<T>({ method, route, path, body, accept }: Request<T>): Promise<T> {
    const request: ServiceRequest<T> = {
      route: method === 'GET' ? route : `${method} ${route}`,
      path,
      token: this.#clientSecret,
      secrets: this.#secrets,
      accept,
      takesAnySuccess: method !== 'GET',
    };
    const read = this.#aborts.open();
    try {
      // Renew and DELETE have no body, and say the type all the same (4.4).
      const headers = method === 'GET' ? this.#headers : [...this.#headers, 'content-type', 'application/json'];
      const answer = await this.#transport.send({ method, path, headers, ...(body && { body: JSON.stringify(body) }) }, read.signal);
      // The shape of a DELETE's answer is not shown (4.4): empty, or JSON of any kind.
      const isEmpty = method === 'DELETE' && answer.body.trim() === '';
      const outcome = readResponse(request, isEmpty ? { ...answer, body: 'null' } : answer, this.#now());
      if ('error' in outcome) throw outcome.error;
      return outcome.value;
    } catch (error) {
      throw error instanceof TransportError ? new ServiceError(error.kind, request.route, error.message) : error;
    } finally {
      read.leave();
    }
  }
}

const acceptOne = (value: unknown): RemoteSubscription | undefined => subscription.safeParse(value).data;
