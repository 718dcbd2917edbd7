import type { PGlite } from '@electric-sql/pglite';
import { expect, test } from 'vitest';
import { DiskFull } from '../../src/base/disk.ts';
import { Pool } from '../../src/queue/pool.ts';

/** Answers each statement with nothing, and keeps what it was asked in its order. */
function openDatabase() {
  const asked: string[] = [];
  const execProtocol = async (message: Uint8Array) => {
    asked.push(/SELECT [\w ]+/.exec(Buffer.from(message).toString('latin1'))![0]);
    return { messages: [], data: new Uint8Array() };
  };
  return { asked, database: { execProtocol } as unknown as PGlite };
}

test('statements that take jobs in and all others take turns, each in the order they came', async () => {
  const { asked, database } = openDatabase();
  const pool = new Pool(database);
  await Promise.all([
    pool.query('SELECT id FROM add_jobs_bulk($1, $2)', []),
    pool.query('SELECT job FROM add_job($1)', []),
    pool.query('SELECT last FROM add_job($1)', []),
    pool.query('SELECT one', []),
    pool.query('SELECT two', []),
    pool.query('SELECT three FROM add_job_scheduler($1)', []),
    pool.query('SELECT four', []),
  ]);
  expect(asked).toEqual([
    'SELECT id FROM add_jobs_bulk',
    'SELECT one',
    'SELECT job FROM add_job',
    'SELECT two',
    'SELECT last FROM add_job',
    'SELECT three FROM add_job_scheduler',
    'SELECT four',
  ]);
});

test('a statement that takes a job in waits for one of a hundred others at most', async () => {
  const { asked, database } = openDatabase();
  const pool = new Pool(database);
  const others = Array.from({ length: 100 }, (_, i) => pool.query(`SELECT n${i}`, []));
  await Promise.all([...others, pool.query('SELECT job FROM add_job($1)', [])]);
  expect(asked.indexOf('SELECT job FROM add_job')).toBeLessThanOrEqual(1);
});

test('ending waits for every statement that was given, and takes no more', async () => {
  const { asked, database } = openDatabase();
  const pool = new Pool(database);
  const given = [pool.query('SELECT one', []), pool.query('SELECT two', [])];
  await pool.end();
  expect(asked).toEqual(['SELECT one', 'SELECT two']);
  await Promise.all(given);
  await expect(pool.query('SELECT three', [])).rejects.toThrow('Cannot use a pool after calling end on the pool');
});

test('a statement that is given in the very moment the pool runs dry is sent', async () => {
  for (let turns = 0; turns < 20; turns++) {
    const { asked, database } = openDatabase();
    const pool = new Pool(database);
    await pool.query('SELECT one', []);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await pool.query('SELECT two', []);
    expect({ turns, asked }).toEqual({ turns, asked: ['SELECT one', 'SELECT two'] });
  }
});

/** Its disk is full for the first answers; then it takes everything. */
function openFull(refusals: number) {
  let left = refusals;
  let asked = 0;
  const execProtocol = async () => {
    asked++;
    if (left-- > 0) throw Object.assign(new Error('could not extend file: No space left on device'), { code: '53100' });
    return { messages: [], data: new Uint8Array() };
  };
  return { asked: () => asked, database: { execProtocol } as unknown as PGlite };
}

test('the end of a job that a full disk did not take is noted once there is room', async () => {
  const { asked, database } = openFull(3);
  const pool = new Pool(database, { fullMs: 1 });
  await pool.query('SELECT move_to_finished($1)', []);
  expect(asked()).toBe(4);
});

test('a job that a full disk did not take in is refused: whoever gave it keeps it', async () => {
  const { asked, database } = openFull(1);
  const pool = new Pool(database, { fullMs: 1 });
  await expect(pool.query('SELECT id FROM add_jobs_bulk($1, $2)', [])).rejects.toMatchObject({ code: '53100' });
  expect(asked()).toBe(1);
});

test('what the disk has no room for is not tried again while the queue closes', async () => {
  const { database } = openFull(Number.POSITIVE_INFINITY);
  const pool = new Pool(database, { fullMs: 1 });
  const refused = expect(pool.query('SELECT move_to_finished($1)', [])).rejects.toMatchObject({ code: '53100' });
  await new Promise(resolve => setTimeout(resolve, 5));
  pool.closing();
  await refused;
  await pool.end();
});

test('what waits for room on the disk keeps no pool from ending', async () => {
  const { database } = openFull(Number.POSITIVE_INFINITY);
  const pool = new Pool(database, { fullMs: 1 });
  const refused = expect(pool.query('SELECT move_to_finished($1)', [])).rejects.toThrow('Cannot use a pool after calling end on the pool');
  await new Promise(resolve => setTimeout(resolve, 5));
  await pool.end();
  await refused;
});

test('what there is no room for is not asked of PostgreSQL, which would never come back', async () => {
  let left = 3;
  const ensureRoom = () => {
    if (left-- > 0) throw new DiskFull('no room');
  };
  const { asked, database } = openFull(0);
  const pool = new Pool(database, { fullMs: 1, ensureRoom });
  await expect(pool.query('SELECT id FROM add_jobs_bulk($1, $2)', [])).rejects.toThrow('no room');
  expect(asked()).toBe(0);
  await pool.query('SELECT move_to_finished($1)', []);
  expect(asked()).toBe(1);
});
