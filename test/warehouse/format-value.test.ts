import type { DuckDBConnection } from '@duckdb/node-api';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { formatJson, formatText } from '../../src/warehouse/readers/format-value.ts';

// What is expected here is what the command line of DuckDB 1.5.6 printed, with -json and with -csv.

let connection: DuckDBConnection;
beforeAll(async () => {
  connection = await (await DuckDBInstance.create(':memory:')).connect();
});
afterAll(() => connection.closeSync());
afterEach(() => {
  vi.unstubAllEnvs();
});

async function formats(expression: string): Promise<[string, string | null]> {
  const result = await connection.run(`SELECT ${expression}`);
  const [[value]] = (await result.getRows()) as [[never]];
  return [formatJson(value, result.columnType(0)), formatText(value, result.columnType(0))];
}

describe('at the top', () => {
  test.each<[string, string, string | null]>([
    ['NULL', 'null', null],
    ['true', 'true', 'true'],
    ['1::TINYINT', '1', '1'],
    ['-7::BIGINT', '-7', '-7'],
    ['9007199254740991', '9007199254740991', '9007199254740991'],
    ['18446744073709551615::UBIGINT', '"18446744073709551615"', '18446744073709551615'],
    ['42::HUGEINT', '"42"', '42'],
    [
      '170141183460469231731687303715884105727::HUGEINT',
      '"170141183460469231731687303715884105727"',
      '170141183460469231731687303715884105727',
    ],
    ['1.50::DECIMAL(10,2)', '"1.50"', '1.50'],
    ['-0.5::DECIMAL(4,1)', '"-0.5"', '-0.5'],
    ['1.5::DOUBLE', '1.5', '1.5'],
    ['1.0::DOUBLE', '1.0', '1.0'],
    ['-0.0::DOUBLE', '-0.0', '-0.0'],
    ['100::DOUBLE', '100.0', '100.0'],
    ['1e15::DOUBLE', '1000000000000000.0', '1000000000000000.0'],
    ['1e16::DOUBLE', '10000000000000000.0', '1e+16'],
    ['1e20::DOUBLE', '100000000000000000000.0', '1e+20'],
    ['1e21::DOUBLE', '1e21', '1e+21'],
    ['1.5e22::DOUBLE', '1.5e22', '1.5e+22'],
    ['12345678901234567::DOUBLE', '12345678901234568.0', '1.2345678901234568e+16'],
    ['123456789012345678::DOUBLE', '123456789012345680.0', '1.2345678901234568e+17'],
    ['1e300::DOUBLE', '1e300', '1e+300'],
    ['0.001::DOUBLE', '0.001', '0.001'],
    ['0.0001::DOUBLE', '0.0001', '0.0001'],
    ['0.00001::DOUBLE', '0.00001', '1e-05'],
    ['1.23e-6::DOUBLE', '0.00000123', '1.23e-06'],
    ['-1.5e-7::DOUBLE', '-1.5e-7', '-1.5e-07'],
    ['5e-324::DOUBLE', '5e-324', '5e-324'],
    ['1.7976931348623157e308::DOUBLE', '1.7976931348623157e308', '1.7976931348623157e+308'],
    [`'nan'::DOUBLE`, 'NaN', 'nan'],
    [`'inf'::DOUBLE`, 'Infinity', 'inf'],
    [`'-inf'::DOUBLE`, '-Infinity', '-inf'],
    ['0.1::FLOAT', '0.10000000149011612', '0.1'],
    ['1.0::FLOAT', '1.0', '1.0'],
    ['123456789.123::FLOAT', '123456792.0', '123456790.0'],
    ['3.4e38::FLOAT', '3.3999999521443642e38', '3.4e+38'],
    ['1e-5::FLOAT', '0.000009999999747378752', '1e-05'],
    [`'x"y' || chr(10) || 'z' || chr(9) || 'é'`, '"x\\"y\\nz\\té"', 'x"y\nz\té'],
    [`''`, '""', ''],
    ['chr(31)', '"\\u001f"', '\u001f'],
    [`DATE '2025-01-02'`, '"2025-01-02"', '2025-01-02'],
    [`DATE '0044-03-15 (BC)'`, '"0044-03-15 (BC)"', '0044-03-15 (BC)'],
    [`DATE 'infinity'`, '"infinity"', 'infinity'],
    [`DATE '-infinity'`, '"-infinity"', '-infinity'],
    [`TIMESTAMP '2025-01-02 03:04:05.5'`, '"2025-01-02 03:04:05.5"', '2025-01-02 03:04:05.5'],
    [`TIMESTAMP '2025-01-02'`, '"2025-01-02 00:00:00"', '2025-01-02 00:00:00'],
    [`TIMESTAMP 'infinity'`, '"infinity"', 'infinity'],
    [`'2025-01-02 03:04:05'::TIMESTAMP_S`, '"2025-01-02 03:04:05"', '2025-01-02 03:04:05'],
    [`'2025-01-02 03:04:05.123456789'::TIMESTAMP_NS`, '"2025-01-02 03:04:05.123456789"', '2025-01-02 03:04:05.123456789'],
    [`TIME '01:02:03'`, '"01:02:03"', '01:02:03'],
    [`'01:02:03+05:45'::TIMETZ`, '"01:02:03+05:45"', '01:02:03+05:45'],
    [`INTERVAL '1 month 2 days'`, '"1 month 2 days"', '1 month 2 days'],
    [`UUID '00000000-0000-0000-0000-000000000001'`, '"00000000-0000-0000-0000-000000000001"', '00000000-0000-0000-0000-000000000001'],
    [`'a\\x00b'::BLOB`, '"a\\\\x00b"', 'a\\x00b'],
    [`'101'::BIT`, '"101"', '101'],
    [`'a'::ENUM('a', 'b')`, '"a"', 'a'],
    [`'{"a": [1,  2]}'::JSON`, '{"a": [1,  2]}', '{"a": [1,  2]}'],
    [`'null'::JSON`, 'null', 'null'],
    ['42::VARIANT', '42', '42'],
  ])('%s is %s in JSON, %s as text', async (expression, json, text) => {
    expect(await formats(expression)).toEqual([json, text]);
  });
});

