import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { Random } from '../people/random.ts';
import { Problem } from '../problem.ts';
import type { Route } from '../routes.ts';
import type { FaultSwitches } from './faults.ts';

/** Refusals that have nothing to do with the data: faults leave them as they are. */
const NOT_ADMITTED = [401, 403, 429];

/** Lets the data routes of a service, which must not listen yet, answer with the faults that are on. */
export function addAnswerFaults(service: FastifyInstance, routes: readonly Route[], faults: FaultSwitches, seed: number): void {
  const byUrl = new Map(routes.map(route => [route.path.replace(/\{(\w+)\}/g, ':$1'), route]));
  const random = new Random([seed, 'answers']);

  service.addHook('onRequest', async ({ routeOptions }) => {
    const route = byUrl.get(routeOptions.url ?? '');
    if (route?.extension && faults.get('specification-only')) throw new Problem(404, 'Not Found');
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
