import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { testPostgres } from './lake.ts';

/** How a way behaves: `cut` keeps what is connected, and lets nothing through; `refused` answers as a full S3 does, and ends it. */
export type Behaviour = 'open' | 'slow' | 'cut' | 'refused';

export interface Way {
  behaviour: Behaviour;
  /** Of a port. */
  port: number;
}

const SLOW_MS = 300;
const REFUSAL = 'HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** A way to a server that can be disturbed, at a free port or the path of a socket; gone after the test. */
export async function openWay(target: NetConnectOpts, at: { port: number; host: string } | { path: string }): Promise<Way> {
  const sockets = new Set<Socket>();
  const way: Way = { behaviour: 'open', port: 0 };
  const server = createServer(socket => {
    const inner = connect(target);
    for (const [from, to] of [
      [socket, inner],
      [inner, socket],
    ] as const) {
      sockets.add(from);
      from.on('data', bytes => {
        if (way.behaviour === 'refused') socket.end(REFUSAL);
        else if (way.behaviour === 'slow') setTimeout(() => to.writable && to.write(bytes), SLOW_MS);
        else if (way.behaviour === 'open') to.write(bytes);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  }).listen(at);
  await once(server, 'listening');
  const address = server.address();
  if (typeof address === 'object' && address) way.port = address.port;
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return way;
}

/** One to the Postgres of the tests, by a socket in a folder of its own. */
export async function openWayToPostgres(): Promise<{ way: Way; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-way-'));
  const name = '.s.PGSQL.5432';
  const way = await openWay({ path: join(testPostgres().folder, name) }, { path: join(folder, name) });
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { way, folder };
}
