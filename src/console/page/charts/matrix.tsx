import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { addDays, dayName, shortDay } from '../parts/format.ts';
import { useScheme } from '../parts/scheme.ts';
import './matrix.css';
import { coloursOf, drawCell, drawMatrix } from './matrix-draw.ts';
import { LETTERS, layoutOf, letterWord, moveBy, type Place, placeAt } from './matrix-model.ts';

interface Row {
  id: string;
  letters: string;
}

interface MatrixProps {
  rows: readonly Row[];
  /** The day of the first letter. */
  from: string;
  onOpen(id: string, day: string): void;
}

/** People by days on a canvas, told apart by shape; a grid for the keyboard and for those who do not see it. */
export function Matrix({ rows, from, onOpen }: MatrixProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const grid = useRef<HTMLTableElement>(null);
  const room = useRef<HTMLDivElement>(null);
  const id = useId();
  const width = useWidth(room);
  const scheme = useScheme();
  const [at, setAt] = useState<Place>({ row: 0, column: 0 });
  const [hovered, setHovered] = useState<Place | null>(null);
  const columns = rows[0]?.letters.length ?? 0;
  const layout = layoutOf(rows.length, columns, width);
  const letters = rows.map(row => row.letters);
  const here: Place = { row: Math.min(at.row, rows.length - 1), column: Math.min(at.column, columns - 1) };
  useLayoutEffect(() => {
    if (!canvas.current) return;
    drawMatrix(canvas.current, letters, layout);
    // What is drawn, for who reads it by a script.
    Object.assign(canvas.current, { __data__: { rows, from, layout } });
  }, [letters.join(), layout.width, scheme]);
  const dayAt = (place: Place) => addDays(from, place.column);
  const press = (place: Place) => {
    const row = rows[place.row];
    setAt(place);
    if (row) onOpen(row.id, dayAt(place));
  };
  const onKey = (event: KeyboardEvent) => {
    const to = moveBy(event.key, here, layout, event.ctrlKey);
    if (!to && event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    event.stopPropagation();
    if (to) setAt(to);
    else press(here);
  };
  const shown = hovered ?? here;
  const tell = (place: Place) =>
    `${rows[place.row]?.id ?? ''}, ${dayName(dayAt(place))}: ${letterWord(rows[place.row]?.letters[place.column] ?? '')}`;
  const box = (place: Place) => ({ column: place.column * layout.width, row: place.row * layout.height });
  return (
    <div class="matrix-room" ref={room}>
      <div class="matrix">
        <table
          ref={grid}
          class="unseen"
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table that is walked through, with the cell of the cursor in it
          role="grid"
          aria-label="Coverage of people by days"
          aria-rowcount={rows.length}
          aria-colcount={columns}
          aria-activedescendant={`${id}c`}
          tabIndex={0}
          onKeyDown={onKey}
        >
          <tbody>
            <tr aria-rowindex={here.row + 1}>
              <td id={`${id}c`} aria-colindex={here.column + 1} aria-live="polite">
                {tell(here)}
              </td>
            </tr>
          </tbody>
        </table>
        <Days from={from} columns={columns} width={layout.width} />
        <div class="matrix-cells">
          <canvas
            ref={canvas}
            onClick={event => {
              const place = placeAt(layout, event.offsetX, event.offsetY);
              if (!place) return;
              grid.current?.focus();
              press(place);
            }}
            onMouseMove={event => setHovered(placeAt(layout, event.offsetX, event.offsetY) ?? null)}
            onMouseLeave={() => setHovered(null)}
          />
          <Cursor {...box(here)} width={layout.width} height={layout.height} />
        </div>
      </div>
      <p class="second matrix-told" aria-hidden="true">
        {tell(shown)}
      </p>
    </div>
  );
}

function Cursor({ column, row, width, height }: { column: number; row: number; width: number; height: number }) {
  const element = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const style = element.current?.style;
    style?.setProperty('transform', `translate(${column - 1}px, ${row}px)`);
    style?.setProperty('width', `${width}px`);
    style?.setProperty('height', `${height}px`);
  });
  // It is there, and can be scrolled to, while the grid has the focus.
  useLayoutEffect(() => element.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [column, row]);
  return <span ref={element} class="matrix-cursor" />;
}

/** A day above each Monday's column, where there is room. */
function Days({ from, columns, width }: { from: string; columns: number; width: number }) {
  const every = Math.max(7, 7 * Math.ceil(52 / (7 * width)));
  const marked = Array.from({ length: columns }, (_, column) => column).filter(column => column % every === 0);
  return (
    <svg class="matrix-days" width={columns * width} height={18} aria-hidden="true">
      {marked.map(column => (
        <text key={column} x={column * width} y={12}>
          {shortDay(addDays(from, column))}
        </text>
      ))}
    </svg>
  );
}

/** Each shape with its words. */
export function Legend() {
  const scheme = useScheme();
  return (
    <ul class="matrix-legend">
      {LETTERS.map(letter => (
        <li key={letter}>
          <Sample letter={letter} scheme={scheme} /> {letterWord(letter)}
        </li>
      ))}
    </ul>
  );
}

function Sample({ letter, scheme }: { letter: string; scheme: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || !canvas.current?.parentElement) return;
    context.reset();
    context.scale(2, 2);
    drawCell(context, letter, { x: 0, y: 0, width: 14, height: 14 }, coloursOf(canvas.current.parentElement));
  }, [letter, scheme]);
  return <canvas ref={canvas} class="matrix-sample" width={28} height={28} />;
}

function useWidth(room: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const element = room.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return width;
}