describe('inside of another', () => {
  test.each([
    ['[1, 2, NULL]', '[1,2,null]', '[1, 2, NULL]'],
    ['[]::INTEGER[]', '[]', '[]'],
    [`['a', 'b"c']`, '["a","b\\"c"]', `[a, 'b"c']`],
    [`{'a': 1, 'b': 'x', 'c': NULL}`, '{"a":1,"b":"x","c":null}', `{'a': 1, 'b': x, 'c': NULL}`],
    [`{'a b': 1, 'x''y': 2, 'p\\q': 3}`, `{"a b":1,"x'y":2,"p\\\\q":3}`, `{'a b': 1, 'x\\'y': 2, 'p\\\\q': 3}`],
    [`MAP {'k': 1, 'j': 2}`, '{"k":1,"j":2}', '{k=1, j=2}'],
    [`MAP {1: 'x'}`, '{"1":"x"}', '{1=x}'],
    [`MAP {[1]: 2}`, '{"[1]":2}', '{[1]=2}'],
    [`MAP {'a b': 'c', 'p=': '', 'null': 'NULL'}`, '{"a b":"c","p=":"","null":"NULL"}', `{a b=c, 'p='='', 'null'='NULL'}`],
    [`[DATE '2025-01-02']`, '["2025-01-02"]', '[2025-01-02]'],
    [`[TIMESTAMP '2025-01-01']`, '["2025-01-01 00:00:00"]', `['2025-01-01 00:00:00']`],
    [`[1.5::DOUBLE, 'nan'::DOUBLE, 'inf'::DOUBLE]`, '[1.5,NaN,Infinity]', '[1.5, nan, inf]'],
    ['[[1], [2]]', '[[1],[2]]', '[[1], [2]]'],
    [`[['a,b']]`, '[["a,b"]]', `[['a,b']]`],
    ['array_value(1, 2)', '[1,2]', '[1, 2]'],
    ['union_value(k := 1)', '{"k":1}', '1'],
    [`[union_value(k := 'a,b')]`, '[{"k":"a,b"}]', '[a,b]'],
    [`[{'a': 1}]`, '[{"a":1}]', `[{'a': 1}]`],
    ['[1.50::DECIMAL(10,2)]', '[1.5]', '[1.50]'],
    ['[100::DECIMAL(4,0)]', '[100.0]', '[100]'],
    ['[1.5::DECIMAL(15,3)]', '[1.5]', '[1.500]'],
    ['[1.5::DECIMAL(16,3)]', '[1.500]', '[1.500]'],
    [`[INTERVAL '1 day']`, '["1 day"]', '[1 day]'],
    [`['{"q":1}'::JSON]`, '[{"q":1}]', '[{"q":1}]'],
    ['[42::HUGEINT]', '[42]', '[42]'],
    [`['a\\x00,'::BLOB]`, '["a\\\\x00,"]', `['a\\\\x00,']`],
    [
      `['', ' a', 'a ', 'a b', 'nUll', 'a(b', 'a:b', 'a=b', 'a]b', 'a;b', '(', 'é']`,
      '[""," a","a ","a b","nUll","a(b","a:b","a=b","a]b","a;b","(","é"]',
      `['', ' a', 'a ', a b, 'nUll', 'a(b', 'a:b', 'a=b', 'a]b', a;b, '(', é]`,
    ],
    [`['a\\b''c']`, `["a\\\\b'c"]`, `['a\\\\b\\'c']`],
    [
      `[0.1::FLOAT, 16777216::FLOAT, 1.17549435e-38::FLOAT]`,
      '[0.10000000149011612,16777216.0,1.1754943508222875e-38]',
      '[0.1, 16777216.0, 1.1754944e-38]',
    ],
  ])('%s is %s in JSON, %s as text', async (expression, json, text) => {
    expect(await formats(expression)).toEqual([json, text]);
  });
});

