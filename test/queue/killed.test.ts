import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import type { Queues } from '../../src/queue/queues.ts';
import { until } from '../support/until.ts';
import { someOf } from '../support/whole.ts';
import { hasRedis, type RedisServer, startRedis } from './redis-server.ts';

const script = fileURLToPath(new URL('killed.mjs', import.meta.url));

function startWorker(folder: string, url?: string) {
  const child = spawn(process.execPath, [script, inject('compiled'), folder, ...(url ? [url] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  child.stdout.on('data', text => lines.push(...String(text).trim().split('\n')));
  const kill = async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  return { lines, kill };
}

describe.each(['embedded', 'redis'] as const)('a worker that is killed, %s', kind => {
  test.skipIf(kind === 'redis' && !hasRedis)('its jobs run again, the waiting ones run, none is lost', async () => {
    const redis: RedisServer | undefined = kind === 'redis' ? await startRedis() : undefined;
    const folder = mkdtempSync(join(tmpdir(), 'ringneck-killed-'));
    const open = () => openQueues({ url: redis?.url, folder, prefix: 'test', log: silentLog });
    let queues: Queues = await open();
    await queues.add('work', 'n', 'stuck', { attempts: 1 });
    for (let i = 0; i < 300; i++) await queues.add('work', 'n', `job ${i}`, { attempts: 1 });
    await queues.close();

    const worker = startWorker(folder, redis?.url);
    await until('it is in the middle', () => worker.lines.filter(line => line.startsWith('end')).length > 60);
    await worker.kill();
    const ended = new Set(worker.lines.filter(line => line.startsWith('end')).map(line => line.slice(4)));
    expect(ended.size).toBeLessThan(300);

    queues = await open();
    const seen: string[] = [];
    queues.worker('work', async job => void seen.push(String(job.data)), { concurrency: 4, ...(redis ? { stalledInterval: 500 } : {}) });
    await until('all', () => new Set([...ended, ...seen]).size === 301);
    expect(seen).toContain('stuck');
    await until('empty', async () => (await queues.counts('work')).active === 0);
    expect(await queues.counts('work')).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    // At most the four that were in flight, and those whose end was not yet written down.
    expect(seen.filter(name => ended.has(name)).length).toBeLessThanOrEqual(4);
    await queues.close();
    await redis?.remove();
    rmSync(folder, { recursive: true, force: true });
  });
});

test('killed while the folder is being made, the next start makes it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-killed-'));
  for (const ms of someOf([150, 300, 450, 600, 800, 1_000], { always: [450], more: 1 })) {
    const worker = startWorker(folder);
    await sleep(ms);
    await worker.kill();
    if (existsSync(join(folder, 'database'))) rmSync(join(folder, 'database'), { recursive: true });
  }
  const queues = await openQueues({ folder, log: silentLog });
  await queues.add('work', 'n', 1);
  expect((await queues.counts('work')).waiting).toBe(1);
  await queues.close();
  expect(readdirSync(folder)).toEqual(['database']);
  rmSync(folder, { recursive: true, force: true });
});
