import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One scripted answer. Without any of it: 200 with an empty page; a status from 400 alone is the service's own refusal. */
export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  /** The body as JSON. */
  json?: unknown;
  /** The body as it is. */
  text?: string;
  /** Waits before it answers; a promise to be resolved by the test, so that nobody sleeps. */
  after?: Promise<unknown>;
  /**
   * reset: the connection breaks instead of an answer. truncate: it breaks in the middle of the body.
   * drip: a byte every 20 ms for ever. hang: no answer at all.
   */
  fault?: 'reset' | 'truncate' | 'drip' | 'hang';
}

export interface Asked {
  method: string;
  /** Without the query, as it was sent. */
  path: string;
  query: URLSearchParams;
  /** With its question mark, as it was sent. */
  rawQuery: string;
  token: string | undefined;
  headers: IncomingMessage['headers'];
  /** 1 for the first request the service was sent. */
  n: number;
}

/** What a route answers: always the same, one after the other (the last one for ever), or what a function says (undefined: as if there were no script). `nth`
 * counts this route's requests from 1. */
export type Script = Answer | readonly Answer[] | ((asked: Asked, nth: number) => Answer | undefined | Promise<Answer | undefined>);

export interface FaultService {
  url: string;
  /** Every request, in order of arrival. */
  asked: Asked[];
  /** The most requests that were ever under way together. */
  readonly mostInFlight: number;
  /** How many connections were ever opened. */
  readonly connections: number;
  /** Scripts a path; a last part `*` stands for any one part. Replaces what was scripted before. */
  on(path: string, script: Script): void;
  /** The n-th request from now on, whatever it asks for, gets this answer. */
  failNth(n: number, answer: Answer): void;
  close(): Promise<void>;
}

/**
 * Starts a service that answers by script. A path without a script gets 404, or, where `upstream` is the URL of another service, what
 * that one says.
 */
export async function startFaultService(
  scripts: Record<string, Script> = {},
  options: { upstream?: string; port?: number } = {},
): Promise<FaultService> {
  const routes = new Map(Object.entries(scripts));
  const counts = new Map<string, number>();
  const failures = new Map<number, Answer>();
  const asked: Asked[] = [];
  let inFlight = 0;
  let mostInFlight = 0;
  let connections = 0;

  async function answerFor(request: Asked): Promise<Answer | undefined> {
    const failure = failures.get(request.n);
    if (failure) return failure;
    const pattern = routes.has(request.path) ? request.path : request.path.replace(/[^/]*$/, '*');
    const script = routes.get(pattern);
    if (!script) return undefined;
    const nth = (counts.get(pattern) ?? 0) + 1;
    counts.set(pattern, nth);
    if (typeof script === 'function') return await script(request, nth);
    return 'at' in script ? script[Math.min(nth, script.length) - 1] : script;
  }

  const server = createServer((incoming, response) => {
    // A script says what time it is here, or nobody does.
    response.sendDate = false;
    inFlight += 1;
    mostInFlight = Math.max(mostInFlight, inFlight);
    response.on('close', () => {
      inFlight -= 1;
    });
    const [path = '', ...rest] = incoming.url!.split('?');
    const rawQuery = rest.length > 0 ? `?${rest.join('?')}` : '';
    const token = incoming.headers.authorization?.replace(/^Bearer /, '');
    const { method = 'GET', headers } = incoming;
    const request = { method, path, query: new URLSearchParams(rawQuery), rawQuery, token, headers, n: asked.length + 1 };
    asked.push(request);
    answerFor(request)
      .then(async answer => {
        await answer?.after;
        if (answer) send(response, answer);
        else if (options.upstream) pass(options.upstream, incoming, response);
        else send(response, { status: 404, json: { detail: 'Not Found' } });
      })
      .catch(error => response.destroy(error));
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>(resolve => server.listen(options.port ?? 0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    get mostInFlight() {
      return mostInFlight;
    },
    get connections() {
      return connections;
    },
    on(path, script) {
      routes.set(path, script);
      counts.delete(path);
    },
    failNth(n, answer) {
      failures.set(asked.length + n, answer);
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(response: ServerResponse, answer: Answer): void {
  const { status = 200, fault } = answer;
  const text = answer.text ?? JSON.stringify(answer.json === undefined ? defaultBody(status) : answer.json);
  const headers = { 'content-type': text.startsWith('<') ? 'text/html' : 'application/json', ...answer.headers };
  if (fault === 'hang') return;
  if (fault === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  if (fault === 'truncate') {
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) });
    response.write(text.slice(0, text.length / 2), () => response.destroy());
    return;
  }
  if (fault === 'drip') {
    response.writeHead(status, headers);
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
    return;
  }
  response.writeHead(status, headers).end(text);
}

function defaultBody(status: number): unknown {
  if (status < 400) return { data: [], next_token: null };
  return { detail: status === 422 ? [{ loc: ['query'], msg: 'refused', type: 'simulated' }] : 'Refused.' };
}

function pass(upstream: string, incoming: IncomingMessage, response: ServerResponse): void {
  const outgoing = forward(new URL(incoming.url!, upstream), { method: incoming.method!, headers: incoming.headers }, answer => {
    const { date: _, ...headers } = answer.headers;
    response.writeHead(answer.statusCode!, headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  incoming.pipe(outgoing);
}
