import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAIN } from '../support/ringneck.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';

// `script` of util-linux gives a command a terminal; other systems have another one, or none.
const able = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

const folder = tempFolder();
const data = join(folder, 'data');
const file = join(data, 'warehouse.duckdb');
const started = new Set<ChildProcess>();
const PROMPT = 'ringneck> ';
const ENDLESS = 'SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3;';
const ESCAPES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]|\r`, 'g');
const [CTRL_C, CTRL_D, UP] = ['\u0003', '\u0004', '\u001b[A'];

beforeAll(async () => {
  const warehouse = await openWarehouse(file);
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
});
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

interface Prompt {
  pid: number;
  type(keys: string): void;
  /** What is shown from here on, up to and with this. */
  until(text: string): Promise<string>;
  /** Types a line and gives what is shown until the next prompt. */
  answer(line: string): Promise<string>;
  end(): Promise<number | null>;
}

/** A prompt at a terminal of a hundred columns. */
async function openPrompt(): Promise<Prompt> {
  const command = `stty cols 100; exec '${process.execPath}' '${MAIN}' sql`;
  const child = spawn('script', ['-qefc', command, '/dev/null'], { env: { ...process.env, SHELL: '/bin/bash', RINGNECK_DATA: data } });
  started.add(child);
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  let shown = '';
  let read = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text.replace(ESCAPES, '');
  });
  const prompt: Prompt = {
    pid: child.pid!,
    type: keys => void child.stdin.write(keys),
    async until(text) {
      for (const end = Date.now() + 30_000; ; await new Promise(resolve => setTimeout(resolve, 10))) {
        const at = shown.indexOf(text, read);
        if (at >= 0) {
          const found = shown.slice(read, at + text.length);
          read = at + text.length;
          return found;
        }
        if (Date.now() > end) throw new Error(`${text} was not shown, but ${shown.slice(read)}`);
      }
    },
    async answer(line) {
      child.stdin.write(`${line}\r`);
      await prompt.until('\n');
      const said = await prompt.until(PROMPT);
      return said.slice(0, -PROMPT.length);
    },
    end: () => ended,
  };
  await prompt.until(PROMPT);
  return prompt;
}

/** What a command shows at a terminal of a hundred columns. */
function atTerminal(...args: string[]): string {
  const command = `stty cols 100; exec ${[process.execPath, MAIN, 'sql', ...args].map(word => `'${word}'`).join(' ')}`;
  const options = { env: { ...process.env, SHELL: '/bin/bash', RINGNECK_DATA: data }, encoding: 'utf8' } as const;
  return spawnSync('script', ['-qefc', command, '/dev/null'], options).stdout.replace(ESCAPES, '');
}

test.runIf(able)('one query at a terminal is answered as at the prompt, and whole where a format is named', () => {
  const wide = atTerminal('FROM daily_stress');
  expect(Math.max(...wide.split('\n').map(line => line.length))).toBeLessThanOrEqual(100);
  expect(wide).toMatch(/^┌─.*\n\(1 row; columns: \d+ cut and \d+ left out to fit\)\n$/s);
  expect(atTerminal('SELECT 1 AS gone; FROM range(12345)')).toMatch(
    /^┌───────┐\n│ range │\n.*│ {4}99 │\n└───────┘\n\(100 of 12,345 rows, --format table shows more\)\n$/s,
  );
  expect(atTerminal('--format', 'table', 'SELECT user_id, day_summary FROM daily_stress')).toBe(
    'user_id  day_summary\n───────  ───────────\nann      normal\n',
  );
});

test.runIf(able)('a plan is drawn in its lines, however long it is', async () => {
  const prompt = await openPrompt();
  await prompt.answer('.timing off');
  const plan = await prompt.answer('EXPLAIN SELECT day, count(*) AS n FROM daily_stress GROUP BY day ORDER BY n;');
  expect(plan).toMatch(/^┌─+┐\n│ +ORDER_BY +│\n/);
  expect(plan).toMatch(/\n│warehouse\.main\.daily_stress│\n/);
  const long = await prompt.answer('EXPLAIN ANALYZE FROM daily;');
  expect(long.length).toBeGreaterThan(10_000);
  expect(long.trimEnd()).toMatch(/└─+┘$/);
  prompt.type(CTRL_D);
  expect(await prompt.end()).toBe(0);
  expect(atTerminal('EXPLAIN SELECT 1')).toMatch(/^┌─+┐\n│ +PROJECTION +│\n/);
});

test.runIf(able)('a prompt answers in boxes, over several lines, says what is wrong and goes on', async () => {
  const prompt = await openPrompt();
  await prompt.answer('.timing off');
  expect(await prompt.answer('SELECT user_id, day, NULL::VARCHAR AS x FROM daily_stress;')).toBe(
    [
      '┌─────────┬────────────┬──────┐',
      '│ user_id │ day        │ x    │',
      '├─────────┼────────────┼──────┤',
      '│ ann     │ 2025-01-15 │ NULL │',
      '└─────────┴────────────┴──────┘',
      '(1 row)',
      '',
    ].join('\n'),
  );
  prompt.type(`SELECT 'a;\r`);
  await prompt.until('...> ');
  expect(await prompt.answer(`b' AS t; SELECT 2 AS n;`)).toBe(
    [
      '┌───────┐',
      '│ t     │',
      '├───────┤',
      '│ a;\\nb │',
      '└───────┘',
      '(1 row)',
      '┌───┐',
      '│ n │',
      '├───┤',
      '│ 2 │',
      '└───┘',
      '(1 row)',
      '',
    ].join('\n'),
  );
  expect(await prompt.answer('SELECT * FROM slep;')).toBe(
    'Catalog Error: Table with name slep does not exist!\nDid you mean "sleep"?\nLINE 1: SELECT * FROM slep;\n                      ^\n',
  );
  expect(await prompt.answer('.tabels')).toBe('.tabels is no command: did you mean .tables? (.help shows them)\n');
  expect(await prompt.answer('.describe nothing_like_it')).toBe(
    'there is no table, view or macro "nothing_like_it": `ringneck tables` lists them\n',
  );
  expect(await prompt.answer('.describe vo2_max')).toContain('vo2_max: table, 0 rows\n');
  expect(await prompt.answer('.tables')).toMatch(/\n {2}daily_stress +1 /);
  expect(await prompt.answer('.help')).toContain('nothing is kept');
  prompt.type('.exit\r');
  expect(await prompt.end()).toBe(0);
});