test('whole numbers that JavaScript cannot hold are strings in JSON, wherever they are', async () => {
  expect(await formats('9007199254740993')).toEqual(['"9007199254740993"', '9007199254740993']);
  expect(await formats('-9007199254740993')).toEqual(['"-9007199254740993"', '-9007199254740993']);
  expect(await formats(`{'a': [9007199254740993, 1]}`)).toEqual(['{"a":["9007199254740993",1]}', `{'a': [9007199254740993, 1]}`]);
});

test('JSON with line breaks between its tokens stays on one line', async () => {
  expect((await formats(`'{"a":\n  1}'::JSON`))[0]).toBe('{"a": 1}');
});

test.each([
  ['UTC', '2025-07-01 12:00:00+00', '2025-01-01 12:00:00+00'],
  ['America/New_York', '2025-07-01 08:00:00-04', '2025-01-01 07:00:00-05'],
  ['Asia/Kathmandu', '2025-07-01 17:45:00+05:45', '2025-01-01 17:45:00+05:45'],
])('a moment with a zone is written in the zone %s with its offset at that moment', async (zone, summer, winter) => {
  vi.stubEnv('TZ', zone);
  expect(await formats(`TIMESTAMPTZ '2025-07-01 12:00:00+00'`)).toEqual([`"${summer}"`, summer]);
  expect(await formats(`TIMESTAMPTZ '2025-01-01 12:00:00+00'`)).toEqual([`"${winter}"`, winter]);
  expect(await formats(`TIMESTAMPTZ 'infinity'`)).toEqual(['"infinity"', 'infinity']);
});
