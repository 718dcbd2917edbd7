import { setQuery } from '../location.ts';
import { Act } from '../parts/act.tsx';
import { dayName, localText } from '../parts/format.ts';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';
import { Whole } from '../parts/whole.tsx';

const WORDS: Readonly<Record<string, string>> = {
  empty: 'empty at the service',
  not_offered: 'not offered',
  not_authorised: 'not authorised',
  not_asked: 'not asked',
};

export const stateWord = (state: string): string => WORDS[state] ?? state;

/** The keyboard goes on in the matrix: with its button the focus would be gone. */
function close(): void {
  setQuery({ cell: null }, { replace: true });
  document.querySelector<HTMLElement>('.matrix [role=grid]')?.focus();
}

/** One day of one person: of each collection its state, why, when it was read last and by which run. */
export function CellCard({ id, day }: { id: string; day: string }) {
  const cell = useAnswer('GET coverage/cell', { id, day });
  return (
    <section class="card coverage-cell" aria-label={`${id}, ${dayName(day)}`}>
      <h2>
        {id}, {dayName(day)} {day.slice(0, 4)}
      </h2>
      <button type="button" class="close" onClick={close}>
        Close
      </button>
      <Shown of={cell}>
        {({ sentence, rows }) => (
          <>
            <p role="status">{sentence}</p>
            <p>
              <Act
                action={{ name: 'backfill', users: [id], from: day, to: day }}
                label="Read again…"
                of={`${id}, ${day}`}
                onDone={cell.again}
              />
            </p>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
            <section class="rows" aria-label="Collections" tabIndex={0}>
              <table>
                <thead>
                  <tr>
                    <th scope="col">Collection</th>
                    <th scope="col">State</th>
                    <th scope="col">Reason</th>
                    <th scope="col" class="count">
                      Documents
                    </th>
                    <th scope="col">Last read, UTC</th>
                    <th scope="col">Run</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.collection.map((name, at) => (
                    <tr key={name}>
                      <th scope="row">{name}</th>
                      <td>{stateWord(rows.state[at] ?? '')}</td>
                      <td>{rows.reason[at] ?? '—'}</td>
                      <td class="count">{rows.documents[at]}</td>
                      <td>
                        <Whole text={readText(rows.read_at[at])} />
                      </td>
                      <td>{rows.run_kind[at] ? `${rows.run_kind[at]}, ${rows.run_state[at]}` : '—'}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          </>
        )}
      </Shown>
    </section>
  );
}

const readText = (at: number | null | undefined) => (at == null ? '—' : localText(at, 0));