test.runIf(able)('who types help or exit is understood, and nobody is caught in the middle of a statement', async () => {
  const prompt = await openPrompt();
  expect(await prompt.answer('help')).toContain('.exit                leave');
  prompt.type('last night\r');
  await prompt.until('...> ');
  prompt.type('.help\r');
  await prompt.until('clears what is typed');
  await prompt.until('...> ');
  prompt.type('.exit\r');
  expect(await prompt.end()).toBe(0);
  const other = await openPrompt();
  other.type('exit\r');
  expect(await other.end()).toBe(0);
});

test.runIf(able)('of a long result the first rows are shown, and of a wide one what fits', async () => {
  const prompt = await openPrompt();
  await prompt.answer('.timing off');
  const long = await prompt.answer('FROM range(12345);');
  expect(long).toContain('│    99 │\n└───────┘\n(100 of 12,345 rows, .rows N shows more)\n');
  await prompt.answer('.rows 2');
  expect(await prompt.answer('FROM range(3);')).toBe(
    '┌───────┐\n│ range │\n├───────┤\n│     0 │\n│     1 │\n└───────┘\n(2 of 3 rows, .rows N shows more)\n',
  );
  expect(await prompt.answer('FROM range(100000000000);')).toMatch(/\(2 of more than [\d,]+ rows, \.rows N shows more\)\n$/);
  expect(await prompt.answer('.rows 0')).toBe('.rows 0: expected a whole number from 1 to 100000\n');
  const wide = await prompt.answer('FROM sleep;');
  expect(Math.max(...wide.split('\n').map(line => line.length))).toBeLessThanOrEqual(100);
  expect(wide).toMatch(/\n\(0 rows; columns: \d+ cut and \d+ left out to fit\)\n$/);
  prompt.type(CTRL_D);
  expect(await prompt.end()).toBe(0);
});

