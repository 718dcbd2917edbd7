import { useState } from 'preact/hooks';
import type { Catalogue } from '../../../api/sql.ts';

type Entry = Catalogue['entries'][number];

const GROUPS: readonly [Entry['group'], string][] = [
  ['views', 'Ask first'],
  ['documents', 'Documents'],
  ['series', 'Samples'],
  ['study', 'Study'],
  ['ledger', 'Ledger'],
  ['macros', 'Macros'],
  ['other', 'Made by others'],
];

/** What there is to ask; press a name for its columns. */
export function CataloguePanel({ entries, onExample }: { entries: readonly Entry[]; onExample(sql: string): void }) {
  const [wanted, setWanted] = useState('');
  const word = wanted.trim().toLowerCase();
  const found = entries.filter(({ name, columns }) =>
    [name, ...columns.map(one => one.name)].some(text => text.toLowerCase().includes(word)),
  );
  return (
    <aside class="card sql-catalogue" aria-labelledby="sql-there-is">
      <h2 id="sql-there-is">What there is</h2>
      <input
        type="search"
        aria-label="Find a table or a column"
        placeholder="table or column"
        value={wanted}
        onInput={event => setWanted(event.currentTarget.value)}
      />
      {!found.length && <p class="second">Nothing has “{wanted}” in its name.</p>}
      {GROUPS.map(([group, title]) => {
        const of = found.filter(entry => entry.group === group);
        return (
          of.length > 0 && (
            <section key={group}>
              <h3>{title}</h3>
              <ul>
                {of.map(entry => (
                  <li key={entry.name}>
                    <One entry={entry} word={word} onExample={onExample} />
                  </li>
                ))}
              </ul>
            </section>
          )
        );
      })}
    </aside>
  );
}

function One({ entry, word, onExample }: { entry: Entry; word: string; onExample(sql: string): void }) {
  const { name, kind, meaning, columns, calls, example } = entry;
  const [isOpen, setOpen] = useState(false);
  const count = columns.length ? `${columns.length} columns` : kind;
  return (
    <>
      <button type="button" class="sql-entry" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span>{name}</span> <span class="second">{count}</span>
      </button>
      {isOpen && (
        <div class="sql-about">
          <p>{meaning}</p>
          {calls.map(call => (
            <p key={call}>
              <code>{call}</code>
            </p>
          ))}
          {example !== null && (
            <button type="button" onClick={() => onExample(example)}>
              Put a first query<span class="unseen"> of {name}</span> into the editor
            </button>
          )}
          <dl>
            {columns.map(column => (
              <div key={column.name} class={word && column.name.toLowerCase().includes(word) ? 'sql-found' : ''}>
                <dt>
                  {column.name} <span class="second">{column.unit ?? column.type}</span>
                </dt>
                <dd>{column.meaning}</dd>
              </div>
            ))}
          </dl>
        </div>
      )}
    </>
  );
}
