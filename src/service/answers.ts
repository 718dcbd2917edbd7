import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

/** Where the service writes what it does. Neither tokens nor health data nor query strings are ever given to it. */
export interface ServiceLog {
  debug(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** Answers anything thrown as `{detail}`. What is no problem of the client is 500 and says nothing of its cause. */
export function createAnswerError(log: ServiceLog | undefined) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    if (error instanceof Problem) {
      for (const [name, value] of Object.entries(error.headers)) reply.header(name, value);
      sendDetail(reply, error.status, error.detail);
      return;
    }
    const status = statusOf(error);
    if (status >= 500) log?.error({ method: request.method, route: request.routeOptions?.url, ...traceOf(error) }, 'failed');
    sendDetail(reply, status, STATUS_CODES[status] ?? 'Bad Request');
  };
}

/** Refuses what no route takes before anything is read of its body: unknown routes, other methods, large bodies. */
export function createRefuseUnroutable(routes: readonly { method: string; path: string }[], bodyLimit: number) {
  const known = [...new Set(routes.map(({ path }) => path))].map(path => ({
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]*')}$`),
    allow: routes.flatMap(route => (route.path !== path ? [] : route.method === 'get' ? ['GET', 'HEAD'] : [route.method.toUpperCase()])),
  }));
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { 'content-length': length = 0, 'transfer-encoding': encoding } = request.headers;
    // An unread body would keep the connection busy until it has arrived.
    if (Number(length) > 0 || encoding) reply.header('Connection', 'close');
    if (request.is404) {
      const path = request.url.split('?', 1)[0] ?? '';
      const place = known.find(({ pattern }) => pattern.test(path));
      if (place) throw new Problem(405, 'Method Not Allowed', { Allow: place.allow.join(', ') });
      throw new Problem(404, 'Not Found');
    }
    if (Number(length) > bodyLimit) throw new Problem(413, 'Payload Too Large');
  };
}

const BROKEN: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** Answers what never became a request: headers that are too long, too slow, or no HTTP. */
export function answerBrokenConnection(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) return;
  const status = BROKEN[error.code ?? ''] ?? 400;
  const body = JSON.stringify({ detail: STATUS_CODES[status] });
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, 'Content-Type: application/json; charset=utf-8', 'Connection: close'];
  socket.end(`${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function sendDetail(reply: FastifyReply, status: number, detail: Problem['detail']): void {
  void reply.code(status).header('Cache-Control', 'no-store').type('application/json; charset=utf-8').send(JSON.stringify({ detail }));
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  const ours = (status >= 400 && status < 500) || status === 503;
  return ours ? status : 500;
}

/** Where an error arose, without its message: that may quote the data. */
function traceOf(error: unknown): object {
  if (!(error instanceof Error)) return { error: typeof error };
  const frames = (error.stack ?? '').split('\n').filter(line => line.startsWith('    at '));
  return { error: error.name, code: 'code' in error ? error.code : undefined, frames };
}
