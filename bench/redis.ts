import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';

const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
export const QUEUES = hasRedis ? (['embedded', 'Redis'] as const) : (['embedded'] as const);
export type QueueKind = (typeof QUEUES)[number];

/** A Redis of our own on a free port, with the settings that production needs. */
export async function startRedis(folder: string): Promise<{ url: string; stop(): Promise<void> }> {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const settings = ['--appendonly', 'yes', '--maxmemory-policy', 'noeviction', '--save', ''];
  const server = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...settings], { stdio: 'ignore' });
  for (let i = 0; !(await isListening(port)); i++) {
    if (i === 200) throw new Error(`redis-server does not listen on ${port}`);
    await setTimeout(25);
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      server.kill('SIGKILL');
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
    },
  };
}

/** Works with a Redis where the queue is to be in one. */
export async function withQueue<Result>(queue: QueueKind, folder: string, work: (queueUrl?: string) => Promise<Result>): Promise<Result> {
  if (queue === 'embedded') return work();
  const redis = await startRedis(folder);
  try {
    return await work(redis.url);
  } finally {
    await redis.stop();
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const answer = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(() => false);
  socket.destroy();
  return answer;
}
