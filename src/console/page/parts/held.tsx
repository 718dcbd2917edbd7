import { useRef, useState } from 'preact/hooks';
import './held.css';

interface HeldRows<Row> {
  rows: readonly Row[];
  /** How many rows there are that are not shown. */
  waiting: number;
  /** Whether those that are shown would stand in another order. */
  isReordered: boolean;
}

export interface Held<Row> extends HeldRows<Row> {
  show(): void;
}

interface Rules<Row> {
  keyOf(row: Row): string;
  /** Whether a row that the newest answer does not have stays until the others are shown. */
  mayStay(row: Row): boolean;
}

/** What somebody reads is brought up to date where it stands; what is new, or stands elsewhere now, waits. */
export function holdRows<Row>(before: readonly Row[], latest: readonly Row[], { keyOf, mayStay }: Rules<Row>): HeldRows<Row> {
  const now = new Map(latest.map(row => [keyOf(row), row]));
  const rows = before.flatMap(row => now.get(keyOf(row)) ?? (mayStay(row) ? [row] : []));
  const shown = new Set(rows.map(keyOf));
  const order = latest.map(keyOf).filter(key => shown.has(key));
  const stays = [...shown].filter(key => now.has(key));
  return { rows, waiting: now.size - order.length, isReordered: stays.some((key, at) => key !== order[at]) };
}

/** Holds the rows of an answer until somebody wants the new ones; another question shows its own at once. */
export function useHeld<Row>(question: string, latest: readonly Row[], rules: Rules<Row>): Held<Row> {
  const before = useRef({ question, rows: latest });
  const [, draw] = useState(0);
  const isSame = before.current.question === question && before.current.rows.length > 0;
  const held = isSame ? holdRows(before.current.rows, latest, rules) : { rows: latest, waiting: 0, isReordered: false };
  before.current = { question, rows: held.rows };
  const show = () => {
    before.current = { question, rows: latest };
    draw(count => count + 1);
  };
  return { ...held, show };
}

interface WaitingProps {
  held: Held<unknown>;
  /** What the rows are: `events`. */
  of: string;
  /** Where the eye and the keyboard go on. */
  target(): HTMLElement | null | undefined;
}

/** The button that shows what waits, over the page, so that nothing moves when it comes. */
export function Waiting({ held: { waiting, isReordered, show }, of, target }: WaitingProps) {
  const press = () => {
    show();
    // The button is gone then, and the focus with it.
    requestAnimationFrame(() => target()?.focus());
  };
  const isThere = waiting > 0 || isReordered;
  return (
    <div class="waiting">
      {/* Told once, not with each that comes. */}
      <span class="unseen" role="status">
        {isThere && (waiting > 0 ? `There are new ${of}.` : `The order of the ${of} is another now.`)}
      </span>
      {isThere && (
        <button type="button" onClick={press}>
          {waiting > 0 ? `${waiting} new` : 'New order'}
          <span class="unseen"> {of}</span>
        </button>
      )}
    </div>
  );
}
