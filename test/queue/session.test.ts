import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { openDatabase } from '../../src/queue/database.ts';
import { Pool } from '../../src/queue/pool.ts';
import { Session } from '../../src/queue/session.ts';

test('what was said while nobody listened is told to the next listener, once', async () => {
  const session = new Session(
    () => Promise.reject(new Error('not asked')),
    () => undefined,
  );
  const told: unknown[] = [];
  const listener = (notification: unknown) => void told.push(notification);
  session.notify({ channel: 'bullmq_jobs', payload: 'work' });
  session.notify({ channel: 'bullmq_jobs', payload: 'work' });
  session.notify({ channel: 'bullmq_events', payload: 'work' });
  session.on('notification', listener);
  expect(told).toEqual([]);
  await pause();
  expect(told).toEqual([
    { channel: 'bullmq_jobs', payload: 'work' },
    { channel: 'bullmq_events', payload: 'work' },
  ]);
  session.removeListener('notification', listener);
  session.on('notification', listener);
  await pause();
  expect(told).toHaveLength(2);
});

test('parameters and answers are those of node-postgres', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-session-'));
  const database = await openDatabase(folder, silentLog);
  const pool = new Pool(database);
  const nasty = ['a', '', 'NULL', null, 'ü"\\{},\n', "';--"];
  const { rows, rowCount } = await pool.query(
    'SELECT $1::text AS text, $2::int AS int, $3::bigint AS big, $4::numeric AS numeric, $5::jsonb AS json, $6::boolean AS yes, $7::text[] AS texts, $8::bigint[] AS bigs, $9::text AS nothing',
    ['ü\n', 7, 2 ** 53 - 1, 1.5, { b: 1, a: [null] }, true, nasty, [1, 2], undefined],
  );
  expect(rowCount).toBe(1);
  expect(rows[0]).toMatchObject({
    text: 'ü\n',
    int: 7,
    big: '9007199254740991',
    numeric: '1.5',
    json: { a: [null], b: 1 },
    yes: true,
    nothing: null,
  });
  expect(rows[0].texts).toEqual(nasty);
  expect(rows[0].bigs.map(String)).toEqual(['1', '2']);
  await expect(pool.query('SELECT nonsense', [])).rejects.toMatchObject({ code: '42703' });
  expect((await pool.query('SELECT 1 AS one', [])).rows).toEqual([{ one: 1 }]);
  await pool.end();
  await expect(pool.query('SELECT 1', [])).rejects.toThrow('after calling end on the pool');
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the write-ahead log does not grow without end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-session-'));
  const database = await openDatabase(folder, silentLog);
  const pool = new Pool(database);
  const text = JSON.stringify(randomBytes(300_000).toString('base64'));
  const insert = 'INSERT INTO event (queue, event, data, created_at_ms) VALUES ($1, $2, $3, $4)';
  // Twice what Pool counts to, and a bit: 80 MB of log in all.
  for (let i = 0; i < 8_100; i++) await (i % 40 ? pool.query('SELECT 1', []) : pool.query(insert, ['q', 'e', text, i]));
  await pool.end();
  const logs = join(folder, 'database/pg_wal');
  const size = readdirSync(logs).reduce((sum, name) => sum + statSync(join(logs, name)).size, 0);
  await database.close();
  expect(Math.round(size / 1e6)).toBeLessThan(60);
  rmSync(folder, { recursive: true, force: true });
});
