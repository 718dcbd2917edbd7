import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Told {
  id: string;
  callback_url: string;
  event_type: string;
  data_type: string;
  expiration_time: string;
}

export interface AskedForSubscription {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export interface Said {
  status: number;
  json?: unknown;
  text?: string;
  headers?: Record<string, string>;
}

export interface SubscriptionService {
  url: string;
  /** Every request, in order of arrival. */
  asked: AskedForSubscription[];
  /** What it has. */
  subscriptions: Told[];
  offersList: boolean;
  /** Of new and renewed ones: the end, as it is told. */
  expiration: () => string;
  /** Says something else than it would; `hang` says nothing at all. */
  instead: (asked: AskedForSubscription) => Said | 'hang' | undefined;
  close(): Promise<void>;
}

export const CLIENT = { clientId: 'client-7', clientSecret: 'not-for-logs-secret', verificationToken: 'not-for-logs-token' };

/** Section 4.4, as it is written there, by hand; the list is the usual extension. It verifies nothing. */
export async function startSubscriptionService(): Promise<SubscriptionService> {
  const server = createServer(async (request, response) => {
    const asked = { method: request.method!, path: request.url!, headers: request.headers, body: await text(request) };
    service.asked.push(asked);
    const said = service.instead(asked) ?? answer(asked);
    if (said === 'hang') return;
    const body = said.text ?? (said.json === undefined ? '' : JSON.stringify(said.json));
    response.writeHead(said.status, { 'content-type': 'application/json', ...said.headers }).end(body);
  });

  function answer({ method, path, headers, body }: AskedForSubscription): Said {
    if (headers['x-client-id'] !== CLIENT.clientId || headers['x-client-secret'] !== CLIENT.clientSecret) {
      return { status: 401, json: { detail: 'Unknown client.' } };
    }
    const { subscriptions } = service;
    if (path === '/v2/webhook/subscription') {
      if (method === 'GET')
        return service.offersList ? { status: 200, json: subscriptions } : { status: 404, json: { detail: 'Not Found' } };
      const given = JSON.parse(body) as Record<'callback_url' | 'verification_token' | 'event_type' | 'data_type', string>;
      const { callback_url, event_type, data_type } = given;
      if (given.verification_token !== CLIENT.verificationToken) return { status: 422, json: { detail: [] } };
      if (subscriptions.some(one => one.event_type === event_type && one.data_type === data_type)) {
        return { status: 409, json: { detail: 'There is one already.' } };
      }
      const made = { id: randomUUID(), callback_url, event_type, data_type, expiration_time: service.expiration() };
      subscriptions.push(made);
      return { status: 201, json: made };
    }
    const id = path.split('/').at(-1);
    const found = subscriptions.find(one => one.id === id);
    if (!found) return { status: 404, json: { detail: 'Not Found' } };
    if (method === 'DELETE') {
      service.subscriptions = subscriptions.filter(one => one.id !== id);
      return { status: 204, text: '' };
    }
    if (path.includes('/renew/')) found.expiration_time = service.expiration();
    else found.callback_url = (JSON.parse(body) as { callback_url: string }).callback_url;
    return { status: 200, json: found };
  }

  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const service: SubscriptionService = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    subscriptions: [],
    offersList: true,
    expiration: () => '2025-08-30T00:00:00+00:00',
    instead: () => undefined,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return service;
}

/** What a 422 says of one field of the body. */
export const invalid = (field: string, msg: string) => ({
  status: 422,
  json: { detail: [{ loc: ['body', field], msg, type: 'value_error' }] },
});
