import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { csvOf, type DataTable, rowCountOf } from './data-table.ts';
import { Link } from './link.tsx';
import { pictureOf, save } from './save.ts';

interface FigureProps {
  title: string;
  /** Beside the title: period, unit. */
  note?: ComponentChildren;
  /** What the chart shows, in a sentence. */
  finding: ComponentChildren;
  /** The numbers of the chart; made when somebody wants them. */
  table(): DataTable;
  /** The query that answers the same. */
  sql?: string | undefined;
  /** Name of what is saved, without its ending: `ada-2026-11-22-night`. */
  file: string;
  children: ComponentChildren;
  class?: string;
  /** False where there is nothing drawn but text. */
  hasPicture?: boolean;
  /** False where it is a table itself. */
  hasTable?: boolean;
}

/** A chart with its finding, and the same as a table, a query, a CSV file and a picture. */
export function Figure({ title, note, finding, table, sql, file, children, class: name = '', ...has }: FigureProps) {
  const { hasPicture = true, hasTable = true } = has;
  const [open, setOpen] = useState<'table' | 'sql' | null>(null);
  const plot = useRef<HTMLDivElement>(null);
  const id = useId();
  const toggle = (part: 'table' | 'sql') => () => setOpen(open === part ? null : part);
  const savePicture = async () => {
    if (plot.current) save(await pictureOf(plot.current, title), `${file}.png`);
  };
  return (
    <figure class={`card figure ${name}`} aria-labelledby={`${id}t`}>
      <header>
        <h2 id={`${id}t`}>{title}</h2>
        {note !== undefined && <span class="second">{note}</span>}
        <span class="figure-tools">
          {hasTable && (
            <button type="button" aria-expanded={open === 'table'} onClick={toggle('table')}>
              Table<span class="unseen"> of {title}</span>
            </button>
          )}
          {sql !== undefined && (
            <button type="button" aria-expanded={open === 'sql'} onClick={toggle('sql')}>
              SQL<span class="unseen"> of {title}</span>
            </button>
          )}
          <button type="button" onClick={() => save(new Blob([csvOf(table())], { type: 'text/csv' }), `${file}.csv`)}>
            CSV<span class="unseen"> of {title}</span>
          </button>
          {hasPicture && (
            <button type="button" onClick={() => void savePicture()}>
              PNG<span class="unseen"> of {title}</span>
            </button>
          )}
        </span>
      </header>
      <div ref={plot}>{children}</div>
      <figcaption class="second">{finding}</figcaption>
      {open === 'table' && <Rows of={table()} label={title} />}
      {open === 'sql' && sql !== undefined && <Query sql={sql} />}
    </figure>
  );
}

const PAGE = 200;

/** A real table, 200 rows at a time. */
export function Rows({ of: table, label }: { of: DataTable; label: string }) {
  const [from, setFrom] = useState(0);
  const count = rowCountOf(table);
  const until = Math.min(from + PAGE, count);
  const rows = Array.from({ length: until - from }, (_, index) => from + index);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="rows" aria-label={`Table: ${label}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {table.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={row}>
              {table.map(({ name, values }) => (
                <td key={name}>{values[row] ?? '—'}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {count > PAGE && (
        <p>
          Rows {from + 1} to {until} of {count}{' '}
          <Button isOff={from === 0} onPress={() => setFrom(Math.max(0, from - PAGE))}>
            Before
          </Button>{' '}
          <Button isOff={until === count} onPress={() => setFrom(until)}>
            After
          </Button>
        </p>
      )}
    </section>
  );
}

function Query({ sql }: { sql: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="rows" aria-label="SQL" tabIndex={0}>
      <pre>{sql}</pre>
      <Link to={`/sql#${new URLSearchParams({ q: sql })}`}>Ask it, or another like it</Link>
    </section>
  );
}
