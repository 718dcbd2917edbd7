/** What a letter of coverage means: see `schema/queries/console/coverage.sql`. */
const WORDS: Readonly<Record<string, string>> = {
  s: 'stored',
  h: 'stored in part',
  e: 'empty at the service',
  u: 'not offered',
  f: 'failed',
  n: 'not authorised',
  p: 'pending',
  o: 'not asked',
  S: 'stored, but the last reading failed',
  H: 'stored in part, and the last reading failed',
};

export const letterWord = (letter: string): string => WORDS[letter] ?? 'unknown';

/** In the order of the legend. */
export const LETTERS = ['s', 'h', 'e', 'f', 'n', 'u', 'p', 'o', 'S'] as const;

export interface Place {
  row: number;
  column: number;
}

/** How the cells of a matrix lie on its canvas, in pixels of the page. */
export interface Layout {
  rows: number;
  columns: number;
  width: number;
  height: number;
}

export const ROW = 24;
const GAP = 2;

/** As wide as there is room for, and never too narrow to be pressed. */
export function layoutOf(rows: number, columns: number, room: number): Layout {
  const width = Math.max(10, Math.min(28, Math.floor(room / Math.max(1, columns))));
  return { rows, columns, width, height: ROW };
}

/** Where a cell is drawn, with a gap to its neighbours. */
export const boxOf = ({ width, height }: Layout, { row, column }: Place) => ({
  x: column * width,
  y: row * height + GAP,
  width: width - GAP,
  height: height - 2 * GAP,
});

/** The cell at a point; undefined beside all. */
export function placeAt({ rows, columns, width, height }: Layout, x: number, y: number): Place | undefined {
  const place = { row: Math.floor(y / height), column: Math.floor(x / width) };
  return place.row >= 0 && place.row < rows && place.column >= 0 && place.column < columns ? place : undefined;
}

/** Where a key leads; undefined: it leads nowhere. */
export function moveBy(
  key: string,
  { row, column }: Place,
  { rows, columns }: Pick<Layout, 'rows' | 'columns'>,
  withCtrl = false,
): Place | undefined {
  const moves: Readonly<Record<string, Place>> = {
    ArrowLeft: { row, column: column - 1 },
    ArrowRight: { row, column: column + 1 },
    ArrowUp: { row: row - 1, column },
    ArrowDown: { row: row + 1, column },
    Home: { row: withCtrl ? 0 : row, column: 0 },
    End: { row: withCtrl ? rows - 1 : row, column: columns - 1 },
    PageUp: { row: row - 10, column },
    PageDown: { row: row + 10, column },
  };
  const to = moves[key];
  return to && { row: within(to.row, rows), column: within(to.column, columns) };
}

const within = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
