import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SqlLine } from '../../src/console/api/sql.ts';
import { placeTwoPeople } from '../app/person-files/two-people.ts';
import { openConsoleHere, type Visitor } from '../support/console-harness.ts';
import { type HostileHarness, type Outcome, openHostileHarness, someOfEach } from '../support/hostile-harness.ts';
import type { Hostile } from '../support/hostile-sql.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse } from '../support/warehouse.ts';

let harness: HostileHarness;
/** Of those who ask hostile statements, each for who waits. */
const visitors: Visitor[] = [];
beforeAll(async () => {
  harness = await openHostileHarness(tempFolder(), askHostile);
  const warehouse = await openWarehouse(harness.file);
  await warehouse.snapshot(join(harness.data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
});
afterAll(() => harness.close());

const linesOf = (body: unknown): SqlLine[] =>
  typeof body === 'string'
    ? body
        .trim()
        .split('\n')
        .map(line => JSON.parse(line))
    : [body as SqlLine];
let queries = 0;
const nextId = () => `q${++queries}`;

/** Asks, and reads what comes without what the clock has in it. */
async function run(visitor: Visitor, sql: string) {
  const { status, body } = await visitor.ask('POST sql', '', { id: nextId(), sql });
  const lines = linesOf(body);
  for (const line of lines) if ('end' in line) line.end.ms = 0;
  return { status, lines };
}

test('a result comes as lines: its columns, its rows by column as texts, and how it ended', async () => {
  const visitor = await (await openConsoleHere(harness.data)).enter({ role: 'reader' });
  expect(
    await run(
      visitor,
      `SELECT 9007199254740993 AS big, 1.50::DECIMAL(4,2) AS d, DATE '2025-03-30' AS day, NULL AS nothing, '</script>' AS "<b>"`,
    ),
  ).toEqual({
    status: 200,
    lines: [
      {
        columns: [
          { name: 'big', type: 'BIGINT', numeric: true },
          { name: 'd', type: 'DECIMAL(4,2)', numeric: true },
          { name: 'day', type: 'DATE', numeric: false },
          { name: 'nothing', type: 'INTEGER', numeric: true },
          { name: '<b>', type: 'VARCHAR', numeric: false },
        ],
      },
      { batch: [['9007199254740993'], ['1.50'], ['2025-03-30'], [null], ['</script>']] },
      { end: { rows: 1, cut: null, ms: 0 } },
    ],
  });
  expect((await run(visitor, 'SET threads = 1')).lines).toEqual([
    { error: { kind: 'sql', message: expect.stringContaining('configuration has been locked'), help: '' } },
  ]);
  expect((await run(visitor, 'BEGIN; COMMIT')).lines).toEqual([{ columns: [] }, { end: { rows: 0, cut: null, ms: 0 } }]);
});

test('what is wrong with a statement is told in the words of DuckDB, with its place, also after the first rows', async () => {
  const visitor = await (await openConsoleHere(harness.data)).enter();
  expect(await run(visitor, 'SELECT 1\nFROM nowhere')).toEqual({
    status: 422,
    lines: [{ error: { kind: 'sql', message: expect.stringMatching(/nowhere does not exist.*\(line 2, at "nowhere"\)/), help: '' } }],
  });
  const { status, lines } = await run(
    visitor,
    `SELECT CASE WHEN range < 90000 THEN repeat('x', 300) ELSE error('too far') END AS n FROM range(100000)`,
  );
  expect(status).toBe(200);
  expect(lines.at(-1)).toEqual({ error: { kind: 'sql', message: expect.stringContaining('too far'), help: '' } });
});

test('a result of exactly 100,000 rows is whole, one of more is cut there, and one of large rows at 32 MiB', async () => {
  const visitor = await (await openConsoleHere(harness.data)).enter();
  const endOf = async (sql: string) => (await run(visitor, sql)).lines.at(-1);
  expect(await endOf('FROM range(100000)')).toEqual({ end: { rows: 100_000, cut: null, ms: 0 } });
  expect(await endOf('FROM range(100001)')).toEqual({ end: { rows: 100_000, cut: 'rows', ms: 0 } });
  // Each row takes 1,048,579 bytes.
  expect(await endOf(`SELECT repeat('x', 1048576) FROM range(40)`)).toEqual({ end: { rows: 31, cut: 'bytes', ms: 0 } });
});

test('CSV has an apostrophe before what a spreadsheet would take for a formula, and its name says that it was cut', async () => {
  const visitor = await (await openConsoleHere(harness.data)).enter();
  const whole = await visitor.ask('POST sql/export', '', {
    id: nextId(),
    sql: `SELECT -1 AS "=n", '=HYPERLINK("x")' AS a, '+1' AS b, '@x' AS c, '0042' AS d, '12' AS e, NULL AS f, 'a,b' AS g, '' AS h, '</script>' AS i`,
  });
  expect(whole.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  expect(whole.headers.get('content-disposition')).toBe('attachment; filename="result.csv"');
  // The byte order mark is taken by who reads the text.
  expect(whole.body).toBe(`'=n,a,b,c,d,e,f,g,h,i\n-1,"'=HYPERLINK(""x"")",'+1,'@x,'0042,12,,"a,b","",</script>\n`);
  const cut = await visitor.ask('POST sql/export', '', { id: nextId(), sql: 'FROM range(200000)' });
  expect(cut.headers.get('content-disposition')).toBe('attachment; filename="result-first-100000-rows.csv"');
  expect(cut.headers.get('x-cut')).toBe('rows');
  expect(String(cut.body).trimEnd().split('\n')).toHaveLength(100_001);
  expect(await visitor.ask('POST sql/export', '', { id: nextId(), sql: 'FROM nowhere' })).toMatchObject({
    status: 422,
    body: { error: { kind: 'sql' } },
  });
});

/** The processes that a process has started, as Linux has them. */
const childrenOf = (pid: number) =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap(task => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' '))
    .filter(Boolean)
    .map(Number)
    .filter(isQuery);

/** Whether a process is there, and asks for somebody; one that has ended and is waited for has no command. */
function isQuery(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('/app/query/');
  } catch {
    return false;
  }
}

const FOREVER = 'SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3';

test('a session asks one query at a time, and cancels its own alone', async () => {
  const console = await openConsoleHere(harness.data);
  const [ada, ben] = [await console.enter(), await console.enter()];
  const first = ada.ask('POST sql', '', { id: 'first', sql: FOREVER });
  await expect.poll(async () => (await run(ada, 'SELECT 1')).status).toBe(409);
  expect((await run(ben, 'SELECT 1')).status).toBe(200);
  expect((await ben.ask('DELETE sql/first')).body).toEqual({ cancelled: false });
  expect((await ada.ask('DELETE sql/another')).body).toEqual({ cancelled: false });
  const asking = childrenOf(process.pid);
  expect(asking.length).toBeGreaterThan(0);
  expect((await ada.ask('DELETE sql/first')).body).toEqual({ cancelled: true });
  expect(await first).toMatchObject({ status: 410, body: { error: { kind: 'cancelled', message: 'The query was cancelled.' } } });
  await expect.poll(() => asking.filter(isQuery)).toEqual([]);
  expect((await run(ada, 'SELECT 1')).status).toBe(200);
});

test('a query ends when its browser goes away', async () => {
  const console = await openConsoleHere(harness.data);
  const { cookie, csrf, ask } = await console.enter();
  const gone = new AbortController();
  const headers = { cookie, 'x-csrf': csrf, origin: console.url, 'content-type': 'application/json' };
  const asked = fetch(`${console.url}/api/sql`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ id: 'x', sql: FOREVER }),
    signal: gone.signal,
  });
  const busy = async () => (await ask('POST sql', '', { id: nextId(), sql: 'SELECT 1' })).status;
  await expect.poll(busy).toBe(409);
  gone.abort();
  await expect(asked).rejects.toThrow();
  await expect.poll(busy).toBe(200);
});

