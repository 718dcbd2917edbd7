import { expect, test } from 'vitest';
import { csvField, parseCsv } from '../../src/base/csv.ts';

test.each([
  ['commas', 'a,b\n1,2\n', ['a|b', '1|2']],
  ['semicolons, as spreadsheets write them where the comma is the decimal sign', '\ufeffa;b\r\n1,5;2\r\n', ['a|b', '1,5|2']],
  ['tabs, and no line break at the end', 'a\tb\n1\t', ['a|b', '1|']],
  ['quotes around separators, breaks and quotes', '"a,b",c\n"1\r\n2","say ""no"""\n', ['a,b|c', '1\r\n2|say "no"']],
  ['an empty text and nothing, which are one', 'a,b,c\n"",,x', ['a|b|c', '||x']],
  ['a line that names the separator', 'sep=;\r\na;b,c\r\n1;2\r\n', ['a|b,c', '1|2']],
  ['lines without anything', '\n\na;b\n\n;\n1;2\n\n', ['a|b', '1|2']],
  ['line breaks of old machines', 'a,b\r1,2\r', ['a|b', '1|2']],
  ['nothing', '', []],
])('CSV is read: %s', (_, text, records) => {
  expect(parseCsv(text, 'a file').map(({ fields }) => fields.join('|'))).toEqual(records);
});

test('a record tells the line on which it begins', () => {
  expect(parseCsv('a,b\n\n"1\n2",3\n4,5', 'a file').map(({ line }) => line)).toEqual([1, 3, 5]);
});

test.each([
  ['a,b\n"1,2', 'a file, line 2: a field begins with a quote that nothing ends'],
  ['a,b\n1,"2"3', 'a file, line 2: something follows the end of a field in quotes: double a quote within it'],
  ['a,b\n"x\ny",5"', 'a file, line 3: a quote within a field: put the whole field in quotes, and double that one'],
])('wrong quotes name their line: %j', (text, message) => {
  expect(() => parseCsv(text, 'a file')).toThrow(message);
});

test('what is written as a field is read as it was', () => {
  const texts = ['', 'plain', 'a,b', 'say "no"', 'two\r\nlines', ' blanks ', "it's"];
  expect(parseCsv(`${texts.map(csvField).join(',')},end`, 'a file')).toEqual([{ line: 1, fields: [...texts, 'end'] }]);
});
