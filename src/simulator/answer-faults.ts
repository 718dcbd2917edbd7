import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { Problem } from '../service/problem.ts';
import type { Route } from '../service/routes.ts';
import { listSubscriptionRoutes } from '../service/webhooks/subscription-routes.ts';
import type { FaultSwitches } from './faults.ts';
import { Random } from './users/random.ts';

/** Refusals that have nothing to do with the data: faults leave them as they are. */
const NOT_ADMITTED = [401, 403, 429];

/** Lets the data routes of a service, which must not listen yet, answer with the faults that are on. */
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
    if (method === 'GET' && random.chance(faults.get('truncate') ?? 0)) {
      const bytes = Buffer.from(payload);
      reply.header('Content-Length', bytes.length);
      return half(bytes);
    }
    return payload;
  });
}

/** Answers extensions, of data and of subscriptions, like a service that has never had them. */
function createRefuseExtension(routes: readonly Route[]): (method: string, url: string) => void {
  const all = [...routes.map(route => ({ ...route, method: 'get' })), ...listSubscriptionRoutes(false)];
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
function half(bytes: Buffer): Readable {
  async function* give() {
    yield bytes.subarray(0, Math.floor(bytes.length / 2));
    throw new Error('broken off on purpose');
  }
  return Readable.from(give(), { objectMode: false });
}
