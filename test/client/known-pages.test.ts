import { expect, test } from 'vitest';
import { findLastToken } from '../../src/client/pages.ts';

test.each([
  ['{"data":[{"id":"a"}],"next_token":"T1"}', 'T1'],
  ['{"data":[{"id":"a"}],"next_token" : null }\n', null],
  ['{"data":["😀"],"next_token":"\\u0041é"}', 'Aé'],
  ['{"next_token":"T1","data":[]}', undefined],
  ['{"data":[],"meta":{"next_token":"T1"}}', undefined],
  ['{"data":[{"next_token":"T1"}]}', undefined],
  ['{"data":["\\"next_token\\":null}"]}', undefined],
  ['{"data":[],"next_token":7}', undefined],
  ['{"data":[]}', undefined],
  [`{"data":[],"next_token":"${'x'.repeat(5_000)}"}`, undefined],
])('the next page of %s is read from its end alone: %o', (text, token) => {
  expect(findLastToken(Buffer.from(text))).toBe(token);
});
