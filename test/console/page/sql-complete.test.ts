import { expect, test } from 'vitest';
import type { Catalogue } from '../../../src/console/api/sql.ts';
import { optionsAt } from '../../../src/console/page/screens/sql/complete.ts';

const column = (name: string, type: string, unit: string | null = null) => ({ name, type, unit, meaning: `the ${name}` });
const entry = (name: string, changes: Partial<Catalogue['entries'][number]> = {}): Catalogue['entries'][number] => ({
  name,
  kind: 'table',
  group: 'documents',
  meaning: `the ${name}`,
  columns: [],
  calls: [],
  example: null,
  ...changes,
});
const entries = [
  entry('nights', { kind: 'view', columns: [column('day', 'DATE'), column('average_hrv', 'BIGINT', 'ms')] }),
  entry('sleep', { columns: [column('score', 'BIGINT')] }),
  entry('sync.runs', { columns: [column('state', 'VARCHAR')] }),
  entry('local', { kind: 'macro' }),
  entry('coverage_between', { kind: 'table macro' }),
];

/** What is offered where the | is, and from where on. */
function offered(text: string) {
  const at = text.indexOf('|');
  const found = optionsAt(entries, text.replace('|', ''), at);
  return found && [text.slice(found.from, at), ...found.options.map(({ label, detail }) => `${label} ${detail}`)];
}

test('after FROM come tables, views and table macros', () => {
  expect(offered('SELECT day FROM |')).toEqual(['', 'nights view', 'sleep table', 'sync.runs table', 'coverage_between( table macro']);
});

test('a word may be a column of what the statement names, with its unit, a macro or a table', () => {
  expect(offered('SELECT av| FROM nights')).toEqual([
    'av',
    'day DATE',
    'average_hrv ms',
    'local( macro',
    'nights view',
    'sleep table',
    'sync.runs table',
    'coverage_between( table macro',
  ]);
  expect(offered('SELECT sc|')?.slice(0, 5)).toEqual(['sc', 'day DATE', 'average_hrv ms', 'score BIGINT', 'state VARCHAR']);
});

test('after a dot come the columns of a table, by its name or by the one that the statement gives it', () => {
  expect(offered('SELECT nights.|')).toEqual(['', 'day DATE', 'average_hrv ms']);
  expect(offered('SELECT n.a| FROM nights AS n')).toEqual(['a', 'day DATE', 'average_hrv ms']);
  expect(offered('SELECT sync.runs.| FROM sync.runs')).toEqual(['', 'state VARCHAR']);
  expect(offered('FROM sync.|')?.[0]).toBe('sync.');
});

test('where no word has begun nothing is offered', () => {
  expect(offered('SELECT |')).toBeNull();
});
