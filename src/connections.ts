import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** What strangers may take of the descriptors that warehouse, queue and our own requests need too. */
export const MOST_CONNECTIONS = 500;
/** So many make room when one newcomer was turned away. */
const AT_ONCE = 50;

/** Bounds how many connections a server has. When they are all taken, those in which nothing is under way give way to newcomers. */
export function limitConnections(server: Server, most = MOST_CONNECTIONS): void {
  server.maxConnections = most;
  // Node calls a connection idle only once it has had an answer: one that never says a word would keep its place.
  const unused = new Set<Socket>();
  server.on('connection', socket => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.prependListener('request', ({ socket }, response) => {
    unused.delete(socket);
    response.once('close', () => {
      if (!socket.destroyed) unused.add(socket);
    });
  });
  server.on('drop', () => {
    let places = AT_ONCE;
    // The set keeps its order: the oldest go first.
    for (const socket of unused) {
      if (places-- === 0) break;
      unused.delete(socket);
      socket.destroy();
    }
  });
}
