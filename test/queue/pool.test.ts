import type { PGlite } from '@electric-sql/pglite';
import { expect, test } from 'vitest';
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
