import { expect, test } from 'vitest';
import { openQuery } from '../../src/warehouse/schema/column-sources.ts';
import { withDuckDB } from '../support/warehouse.ts';

test.each([
  ['a column', 'SELECT a FROM t', ['t.a']],
  ['one under another name', 'SELECT b AS a, a AS b FROM t', ['t.b']],
  ['one of a star', 'SELECT * FROM sync.t', ['sync.t.a']],
  ['one through a subquery', 'SELECT a FROM (SELECT b AS a FROM t) AS s', ['t.b']],
  ['one through named queries', 'WITH s AS (SELECT b AS c FROM t), u AS (SELECT c AS a FROM s) SELECT a FROM u', ['t.b']],
  ['one of a named query that has the name of its table', 'WITH t AS (SELECT b AS a FROM t) SELECT a FROM t', ['t.b']],
  ['one of several', 'SELECT u.a FROM t JOIN u USING (id)', ['u.a']],
  ['one by an alias', 'SELECT x.a FROM t AS x, u', ['t.a']],
  ['one that may be of either', 'SELECT a FROM t JOIN u USING (a)', ['t.a', 'u.a']],
  ['one of a union', 'SELECT a FROM t UNION ALL SELECT b AS a FROM u', ['t.a', 'u.b']],
  ['a sum', 'SELECT sum(a) AS a FROM t', []],
  ['a computed one beside a star', 'SELECT * EXCLUDE (a), a + 1 AS a FROM t', []],
  ['a replaced one', 'SELECT * REPLACE (a + 1 AS a) FROM t', []],
  ['a field of another', 'SELECT s.x.a FROM t AS s', []],
  ['a constant', 'SELECT 1 AS a', []],
  ['of a function', 'SELECT a FROM range(3) AS r (a)', []],
])('where a column comes from: %s', async (_, query, expected) => {
  const sources = await withDuckDB(':memory:', async connection => (await openQuery(connection, query))('a'));
  expect(sources.map(({ relation, column }) => `${relation}.${column}`)).toEqual(expected);
});
