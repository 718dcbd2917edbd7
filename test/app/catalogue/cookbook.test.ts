import { expect, test } from 'vitest';
import { parseCookbook, readCookbook } from '../../../src/app/catalogue/cookbook.ts';

test('each statement of the cookbook has the question of its chapter', () => {
  const page =
    '# Cookbook\n\n```sh\nls\n```\n\n## 1. Is `it`?\n\nText.\n\n```sql\nSELECT 1;\n```\n\n```text\n1\n```\n\n```sql\nSELECT 2\n```\n\n## 2. More\n';
  expect(parseCookbook(page)).toEqual([
    { question: 'Is it?', sql: 'SELECT 1;' },
    { question: 'Is it?', sql: 'SELECT 2' },
  ]);
});

test('the page that lies beside the program is found', () => {
  expect(readCookbook()[0]).toEqual({
    question: 'Did my heart rate variability fall in weeks with more stress?',
    sql: expect.stringMatching(/^SELECT user_id, count\(\*\) AS weeks,/),
  });
});
