import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { printable } from '../../src/base/printable.ts';
import { formatBox } from '../../src/cli/sql/box.ts';
import { complete } from '../../src/cli/sql/complete.ts';
import { openHistory } from '../../src/cli/sql/history.ts';
import { isComplete, isJoinable } from '../../src/cli/sql/statement.ts';
import type { Catalogue, CatalogueEntry } from '../../src/warehouse/readers/catalogue.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test.each([
  ['SELECT 1;', true],
  ['SELECT 1; ', true],
  ['SELECT 1; -- a remark', true],
  ['SELECT 1; /* a remark */', true],
  ['SELECT 1; SELECT 2;', true],
  [';', true],
  [`SELECT ';';`, true],
  [`SELECT 'it''s';`, true],
  [`SELECT E'it\\'s';`, true],
  ['SELECT $$ ; $$;', true],
  ['SELECT $a$ ; $$ $a$;', true],
  ['SELECT 1', false],
  ['', false],
  ['-- SELECT 1;', false],
  ['SELECT 1; -- a remark\nSELECT 2', false],
  ['SELECT 1; /* a remark;', false],
  [`SELECT 'a;`, false],
  [`SELECT 'a'';`, false],
  [`SELECT E'a\\';`, false],
  ['SELECT "a;', false],
  ['SELECT $$ a;', false],
  ['SELECT $a$ ; $$;', false],
])('%j is a complete statement: %s', (text, expected) => {
  expect(isComplete(text)).toBe(expected);
});

test.each([
  ['SELECT 1\n  AS a;', true],
  [`SELECT 'a--b'\n;`, true],
  [`SELECT 'a\nb';`, false],
  ['SELECT "a\nb";', false],
  ['SELECT $$a\nb$$;', false],
  ['SELECT 1 -- one\n;', false],
])('the lines of %j may be put into one: %s', (text, expected) => {
  expect(isJoinable(text)).toBe(expected);
});

function entry(name: string, kind: CatalogueEntry['kind'], ...columns: string[]): CatalogueEntry {
  const nothing = { group: 'other', meaning: '', paragraph: null, rows: null, calls: [], reads: [], script: null, sql: null } as const;
  return { name, kind, ...nothing, columns: columns.map(column => ({ name: column, type: 'INTEGER', unit: null, meaning: '' })) };
}

const CATALOGUE: Catalogue = {
  entries: [
    entry('daily_sleep', 'table', 'score'),
    entry('sleep', 'table', 'average_hrv', 'average_breath'),
    entry('sync.runs', 'view', 'run_id'),
    entry('hhmm', 'macro'),
    entry('sync.coverage_between', 'table macro'),
  ],
  person: null,
};

test.each<[string, string, string, string[], string]>([
  ['a relation after FROM', '', 'SELECT * FROM s', ['sleep', 'sync.runs', 'sync.coverage_between('], 's'],
  ['every relation after FROM', '', 'SELECT * FROM ', ['daily_sleep', 'sleep', 'sync.runs', 'sync.coverage_between('], ''],
  ['a relation of a schema', '', 'SELECT * FROM sync.r', ['sync.runs'], 'sync.r'],
  ['a column', '', 'SELECT aver', ['average_breath', 'average_hrv'], 'aver'],
  ['a column of an alias in an earlier line', 'SELECT *\nFROM sleep s', 'WHERE s.average_h', ['s.average_hrv'], 's.average_h'],
  ['a column of a relation', '', 'SELECT daily_sleep.', ['daily_sleep.score'], 'daily_sleep.'],
  ['a macro', '', 'SELECT hh', ['hhmm('], 'hh'],
  ['keywords as they are typed', '', 'SE', ['SELECT', 'SEMI'], 'SE'],
  ['keywords in small letters', '', 'sel', ['select'], 'sel'],
  ['a dot command', '', '.de', ['.describe'], '.de'],
  ['what a dot command is about', '', '.describe hh', ['hhmm'], 'hh'],
  ['a column that a dot command is about', '', '.describe sleep.average_h', ['sleep.average_hrv'], 'sleep.average_h'],
  ['a macro of a schema that a dot command is about', '', '.describe sync.c', ['sync.coverage_between'], 'sync.c'],
  ['nothing where nothing is typed', '', 'SELECT ', [], ''],
])('%s is completed', (_, before, line, names, word) => {
  expect(complete(CATALOGUE, ['.help', '.describe'], before, line)).toEqual([names, word]);
});