async function askHostile(file: string, hostile: Hostile): Promise<Outcome> {
  const visitor = visitors.pop();
  if (!visitor) throw new Error('more are asked at once than there are sessions');
  const id = nextId();
  const asked = visitor.ask('POST sql', '', { id, sql: hostile.sql.replaceAll(file, join(harness.data, 'snapshot.duckdb')) });
  const cancel = hostile.fate === 'bounded' ? setTimeout(() => visitor.ask(`DELETE sql/${id}`), 1_000) : undefined;
  const { body } = await asked;
  clearTimeout(cancel);
  visitors.push(visitor);
  const last = linesOf(body).at(-1);
  // JSON has no raw control characters; a person's terminal has no part in this.
  return {
    ...hostile,
    error: last && 'error' in last ? last.error.message : undefined,
    output: JSON.stringify(body).replace(/[\u007f-\u009f\u202a-\u202e]/g, ''),
  };
}

test('hostile statements of every kind harm nobody', { timeout: 240_000 }, async () => {
  const at = Date.now();
  const console = await openConsoleHere(harness.data, { now: () => at });
  visitors.push(...(await Promise.all(Array.from({ length: 4 }, () => console.enter({ role: 'reader' })))));
  const before = statSync(join(harness.data, 'snapshot.duckdb'));
  await harness.withstand(someOfEach(harness.corpus));
  const { size, mtimeMs, ino } = statSync(join(harness.data, 'snapshot.duckdb'));
  expect({ size, mtimeMs, ino }).toEqual({ size: before.size, mtimeMs: before.mtimeMs, ino: before.ino });
});

