import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Problem } from '../service/problem.ts';
import type { Route } from '../service/routes.ts';
import { SIGN_IN_ROUTES, TOKEN_PATH } from '../service/sign-in/sign-in-routes.ts';
import { listSubscriptionRoutes } from '../service/webhooks/subscription-routes.ts';
import type { FaultSwitches } from './faults.ts';
import { Random } from './users/random.ts';

/** Refusals that have nothing to do with the data: faults leave them as they are. */
const NOT_ADMITTED = [401, 403, 429];

/** Lets the data routes and the token route of a service, which must not listen yet, answer with the faults that are on. */
export function addAnswerFaults(service: FastifyInstance, routes: readonly Route[], faults: FaultSwitches, seed: number): void {
  const byUrl = new Map(routes.map(route => [fastifyPath(route.path), route]));
  const refuseExtension = createRefuseExtension(routes);
  const random = new Random([seed, 'answers']);

  service.addHook('onRequest', async ({ method, routeOptions }) => {
    if (faults.get('specification-only')) refuseExtension(method, routeOptions.url ?? '');
  });

  service.addHook('onSend', async ({ method, routeOptions }, reply, payload) => {
    const route = byUrl.get(routeOptions.url ?? '');
    if (!route || NOT_ADMITTED.includes(reply.statusCode) || typeof payload !== 'string') return payload;
    const slow = faults.get('slow');
    if (slow) await sleep(slow, undefined, { ref: false });
    const outage = faults.get('status');
    if (outage && random.chance(outage.rate)) {
      reply.code(outage.status).header('Cache-Control', 'no-store');
      if (outage.status === 429) reply.header('Retry-After', '1');
      return JSON.stringify({ detail: STATUS_CODES[outage.status] ?? 'Out of order' });
    }
    if (faults.get('empty')) {
      reply.code(200);
      return emptyAnswer(route);
    }
    return method === 'GET' && random.chance(faults.get('truncate') ?? 0) ? half(reply, payload) : payload;
  });
  addTokenFaults(service, faults, seed);
}

/** By then the tokens are changed: the client cannot know whether they are. */
function addTokenFaults(service: FastifyInstance, faults: FaultSwitches, seed: number): void {
  const random = new Random([seed, 'tokens']);
  service.addHook('onSend', async ({ routeOptions }, reply, payload) => {
    if (routeOptions.url !== TOKEN_PATH || reply.statusCode !== 200 || typeof payload !== 'string') return payload;
    const slow = faults.get('token-slow');
    if (slow) await sleep(slow, undefined, { ref: false });
    if (random.chance(faults.get('token-error') ?? 0)) {
      reply.code(500);
      return JSON.stringify({ detail: STATUS_CODES[500] });
    }
    return random.chance(faults.get('token-truncate') ?? 0) ? half(reply, payload) : payload;
  });
}

/** Answers extensions, of data, of subscriptions and of the sign-in, like a service that has never had them. */
function createRefuseExtension(routes: readonly Route[]): (method: string, url: string) => void {
  const all = [...routes.map(route => ({ ...route, method: 'get' })), ...listSubscriptionRoutes(false), ...SIGN_IN_ROUTES];
  const listed = all.map(({ method, path, extension }) => ({ method: method.toUpperCase(), url: fastifyPath(path), extension }));
  return (method, url) => {
    const here = listed.filter(route => route.url === url);
    const asked = method === 'HEAD' ? 'GET' : method;
    if (!here.some(route => route.extension && route.method === asked)) return;
    const others = here.flatMap(route => (route.extension ? [] : [route.method]));
    throw others.length > 0 ? new Problem(405, 'Method Not Allowed', { Allow: others.join(', ') }) : new Problem(404, 'Not Found');
  };
}

function fastifyPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

function emptyAnswer(route: Route): string {
  if (route.kind === 'heart_rate') return '{"data":[],"next_token":null}';
  if (route.kind === 'collection') return route.paged ? '{"data":[],"next_token":null}' : '{"data":[]}';
  return '[]';
}

/** Breaks off, and the connection with it. */
function half(reply: FastifyReply, text: string): Readable {
  const bytes = Buffer.from(text);
  reply.header('Content-Length', bytes.length);
  async function* give() {
    yield bytes.subarray(0, Math.floor(bytes.length / 2));
    throw new Error('broken off on purpose');
  }
  return Readable.from(give(), { objectMode: false });
}
