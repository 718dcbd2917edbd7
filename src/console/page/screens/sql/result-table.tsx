import { useRef, useState } from 'preact/hooks';
import { type Column, type Result, rowsText } from './result.ts';

/** Of one row, as sql.css has it. */
const ROW_PX = 28;
const BESIDE = 8;
const HEIGHT_PX = 420;
/** A browser draws no more of them side by side in time. */
const MOST_COLUMNS = 100;
const LONGEST_CELL = 300;
const LONGEST_WHOLE = 20_000;
const MEASURED = 200;

interface Place {
  row: number;
  column: number;
}

/** The rows of a result, of which only those in sight are drawn. Arrows move a cursor; the value under it is shown whole. */
export function ResultTable({ result: { columns, values, rows } }: { result: Result }) {
  const room = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [cursor, setCursor] = useState<Place | null>(null);
  const shown = columns.slice(0, MOST_COLUMNS);
  const first = Math.max(0, Math.min(Math.floor(top / ROW_PX), rows) - BESIDE);
  const last = Math.min(rows, first + Math.ceil(HEIGHT_PX / ROW_PX) + 2 * BESIDE);
  const move = (place: Place) => {
    setCursor(place);
    const { current } = room;
    if (!current) return;
    const at = place.row * ROW_PX;
    if (at < current.scrollTop) current.scrollTop = at;
    else if (at + 2 * ROW_PX > current.scrollTop + current.clientHeight) current.scrollTop = at + 2 * ROW_PX - current.clientHeight;
    document.getElementById(`sql-head-${place.column}`)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = movedBy(event, cursor, { rows, columns: shown.length });
    if (!next) return;
    event.preventDefault();
    move(next);
  };
  const onClick = ({ target }: MouseEvent) => {
    const cell = target instanceof Element ? target.closest<HTMLElement>('td[data-row]') : null;
    if (cell) setCursor({ row: Number(cell.dataset.row), column: Number(cell.dataset.column) });
  };
  const drawn = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
  return (
    <>
      <div class="sql-rows" ref={room} onScroll={event => setTop(event.currentTarget.scrollTop)}>
        <table
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: it is a table, whose cells a cursor goes through
          role="grid"
          aria-label="Result"
          aria-rowcount={rows + 1}
          aria-colcount={shown.length}
          aria-activedescendant={cursor ? `sql-cell-${cursor.row}-${cursor.column}` : undefined}
          tabIndex={0}
          onKeyDown={onKeyDown}
          onClick={onClick}
        >
          <colgroup>
            {shown.map((column, at) => (
              <col key={at} style={{ width: `${widthOf(column, values[at] ?? [])}ch` }} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {shown.map(({ name, type, numeric }, at) => (
                <th key={at} id={`sql-head-${at}`} scope="col" class={numeric ? 'number' : ''}>
                  <bdi>{name}</bdi> <small>{type}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Space rows={first} />
            {drawn.map(row => (
              <tr key={row} aria-rowindex={row + 2}>
                {shown.map(({ numeric }, at) => (
                  <td
                    key={at}
                    id={`sql-cell-${row}-${at}`}
                    class={`${numeric ? 'number' : ''}${cursor?.row === row && cursor.column === at ? ' here' : ''}`}
                    data-row={row}
                    data-column={at}
                  >
                    <Value text={values[at]?.[row] ?? null} numeric={numeric} />
                  </td>
                ))}
              </tr>
            ))}
            <Space rows={rows - last} />
          </tbody>
        </table>
      </div>
      {columns.length > MOST_COLUMNS && (
        <p class="second">
          The first {MOST_COLUMNS} of {columns.length} columns are shown; CSV has them all.
        </p>
      )}
      {cursor && <Whole column={columns[cursor.column]} row={cursor.row} text={values[cursor.column]?.[cursor.row] ?? null} />}
    </>
  );
}

/** Takes the room of rows that are not drawn. */
const Space = ({ rows }: { rows: number }) =>
  rows > 0 ? (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it takes the focus
    <tr class="space" aria-hidden="true">
      <td style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  ) : null;

function Value({ text, numeric }: { text: string | null; numeric: boolean }) {
  if (text === null) return <span class="null">NULL</span>;
  if (numeric) return <>{text.replace(/^-/, '−')}</>;
  return <bdi>{text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL)}…` : text}</bdi>;
}

function Whole({ column, row, text }: { column: Column | undefined; row: number; text: string | null }) {
  const rest = (text?.length ?? 0) - LONGEST_WHOLE;
  return (
    <div class="sql-whole" role="status">
      <span class="second">
        Row {row + 1}, <bdi>{column?.name}</bdi>:
      </span>{' '}
      {text === null ? <span class="null">NULL</span> : <pre>{text.slice(0, LONGEST_WHOLE)}</pre>}
      {rest > 0 && <span class="second">… and {rest} characters more</span>}
    </div>
  );
}

function movedBy(
  { key, ctrlKey }: KeyboardEvent,
  cursor: Place | null,
  { rows, columns }: { rows: number; columns: number },
): Place | undefined {
  const page = Math.floor(HEIGHT_PX / ROW_PX) - 2;
  const steps: Readonly<Record<string, [number, number]>> = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-page, 0],
    PageDown: [page, 0],
    Home: [ctrlKey ? -rows : 0, -columns],
    End: [ctrlKey ? rows : 0, columns],
  };
  const step = steps[key];
  if (!step || !rows) return undefined;
  if (!cursor && key.startsWith('Arrow')) return { row: 0, column: 0 };
  const within = (to: number, most: number) => Math.max(0, Math.min(most - 1, to));
  return { row: within((cursor?.row ?? 0) + step[0], rows), column: within((cursor?.column ?? 0) + step[1], columns) };
}

/** As wide as its name and its first values are, in characters. */
function widthOf({ name, type }: Column, values: readonly (string | null)[]): number {
  const longest = values.slice(0, MEASURED).reduce((most, text) => Math.max(most, text?.length ?? 4), name.length + 1 + type.length * 0.9);
  return Math.min(48, Math.max(6, longest)) + 3;
}

/** `90 rows`, `100,000 rows, cut`: what stands over the table. */
export const headOf = ({ rows, end }: Result) => `${rowsText(rows)}${end?.cut ? ', cut' : ''}`;