test('the catalogue has every table, view and macro with its columns, and a first query for it', async () => {
  const visitor = await (await openConsoleHere(harness.data)).enter({ role: 'reader' });
  const { body, headers } = await visitor.ask('GET catalogue');
  expect(body.limits).toEqual({ rows: 100_000, bytes: 33_554_432, seconds: 30, memory: '1GB' });
  const nights = body.entries.find(({ name }: { name: string }) => name === 'nights');
  expect(nights).toMatchObject({ kind: 'view', group: 'views' });
  expect(nights.columns.find(({ name }: { name: string }) => name === 'average_hrv')).toMatchObject({ type: 'BIGINT', unit: 'ms' });
  expect(body.entries.map(({ name }: { name: string }) => name)).toEqual(
    expect.arrayContaining(['sleep', 'sync.windows', 'local', 'daily']),
  );
  expect(body.questions.length).toBeGreaterThanOrEqual(4);
  expect(body.cookbook.length).toBeGreaterThanOrEqual(8);
  const again = await visitor.ask('GET catalogue');
  expect(again.headers.get('etag')).toBe(headers.get('etag'));
});

test('a person asks a file in which there is nobody else', async () => {
  const data = join(dirname(harness.data), 'two');
  mkdirSync(data, { mode: 0o700 });
  await placeTwoPeople(data, { asSnapshot: 'beside' });
  const console = await openConsoleHere(data);
  const [ada, reader] = [await console.enter({ role: 'person', person: 'ada' }), await console.enter({ role: 'reader' })];
  const usersOf = async (visitor: Visitor) =>
    (await run(visitor, 'SELECT user_id FROM sleep UNION SELECT user_id FROM sync.accounts ORDER BY ALL')).lines[1];
  expect(await usersOf(reader)).toEqual({ batch: [['ada', 'bob-zz']] });
  expect(await usersOf(ada)).toEqual({ batch: [['ada']] });
  const { body } = await ada.ask('POST sql/export', '', { id: nextId(), sql: 'SELECT comment FROM enhanced_tag' });
  expect(body).toBe('comment\nadas wine\n');
  expect(JSON.stringify((await ada.ask('GET catalogue')).body)).not.toContain('bob-zz');
});

test('where there is no snapshot, that is said', async () => {
  const visitor = await (await openConsoleHere(dirname(harness.data))).enter();
  for (const answer of [await visitor.ask('GET catalogue'), await visitor.ask('POST sql', '', { id: 'a', sql: 'SELECT 1' })])
    expect(answer).toMatchObject({ status: 404, body: { error: { kind: 'missing', message: 'There is no snapshot yet.' } } });
});
