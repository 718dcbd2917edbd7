import { expect, test } from 'vitest';
import { boxOf, layoutOf, letterWord, moveBy, placeAt } from '../../../src/console/page/charts/matrix-model.ts';

test('cells are as wide as there is room, and a point finds its cell', () => {
  expect([layoutOf(3, 60, 1200), layoutOf(3, 60, 300), layoutOf(3, 4, 1200)].map(({ width }) => width)).toEqual([20, 10, 28]);
  const layout = layoutOf(3, 60, 1200);
  const { x, y, width, height } = boxOf(layout, { row: 2, column: 7 });
  expect([x, y, width, height]).toEqual([140, 50, 18, 20]);
  expect([placeAt(layout, x, y), placeAt(layout, x + width, y + height), placeAt(layout, 1200, 0), placeAt(layout, -1, 0)]).toEqual([
    { row: 2, column: 7 },
    { row: 2, column: 7 },
    undefined,
    undefined,
  ]);
});

test('keys lead from cell to cell and never beyond the matrix', () => {
  const size = { rows: 3, columns: 5 };
  const move = (key: string, row: number, column: number, ctrl = false) => moveBy(key, { row, column }, size, ctrl);
  expect(move('ArrowRight', 0, 4)).toEqual({ row: 0, column: 4 });
  expect(move('ArrowDown', 0, 4)).toEqual({ row: 1, column: 4 });
  expect(move('Home', 2, 3)).toEqual({ row: 2, column: 0 });
  expect(move('End', 0, 0, true)).toEqual({ row: 2, column: 4 });
  expect(move('PageUp', 2, 1)).toEqual({ row: 0, column: 1 });
  expect(move('a', 2, 1)).toBe(undefined);
});

test('every letter has its words', () => {
  expect([...'shefunpoSH'].map(letterWord)).toEqual([
    'stored',
    'stored in part',
    'empty at the service',
    'failed',
    'not offered',
    'not authorised',
    'pending',
    'not asked',
    'stored, but the last reading failed',
    'stored in part, and the last reading failed',
  ]);
});