test.runIf(able)('Ctrl-C stops a query or clears what is typed, and twice leaves', async () => {
  const prompt = await openPrompt();
  prompt.type(`${ENDLESS}\r`);
  await prompt.until('\n');
  prompt.type(CTRL_C);
  expect(await prompt.until(PROMPT)).toBe(`interrupted\n${PROMPT}`);
  prompt.type('SELECT\r');
  await prompt.until('...> ');
  prompt.type(CTRL_C);
  await prompt.until(`^C\n${PROMPT}`);
  expect(await prompt.answer('SELECT 7 AS n;')).toContain('│ 7 │');
  prompt.type(CTRL_C);
  await prompt.until(`to leave)\n${PROMPT}`);
  prompt.type(CTRL_C);
  expect(await prompt.end()).toBe(0);
});

test.runIf(able)('names complete, and what was typed comes back, also in the next prompt', async () => {
  const first = await openPrompt();
  first.type('SELECT day_summary\rFROM daily_str\t');
  await first.until('daily_stress');
  expect(await first.answer(';')).toContain('│ normal ');
  first.type(CTRL_D);
  await first.end();
  expect(readFileSync(join(data, 'sql_history'), 'utf8')).toMatch(/\nSELECT day_summary FROM daily_stress;\n$/);
  expect(statSync(join(data, 'sql_history')).mode & 0o777).toBe(0o600);

  const second = await openPrompt();
  second.type(UP);
  await second.until('SELECT day_summary FROM daily_stress;');
  expect(await second.answer('')).toContain('│ normal ');
  second.type(CTRL_D);
  expect(await second.end()).toBe(0);
});

test.runIf(able)('between two statements nobody holds the warehouse, and the next one sees what was stored', async () => {
  const prompt = await openPrompt();
  expect(await prompt.answer('SELECT count(*) AS days FROM daily_stress;')).toContain('│    1 │');
  const warehouse = await openWarehouse(file, { patienceMs: 0 });
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 't-2', day: '2025-01-16' }]);
  await warehouse.close();
  expect(await prompt.answer('SELECT count(*) AS days FROM daily_stress;')).toContain('│    2 │');
  prompt.type(CTRL_D);
  expect(await prompt.end()).toBe(0);
});

test.runIf(able)('a query whose process dies is told in one line, and the prompt goes on', async () => {
  const prompt = await openPrompt();
  prompt.type(`${ENDLESS}\r`);
  await prompt.until('\n');
  const queries = () =>
    spawnSync('pgrep', ['-f', `^${process.execPath} .*query/child.js`], { encoding: 'utf8' })
      .stdout.split('\n')
      .filter(Boolean);
  const mine = queries()
    .map(Number)
    .filter(pid => isBelow(pid, prompt.pid));
  expect(mine.length).toBeGreaterThan(0);
  for (const pid of mine) process.kill(pid, 'SIGKILL');
  expect(await prompt.until(PROMPT)).toBe(`the query ended its own process (SIGKILL); warehouse and pipeline are not concerned\n${PROMPT}`);
  expect(await prompt.answer('SELECT 8 AS n;')).toContain('│ 8 │');
  prompt.type(CTRL_D);
  expect(await prompt.end()).toBe(0);
});

/** Whether a process was started by another one, or by one that it started. */
function isBelow(pid: number, ancestor: number): boolean {
  const parent = Number(spawnSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' }).stdout);
  return parent === ancestor || (parent > 1 && isBelow(parent, ancestor));
}
