import { IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';

/** What strangers may take of the descriptors that warehouse, queue and our own requests need too. */
export const MOST_CONNECTIONS = 500;
/** So many make room when one newcomer was turned away. */
const AT_ONCE = 50;
/** Requests that may come on a connection before the first of them is answered: hardly any client sends the next so early. */
const MOST_PIPELINED = 16;

/**
 * Bounds how many connections a server has. When they are all taken, those in which nothing is under way give way to newcomers, and then
 * those that have begun a request and not ended it.
 */
export function limitConnections(server: Server, most = MOST_CONNECTIONS): void {
  server.maxConnections = most;
  // Node calls a connection idle only once it has had an answer: one that never says a word would keep its place.
  const unused = new Set<Socket>();
  const asked = new Map<Socket, IncomingMessage>();
  const pipelined = new Map<Socket, number>();
  server.on('connection', socket => {
    unused.add(socket);
    socket.once('close', () => {
      unused.delete(socket);
      asked.delete(socket);
      pipelined.delete(socket);
    });
  });
  skipDestroyed(server);
  server.prependListener('request', (request, response) => {
    const { socket } = request;
    const count = (pipelined.get(socket) ?? 0) + 1;
    if (count > MOST_PIPELINED) return void socket.destroy();
    pipelined.set(socket, count);
    unused.delete(socket);
    asked.set(socket, request);
    response.once('close', () => {
      pipelined.set(socket, (pipelined.get(socket) ?? 1) - 1);
      // A next request may have come on it already.
      if (asked.get(socket) === request) asked.delete(socket);
      if (!socket.destroyed) unused.add(socket);
    });
  });
  server.on('drop', () => {
    const unfinished = [...asked].filter(([, { complete }]) => !complete).map(([socket]) => socket);
    // Both keep their order: the oldest go first.
    for (const socket of [...unused, ...unfinished].slice(0, AT_ONCE)) socket.destroy();
  });
}

/** Node hands over all requests of what was read at once, also once their connection is destroyed: thousands, of one that does not read. */
function skipDestroyed(server: Server): void {
  const { emit } = server;
  server.emit = (event: string | symbol, ...given: unknown[]) => {
    const [request] = given;
    if (event === 'request' && request instanceof IncomingMessage && request.socket.destroyed) return true;
    return Reflect.apply(emit, server, [event, ...given]);
  };
}
