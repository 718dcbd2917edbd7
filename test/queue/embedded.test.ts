import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Log, silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import type { Queues } from '../../src/queue/queues.ts';
import { startPostgres } from '../../src/queue/start-postgres.ts';
import { until } from '../support/until.ts';
import { someOf } from '../support/whole.ts';

let folder: string;
let queues: Queues | undefined;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'ringneck-embedded-')), 'queue');
});
afterEach(async () => {
  await queues?.close();
  rmSync(dirname(folder), { recursive: true, force: true });
});

/** What was set aside. */
const aside = () => readdirSync(folder).filter(name => name.startsWith('database.broken'));

const open = async (log: Log = silentLog) => {
  queues = await openQueues({ folder, log });
  return queues;
};

describe('the folder', () => {
  test('only its owner can read it', async () => {
    const one = await open();
    await one.addBulk(
      'work',
      Array.from({ length: 500 }, (_, i) => ({ name: 'n', data: { i, text: 'x'.repeat(2_000) } })),
    );
    await one.close();
    const modes = readdirSync(folder, { recursive: true }).map(path => statSync(join(folder, String(path))).mode & 0o077);
    expect(modes.filter(mode => mode !== 0)).toEqual([]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  const breakages: Record<string, (database: string) => void> = {
    'without its version': path => rmSync(join(path, 'PG_VERSION')),
    'of another PostgreSQL': path => writeFileSync(join(path, 'PG_VERSION'), '12\n'),
    'without its control file': path => rmSync(join(path, 'global/pg_control')),
    'with garbage as its control file': path => writeFileSync(join(path, 'global/pg_control'), 'x'.repeat(8_192)),
    'without its write-ahead log': path => {
      rmSync(join(path, 'pg_wal'), { recursive: true });
      mkdirSync(join(path, 'pg_wal'));
    },
    'with empty tables': path => {
      for (const name of readdirSync(join(path, 'base'), { recursive: true })) {
        const file = join(path, 'base', String(name));
        if (statSync(file).isFile()) truncateSync(file, 0);
      }
    },
    'with nothing in it': path => {
      rmSync(path, { recursive: true });
      mkdirSync(path);
    },
    'that is a file': path => {
      rmSync(path, { recursive: true });
      writeFileSync(path, '');
    },
  };

  /** A folder with a job in its queue. */
  let made: string;
  beforeAll(async () => {
    made = mkdtempSync(join(tmpdir(), 'ringneck-embedded-'));
    const one = await openQueues({ folder: made, log: silentLog });
    await one.add('work', 'n', 1);
    await one.close();
    return () => rmSync(made, { recursive: true, force: true });
  });

  test.each(someOf(Object.entries(breakages), { more: 2 }))(
    'a database %s is moved aside, and the queue starts empty',
    async (_, damage) => {
      cpSync(made, folder, { recursive: true });
      damage(join(folder, 'database'));
      const warn = vi.fn();
      const after = await open({ ...silentLog, warn } as unknown as Log);
      expect(warn.mock.calls).toEqual([[expect.anything(), expect.stringContaining('what is to be done is enqueued again')]]);
      expect(aside()).toHaveLength(1);
      expect((await after.counts('work')).waiting).toBe(0);
      await after.add('work', 'n', 2);
      expect((await after.counts('work')).waiting).toBe(1);
    },
  );

  test('an index that lost touch with its table is made again', async () => {
    const before = await open();
    await before.addBulk(
      'work',
      Array.from({ length: 50 }, (_, i) => ({ name: 'n', data: i })),
    );
    await before.close();
    const dataDir = join(folder, 'database');
    const database = await startPostgres({ dataDir });
    const { rows } = await database.query<{ path: string }>("SELECT pg_relation_filepath('job_ready_idx') AS path");
    await database.close();
    truncateSync(join(dataDir, rows[0]!.path), 0);

    const after = await open();
    let done = 0;
    after.worker('work', async () => void done++, { concurrency: 4 });
    await until('all', () => done === 50);
    expect(aside()).toEqual([]);
  });
});

test('U+0000 in data is refused with an error, and the queue goes on', async () => {
  const one = await open();
  await expect(one.add('work', 'n', { text: 'a\u0000b' })).rejects.toThrow(/unicode|\\u0000/i);
  await one.add('work', 'n', { text: 'fine' });
  expect((await one.counts('work')).waiting).toBe(1);
});

test('timers and sockets have their turn while hundreds of jobs run', async () => {
  const one = await open();
  await one.addBulk(
    'work',
    Array.from({ length: 400 }, (_, i) => ({ name: 'n', data: i })),
  );
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 5);
  let done = 0;
  one.worker('work', async () => void done++, { concurrency: 16 });
  await until('all', () => done === 400);
  clearInterval(timer);
  expect(longest).toBeLessThan(500);
});