test('a result is put in a box, and NULL is written out', () => {
  expect(
    formatBox(
      [
        { name: 'name', numeric: false },
        { name: 'n', numeric: true },
      ],
      [
        ['ada', '1'],
        [null, '22'],
      ],
      80,
    ),
  ).toEqual({
    text: ['┌──────┬────┐', '│ name │  n │', '├──────┼────┤', '│ ada  │  1 │', '│ NULL │ 22 │', '└──────┴────┘'].join('\n'),
    cut: 0,
    leftOut: 0,
  });
});

test('a box is no wider than the terminal: long values are cut, then the last columns are left out', () => {
  const columns = ['a', 'b', 'c'].map(name => ({ name, numeric: false }));
  const row = ['short', 'a text that is far too long to be shown', 'x'];
  expect(formatBox(columns, [row], 40)).toEqual({
    text: [
      '┌───────┬──────────────────────────┬───┐',
      '│ a     │ b                        │ c │',
      '├───────┼──────────────────────────┼───┤',
      '│ short │ a text that is far too … │ x │',
      '└───────┴──────────────────────────┴───┘',
    ].join('\n'),
    cut: 1,
    leftOut: 0,
  });
  expect(formatBox(columns, [row], 22)).toEqual({
    text: [
      '┌───────┬────────────┐',
      '│ a     │ b          │',
      '├───────┼────────────┤',
      '│ short │ a text th… │',
      '└───────┴────────────┘',
    ].join('\n'),
    cut: 1,
    leftOut: 1,
  });
});

test('a text is cut between the characters that its reader sees, and a date never', () => {
  const columns = ['a', 'day', 'c'].map(name => ({ name, numeric: false }));
  const row = ['日本語 👩‍👩‍👧 é', '2025-01-01', 'a long text'];
  expect(formatBox(columns, [row], 40)).toEqual({
    text: [
      '┌────────────┬────────────┬────────────┐',
      '│ a          │ day        │ c          │',
      '├────────────┼────────────┼────────────┤',
      '│ 日本語 👩‍👩‍👧… │ 2025-01-01 │ a long te… │',
      '└────────────┴────────────┴────────────┘',
    ].join('\n'),
    cut: 2,
    leftOut: 0,
  });
  expect(formatBox(columns, [row], 39).leftOut).toBe(1);
});

test('a box of very many rows is made while its reader waits', () => {
  const { text } = formatBox(
    [{ name: 'n', numeric: true }],
    Array.from({ length: 50_000 }, (_, i) => [String(i)]),
    80,
  );
  expect(text.split('\n')).toHaveLength(50_004);
});

test('nothing in a box moves the cursor, turns the text or breaks the line', () => {
  expect(printable('a\u001b[2J\u009b1m\u202eb\nc\td\u0000\u2028e')).toBe('a\\u001b[2J\\u009b1m\\u202eb\\nc\\td\\u0000\\u2028e');
  const { text } = formatBox([{ name: 'a\u001b', numeric: false }], [['\u009b']], 80);
  expect(text).toBe(['┌─────────┐', '│ a\\u001b │', '├─────────┤', '│ \\u009b  │', '└─────────┘'].join('\n'));
});

test('the history is for its owner only, has each entry once and the last thousand', () => {
  const path = join(folder, 'sql_history');
  const history = openHistory(path);
  for (const entry of ['SELECT 1;', 'SELECT 2;', 'SELECT 1;', 'SELECT 1;']) history.add(entry);
  expect(history.lines).toEqual(['SELECT 1;', 'SELECT 2;']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(openHistory(path).lines).toEqual(['SELECT 1;', 'SELECT 2;']);

  for (let i = 0; i < 1_005; i++) history.add(`SELECT ${i} AS i;`);
  expect([history.lines.length, history.lines[0], history.lines.at(-1)]).toEqual([1_000, 'SELECT 1004 AS i;', 'SELECT 5 AS i;']);
  expect(openHistory(path).lines).toEqual(history.lines);
  expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(1_001);
});

test('where the history cannot be written it is one of this prompt only, and that is said once', () => {
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => said.mockRestore());
  // As in a folder of somebody else's, but for any user.
  const path = join(folder, 'folder');
  mkdirSync(path);
  const history = openHistory(path);
  for (const entry of ['SELECT 1;', 'SELECT 2;']) history.add(entry);
  expect(history.lines).toEqual(['SELECT 2;', 'SELECT 1;']);
  const other = openHistory(join(folder, 'no-such-folder', 'sql_history'));
  for (const entry of ['SELECT 3;', 'SELECT 4;']) other.add(entry);
  expect(other.lines).toEqual(['SELECT 4;', 'SELECT 3;']);
  expect(said.mock.calls.map(([text]) => String(text).split(': ').slice(0, 2).join(': '))).toEqual([
    'what is typed is not kept for the next time: EISDIR',
    'what is typed is not kept for the next time: ENOENT',
  ]);
});
