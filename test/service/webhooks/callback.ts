import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
  at: number;
}

/** Answers one request; `received` holds it too. */
export type AnswerCallback = (response: ServerResponse, request: Received, received: readonly Received[]) => void;

export interface Callback {
  url: string;
  port: number;
  received: Received[];
  /** The events among them, parsed. */
  events(): unknown[];
  /** How many connections were ever made to it. */
  connections(): number;
  answer: AnswerCallback;
}

/** Echoes the challenge as 6.2 asks and takes every event. */
export const agree: AnswerCallback = (response, { method, url }) => {
  if (method === 'POST') return void response.writeHead(200).end();
  const challenge = new URL(url, 'http://callback').searchParams.get('challenge');
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ challenge }));
};

/** Agrees to be subscribed and answers events with a status. */
export const agreeThen =
  (status: number): AnswerCallback =>
  (response, request, received) =>
    request.method === 'POST' ? void response.writeHead(status).end() : agree(response, request, received);

/** A callback of somebody, on loopback until the test ends. */
export async function startCallback(answer: AnswerCallback = agree, host = '127.0.0.1'): Promise<Callback> {
  let connections = 0;
  const server = createServer(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const one = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body, at: Date.now() };
    callback.received.push(one);
    callback.answer(response, one, callback.received);
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const callback: Callback = {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received: [],
    events: () => callback.received.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body)),
    connections: () => connections,
    answer,
  };
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return callback;
}
