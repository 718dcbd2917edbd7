import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';

/** Whether this machine has a Redis. DEMAND_TOOLS=1 turns its absence into a failure instead of skipped tests. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
if (!hasRedis && process.env.DEMAND_TOOLS === '1') throw new Error('redis-server is not on the PATH, and DEMAND_TOOLS=1 demands it');

export interface RedisServer {
  url: string;
  port: number;
  start(): Promise<void>;
  /** As kill -9 does. */
  kill(): Promise<void>;
  /** As one that comes back without what it held. */
  empty(): Promise<void>;
  /** As when the time of every lock has passed: what a killed worker had taken runs again at the next start. No worker may be at work. */
  expireLocks(): Promise<void>;
  remove(): Promise<void>;
}

/** A Redis of our own on a free port, as we ask production to run it; `settings` come last and win. */
export async function startRedis(...settings: string[]): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const server: RedisServer = {
    url: `redis://127.0.0.1:${port}`,
    port,
    start: async () => {
      const safe = [
        '--appendonly',
        'yes',
        '--appendfsync',
        'always',
        '--maxmemory-policy',
        'noeviction',
        '--save',
        '',
        '--repl-diskless-sync-delay',
        '0',
      ];
      child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...safe, ...settings], {
        stdio: 'ignore',
      });
      await listening(port);
    },
    kill: async () => {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
    empty: async () => {
      const client = new Redis(server.url);
      await client.flushall();
      await client.quit();
    },
    expireLocks: async () => {
      const client = new Redis(server.url);
      for (const active of await client.keys('*:active')) {
        const queue = active.slice(0, -'active'.length);
        const ids = await client.lrange(active, 0, -1);
        if (ids.length === 0) continue;
        // BullMQ looks twice: it marks what is active, and takes up what was marked and has no lock.
        await client.del(`${queue}stalled-check`, ...ids.map(id => `${queue}${id}:lock`));
        await client.sadd(`${queue}stalled`, ...ids);
      }
      await client.quit();
    },
    remove: async () => {
      await server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

/**
 * For the tests of a file whose processes have queues that are not the point: settings of a database of its own in one Redis, where there is
 * one. A process starts a second of CPU sooner with it than with an embedded queue.
 */
export function shareRedis(): () => Record<string, string> {
  let redis: RedisServer | undefined;
  let databases = 0;
  beforeAll(async () => {
    if (hasRedis) redis = await startRedis('--databases', '100');
  });
  afterAll(() => redis?.remove());
  return (): Record<string, string> => (redis ? { RINGNECK_QUEUE_URL: `${redis.url}/${databases++}` } : {});
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

async function listening(port: number): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const socket = connect(port, '127.0.0.1');
    const connected = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(
      () => false,
    );
    socket.destroy();
    if (connected) return;
    await sleep(25);
  }
  throw new Error(`redis-server does not listen on ${port}`);
}
