import { expect, test } from 'vitest';
import { createKeptRows, flag, json, number, oneOf, orNull, readRow, readRows, readValue, text } from '../../src/warehouse/rows.ts';

const holding = (...rows: (string | number | boolean | null)[][]) => ({ read: async () => rows });

test('a row is an object of the types of its columns', async () => {
  const shape = {
    userId: text,
    day: orNull(text),
    count: number,
    isOpen: flag,
    state: oneOf(['active', 'removed']),
    request: json<{ users: string[] }>(),
  };
  const rows = await readRows(holding(['ada', null, 3, true, 'active', '{"users":["ada"]}']), shape, 'SELECT');
  expect(rows).toEqual([{ userId: 'ada', day: null, count: 3, isOpen: true, state: 'active', request: { users: ['ada'] } }]);
});

test.each([
  [text, 71, 'column bpm: not a text: number'],
  [number, '71', 'column bpm: not a number: string'],
  [number, null, 'column bpm: not a number: null'],
  [flag, 1, 'column bpm: not a boolean: number'],
  [oneOf(['awake', 'rest']), 'workout', 'column bpm: not one of awake, rest: string'],
])('a value of another type is refused by the name of its column, and not shown', async (column, value, message) => {
  await expect(readRows(holding([value]), { bpm: column }, 'SELECT')).rejects.toThrow(new TypeError(message));
});

test('more values than columns are refused', async () => {
  await expect(readRows(holding(['ada', 1]), { userId: text }, 'SELECT')).rejects.toThrow('a row of 2 values for 1 columns');
});

test('no value is undefined, no row an error', async () => {
  expect(await readValue(holding(), text, 'SELECT')).toBeUndefined();
  await expect(readRow(holding(), { day: text }, 'SELECT')).rejects.toThrow('a query gave no row');
});

test('rows from memory are made once', () => {
  const toRows = createKeptRows({ userId: text });
  const kept = [['ada']];
  expect(toRows(kept)).toBe(toRows(kept));
  expect(toRows([['bo']])).toEqual([{ userId: 'bo' }]);
});
