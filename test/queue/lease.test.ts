import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, type TestContext, test } from 'vitest';
import { TryLaterError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { hasRedis, startRedis } from './redis-server.ts';

const made = tempFolder();

// What they do is to wait, each with a server of its own.
describe.skipIf(!hasRedis).concurrent('the queues of one warehouse', () => {
  async function setUp(name: string, { onTestFinished }: TestContext) {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    const own = join(made, name);
    const copy = join(made, `${name}-copy`);
    mkdirSync(own);
    cpSync(own, copy, { recursive: true });
    const lost: string[] = [];
    const open = async (folder: string, warehouse = 'one') => {
      const claim = { warehouse, folder, onLost: (message: string) => void lost.push(message) };
      const queues = await openQueues({ url: redis.url, folder: join(folder, 'queue'), prefix: 'test', log: silentLog, claim });
      onTestFinished(() => queues.close());
      return queues;
    };
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    return { own, copy, open, lost, client };
  }

  test('have one owner: a copied folder is refused while it is alive, and told of ringneck adopt', async context => {
    const { own, copy, open } = await setUp('refused', context);
    const first = await open(own);
    const error = await open(copy).catch(thrown => thrown);
    expect(error).toBeInstanceOf(TryLaterError);
    expect(error.message).toContain('`ringneck adopt`');
    await open(copy, 'another id');
    await first.close();
    await open(copy);
  });

  test('stay with who has them when the Redis is emptied while a copy waits for them', async context => {
    const { own, copy, open, lost, client } = await setUp('emptied', context);
    await open(own);
    const waiting = open(copy).catch(thrown => thrown);
    // It has looked, and the next renewal is still to come.
    await sleep(700);
    await client.flushall();
    expect((await waiting).message).toContain('`ringneck adopt`');
    await sleep(3_000);
    expect(lost).toEqual([]);
  });

  test('are a copy’s when they were lost and nobody else comes back for them', async context => {
    const { copy, open, client } = await setUp('gone', context);
    await client.set('test:lease-one', 'of a folder\nelsewhere', 'PX', 60_000);
    const waiting = open(copy);
    await sleep(700);
    await client.flushall();
    await waiting;
    expect(await client.exists('test:lease-one')).toBe(1);
  });

  test('are the same folder’s at once, whose former owner is dead', async context => {
    const { own, open } = await setUp('killed', context);
    // Neither gives it back before.
    await open(own);
    const start = Date.now();
    await open(own);
    expect(Date.now() - start).toBeLessThan(4_000);
  });

  test('stay with who has them when the Redis is restored from a dump of before their start', async context => {
    const { own, open, lost, client } = await setUp('restored', context);
    await open(own);
    const held = (await client.get('test:lease-one')) ?? '';
    await client.set('test:lease-one', `of a process before\n${held.split('\n')[1]}`, 'PX', 60_000);
    await until('taken again', async () => lost.length > 0 || (await client.get('test:lease-one')) === held);
    expect(lost).toEqual([]);
  });

  test('are given up by one of two who own the same folder and live, as where its disk knows no locks', async context => {
    const { own, open, lost } = await setUp('two', context);
    await open(own);
    await open(own);
    await until('given up', () => lost.length > 0);
    await sleep(3_000);
    expect(lost).toHaveLength(1);
  });

  test('are taken again when the Redis was emptied, and given up when somebody else has them', async context => {
    const { own, open, lost, client } = await setUp('lost', context);
    await open(own);
    await client.flushall();
    await until('taken again', async () => (await client.exists('test:lease-one')) === 1);
    expect(lost).toEqual([]);
    await client.set('test:lease-one', 'somebody else', 'PX', 60_000);
    await until('given up', () => lost.length > 0);
    expect(lost[0]).toContain('`ringneck adopt`');
  });
});
