import { expect, test } from 'vitest';
import { parseJson } from '../../src/base/json.ts';
import { HeartRateAnswer } from '../../src/warehouse/heart-rate-answer.ts';
import { below, randomFrom } from '../support/random-documents.ts';
import { isWhole } from '../support/whole.ts';

const ROW = '{"timestamp":"2025-01-15T00:00:00+00:00","timestamp_unix":1736899200000,"bpm":58,"source":"sleep"}';
const read = (text: string) => new HeartRateAnswer().readPage(Buffer.from(text));
const rowsOf = (text: string) => {
  const page = read(text);
  if (!page) return undefined;
  const { micros, offsets, bpm, sources, names } = page.rows;
  return { rows: micros.map((moment, i) => [moment, offsets[i], bpm[i], names[sources[i]!]]), nextToken: page.nextToken };
};

test('a page in the usual form is read from its bytes', () => {
  const other = '{"bpm":0,"source":"awake","timestamp":"2025-01-15T02:30:00.250-03:30","timestamp_unix":1736920800250}';
  expect(rowsOf(`{"data":[${ROW},${other}],"next_token":"a/b+c="}`)).toEqual({
    rows: [
      [1_736_899_200_000_000, 0, 58, 'sleep'],
      [1_736_920_800_250_000, -12_600, 0, 'awake'],
    ],
    nextToken: 'a/b+c=',
  });
});

test.each([
  ['null', '],"next_token":null}'],
  ['empty', '],"next_token":""}'],
  ['absent', ']}'],
  ['one of several members', '],"next_token":null,"total":1}'],
])('a last page is one whose next_token is %s', (_, tail) => {
  expect(rowsOf(`{"data":[${ROW}${tail}`)).toEqual({ rows: [[1_736_899_200_000_000, 0, 58, 'sleep']], nextToken: null });
});

test.each([
  ['no row', '{"data":[],"next_token":null}'],
  ['white space', `{"data": [${ROW}]}`],
  ['white space in a row', `{"data":[${ROW.replace(',', ', ')}]}`],
  ['something behind its end', `{"data":[${ROW}]}}`],
  ['no end', `{"data":[${ROW}`],
  ['a comma too many', `{"data":[${ROW},]}`],
  ['a second list of rows', `{"data":[${ROW}],"data":[]}`],
  ['a second list, whose name is escaped', `{"data":[${ROW}],"d\\u0061ta":[]}`],
  ['a next_token that is no text', `{"data":[${ROW}],"next_token":7}`],
  ['a member that is not known', `{"data":[${ROW.replace('}', ',"note":1}')}]}`],
  ['a key that comes twice', `{"data":[${ROW.replace('"source":"sleep"', '"bpm":58')}]}`],
  ['a key that is missing', `{"data":[${ROW.replace(',"source":"sleep"', '')}]}`],
  ['a row that is null', '{"data":[null]}'],
  ['a source that is not known', `{"data":[${ROW.replace('sleep', 'nap')}]}`],
  ['a source that goes on', `{"data":[${ROW.replace('sleep', 'sleeping')}]}`],
  ['a source that is escaped', `{"data":[${ROW.replace('sleep', 'sl\\u0065ep')}]}`],
  ['a rate with a fraction', `{"data":[${ROW.replace('58', '58.0')}]}`],
  ['a rate with a zero in front', `{"data":[${ROW.replace('58', '058')}]}`],
  ['a rate below zero', `{"data":[${ROW.replace('58', '-58')}]}`],
  ['a rate that is null', `{"data":[${ROW.replace('58', 'null')}]}`],
  ['a rate of too many digits', `{"data":[${ROW.replace('58', '9007199254740993')}]}`],
  ['a moment without an offset', `{"data":[${ROW.replace('+00:00', '')}]}`],
  ['a day that is none', `{"data":[${ROW.replace('-15', '-32')}]}`],
  ['two moments that differ', `{"data":[${ROW.replace('1736899200000', '1736899200001')}]}`],
  ['a page of HTML', '<html></html>'],
  ['nothing', ''],
])('a page with %s is left to be parsed', (_, text) => {
  expect(read(text)).toBeUndefined();
});

test('more rows than may come at once are left to be refused', () => {
  expect(read(`{"data":[${Array(250_001).fill(ROW).join(',')}]}`)).toBeUndefined();
});

const PIECES = [
  '"',
  ',',
  ':',
  '{',
  '}',
  '[',
  ']',
  ' ',
  '0',
  '9',
  '-',
  '.',
  'e',
  'Z',
  '\\',
  'T',
  'null',
  'bpm',
  '"source":',
  '"data":',
  'é',
  '\0',
];

test('whatever is done to a page, its bytes say what parsing it says, or nothing', () => {
  const random = randomFrom(20_251_128);
  const page = `{"data":[${[0, 1, 2].map(i => ROW.replaceAll('00:00+', `0${i}:00+`).replace('9200000', String(9_200_000 + i * 60_000))).join(',')}],"next_token":null}`;
  let usual = 0;
  for (let round = 0; round < (isWhole ? 2_000_000 : 20_000); round++) {
    let text = page;
    for (let edits = 1 + below(random, 3); edits > 0; edits--) {
      const at = below(random, text.length);
      const piece = below(random, 10) < 7 ? PIECES[below(random, PIECES.length)]! : text.slice(at, at + below(random, 60));
      text = text.slice(0, at) + piece + text.slice(at + below(random, 3));
    }
    const found = rowsOf(text);
    if (!found) continue;
    usual++;
    const parsed = parseJson(text) as { data: unknown[]; next_token?: string | null };
    const answer = new HeartRateAnswer();
    answer.add(parsed.data);
    const byParsing = [...answer.rows].map(({ micros, offset, bpm, source, drift }) => [micros, offset, bpm, source, drift]);
    const quick = new HeartRateAnswer();
    quick.addColumns(read(text)!.rows);
    expect([...quick.rows].map(({ micros, offset, bpm, source, drift }) => [micros, offset, bpm, source, drift])).toEqual(byParsing);
    expect([answer.rejected, found.nextToken || null]).toEqual([[], parsed.next_token || null]);
  }
  expect(usual).toBeGreaterThan(100);
});
