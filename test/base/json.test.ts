import { expect, test } from 'vitest';
import { ExactNumber, parseJson, writeJson } from '../../src/base/json.ts';

test.each([
  '12345678901234567890',
  '-9007199254740993',
  '1.00000000000000000001',
  '0.1000000000000000055511151231257827',
  '1.2345678901234567e-300',
  '100000000000000000000000',
  '1e400',
  '-2.5E+999',
  '1e-400',
])('%s stays as it was written', number => {
  const text = `{"a":[1,${number},{"b":${number}}],"c":"${number}"}`;
  expect(writeJson(parseJson(text))).toBe(text);
  expect((parseJson(text) as { a: unknown[] }).a[1]).toEqual(new ExactNumber(number));
});

test.each(['1e300', '1e+020', '9007199254740991', '0.30000000000000004', '-1234567890.12345', '1234567890123456'])(
  '%s is a number as always',
  number => {
    expect(parseJson(`[${number}]`)).toEqual([Number(number)]);
  },
);

test('digits within texts stay texts, whatever quotation marks and backslashes lie around them', () => {
  const value = {
    a: 'x\\',
    b: '"12345678901234567890"',
    c: '\\"12345678901234567890',
    d: ',12345678901234567890,',
    e: '1e400, 1e-400',
    '"12345678901234567890': 1,
  };
  expect(parseJson(JSON.stringify(value))).toEqual(value);
});

test('a long number is found wherever in the text it lies', () => {
  for (let spaces = 0; spaces < 40; spaces++) {
    const text = `[${' '.repeat(spaces)}1234567890123456789]`;
    expect(writeJson(parseJson(text))).toBe('[1234567890123456789]');
  }
});

test('elsewhere it is written as JavaScript has it', () => {
  expect(JSON.stringify(parseJson('{"a":12345678901234567890}'))).toBe('{"a":12345678901234567000}');
});

test('the key __proto__ and a key that comes twice are taken as JSON.parse takes them', () => {
  const parsed = parseJson('{"__proto__":{"a":12345678901234567890},"b":1,"b":2}') as Record<string, unknown>;
  expect(Object.keys(parsed)).toEqual(['__proto__', 'b']);
  expect(writeJson(parsed)).toBe('{"__proto__":{"a":12345678901234567890},"b":2}');
});

test.each(['{"a":1234567890123456789x}', '[12345678901234567-8]', '', '[01234567890123456789]'])('%s is no JSON', text => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

test('beside and within what is nested 100,000 deep long numbers keep their digits', () => {
  const deep = (inner: string) => `${'['.repeat(100_000)}${inner}${']'.repeat(100_000)}`;
  const parsed = parseJson(`{"before":12345678901234567890,"deep":${deep('12345678901234567891')},"after":12345678901234567892}`);
  const { before, deep: nested, after } = parsed as Record<string, unknown>;
  expect([before, after]).toEqual([new ExactNumber('12345678901234567890'), new ExactNumber('12345678901234567892')]);
  let inner = nested;
  while (Array.isArray(inner)) inner = inner[0];
  expect(inner).toEqual(new ExactNumber('12345678901234567891'));
});

test('long numbers keep their digits wherever they stand: deep, in a row, behind texts, under a name that comes twice', () => {
  const same = [
    '[[],{},[[12345678901234567891]],"12345678901234567892",12345678901234567893,null,12345678901234567894]',
    '{"a":{"__proto__":12345678901234567895,"b":"\\"12345678901234567896,"},"c":-0.12345678901234567897,"d":[1,2,3]}',
    '12345678901234567898',
  ];
  for (const text of same) expect(writeJson(parseJson(text))).toBe(text);
  expect(writeJson(parseJson('{"a":12345678901234567890,"a":1,"b":[12345678901234567899]}'))).toBe('{"a":1,"b":[12345678901234567899]}');
});
