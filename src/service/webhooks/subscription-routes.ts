import type { FastifyInstance, FastifyReply } from 'fastify';
import type { WebhookSubscription } from '../../../schema/webhook.ts';
import { Problem } from '../problem.ts';
import { CallbackUnanswered } from './call-callback.ts';
import { CallbackRefused } from './callback-guard.ts';
import { newSubscription, parseBody, subscriptionUpdate } from './subscription-bodies.ts';
import type { StoredSubscription, Verify } from './subscriptions.ts';
import type { Webhooks } from './webhooks.ts';

const SUBSCRIPTIONS = '/v2/webhook/subscription';

export interface SubscriptionRoute {
  method: 'get' | 'post' | 'put' | 'delete';
  path: string;
  kind: 'list' | 'create' | 'read' | 'update' | 'renew' | 'cancel';
  /** Not listed in 4.4. */
  extension: boolean;
}

const ROUTES: readonly SubscriptionRoute[] = [
  { method: 'get', path: SUBSCRIPTIONS, kind: 'list', extension: true },
  { method: 'post', path: SUBSCRIPTIONS, kind: 'create', extension: false },
  { method: 'get', path: `${SUBSCRIPTIONS}/{id}`, kind: 'read', extension: true },
  { method: 'put', path: `${SUBSCRIPTIONS}/{id}`, kind: 'update', extension: false },
  { method: 'delete', path: `${SUBSCRIPTIONS}/{id}`, kind: 'cancel', extension: false },
  { method: 'put', path: `${SUBSCRIPTIONS}/renew/{id}`, kind: 'renew', extension: false },
];

/** The routes of section 4.4, and the extensions unless there are to be none. */
export function listSubscriptionRoutes(specificationOnly: boolean): readonly SubscriptionRoute[] {
  return ROUTES.filter(({ extension }) => !(specificationOnly && extension));
}

interface SubscriptionRequest {
  headers: Record<string, unknown> & { 'content-type'?: string | undefined };
  params: { id?: string };
  body: unknown;
}

/** Serves section 4.4: the subscriptions of the client that x-client-id and x-client-secret name. */
export function serveSubscriptions(
  service: FastifyInstance,
  webhooks: Webhooks,
  routes: readonly SubscriptionRoute[],
  answersAsSpecified: () => boolean,
): void {
  service.register(async scope => {
    // As text, whatever type it says to be: DELETE and renew come with a Content-Type and without a body (4.4).
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    // Before a byte of the body is read.
    scope.addHook('onRequest', async ({ headers }) => {
      if (!webhooks.client.isAuthentic(headers['x-client-id'], headers['x-client-secret']))
        throw new Problem(401, 'Client is unknown: send the headers x-client-id and x-client-secret.');
    });
    for (const { method, path, kind } of routes) {
      scope[method]<{ Params: { id?: string } }>(path.replace(/\{(\w+)\}/g, ':$1'), async (request, reply) => {
        const body = await answer(webhooks, kind, request, reply).catch((error: unknown) => {
          throw answersAsSpecified() ? asSpecified(error) : error;
        });
        reply.header('Cache-Control', 'no-store');
        return body === undefined ? reply.send() : reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
      });
    }
  });
}

async function answer(
  { client, subscriptions, verify }: Webhooks,
  kind: SubscriptionRoute['kind'],
  { headers, params: { id = '' }, body }: SubscriptionRequest,
  reply: FastifyReply,
): Promise<unknown> {
  switch (kind) {
    case 'list':
      return subscriptions.list(client.id).map(onTheWire);
    case 'read':
      return onTheWire(subscriptions.get(client.id, id));
    case 'create': {
      const { verification_token, ...wanted } = parseBody(newSubscription, headers['content-type'], body);
      reply.code(201);
      return onTheWire(await subscriptions.create(client.id, wanted, verifying(verify, verification_token)));
    }
    case 'update': {
      // An unknown subscription is unknown whatever is asked of it.
      subscriptions.get(client.id, id);
      const { verification_token, ...given } = parseBody(subscriptionUpdate, headers['content-type'], body);
      const change = Object.fromEntries(Object.entries(given).filter(([, value]) => value != null));
      return onTheWire(await subscriptions.update(client.id, id, change, verifying(verify, verification_token)));
    }
    case 'renew':
      return onTheWire(subscriptions.renew(client.id, id));
    case 'cancel':
      subscriptions.cancel(client.id, id);
      reply.code(204);
      return undefined;
  }
}

/** What a callback does not take is a validation error. */
function verifying(verify: Webhooks['verify'], token: string): Verify {
  return async callbackUrl => {
    try {
      await verify(callbackUrl, token);
    } catch (error) {
      if (!(error instanceof CallbackRefused || error instanceof CallbackUnanswered)) throw error;
      throw new Problem(422, [{ loc: ['body', 'callback_url'], msg: `The callback was not taken: ${error.message}`, type: 'callback' }]);
    }
  };
}

function onTheWire({ id, callback_url, event_type, data_type, expiration_time }: StoredSubscription): WebhookSubscription {
  return { id, callback_url, event_type, data_type, expiration_time };
}

/** Section 4.4 lists no conflict: there it is a validation error, of the body as a whole. */
function asSpecified(error: unknown): unknown {
  if (!(error instanceof Problem) || error.status !== 409) return error;
  return new Problem(422, [{ loc: ['body'], msg: String(error.detail), type: 'already_exists' }]);
}
