import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { listening } from './listen.ts';

/**
 * Tries a place without staying there, and says like `listening` why nobody can listen there now. For what must not be done when
 * listening would fail afterwards.
 */
export async function checkFree(address: { host: string; port: number }, choice: string): Promise<void> {
  const server = createServer();
  await listening(address, choice, once(server.listen(address), 'listening'));
  server.close();
  await once(server, 'close');
}

/** A port of this machine that nobody has, for what must be named before anything listens there. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
