import type { Server } from 'node:http';

/** What strangers may take of the descriptors that warehouse, queue and our own requests need too. */
export const MOST_CONNECTIONS = 500;

/** Bounds how many connections a server has. When they are all taken, those in which nothing is under way give way to newcomers. */
export function limitConnections(server: Server, most = MOST_CONNECTIONS): void {
  server.maxConnections = most;
  server.on('drop', () => server.closeIdleConnections());
}
