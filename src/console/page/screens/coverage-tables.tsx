import type { AnswerOf } from '../../api/routes.ts';
import { setQuery } from '../location.ts';
import type { DataTable } from '../parts/data-table.ts';
import { Figure } from '../parts/figure.tsx';
import { pageFile, pageText } from '../parts/pages.ts';
import { stateWord } from './coverage-cell.tsx';

type Answer = AnswerOf<'GET coverage'>;

/** What is known and why, with counts; each leaves those people of whom it is known. */
export function Reasons({ answer, query }: { answer: Answer; query: URLSearchParams }) {
  const [state, reason] = [query.get('state'), query.get('reason')];
  return (
    <Figure
      title="Why"
      note="press a state to see its people alone"
      finding="Cells are people, collections and days."
      table={() => reasonTable(answer)}
      sql={answer.sql.reasons}
      file={`reasons-${answer.from}-${answer.to}`}
      hasPicture={false}
      hasTable={false}
    >
      <table>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Reason, from the ledger</th>
            <th scope="col" class="count">
              Cells
            </th>
            <th scope="col" class="count">
              People
            </th>
          </tr>
        </thead>
        <tbody>
          {answer.reasons.map(row => {
            const isChosen = state === row.state && reason === row.reason;
            return (
              <tr key={`${row.state} ${row.reason}`}>
                <td>
                  <button
                    type="button"
                    aria-pressed={isChosen}
                    onClick={() => setQuery({ state: isChosen ? null : row.state, reason: isChosen ? null : row.reason, page: null })}
                  >
                    {stateWord(row.state)}
                  </button>
                </td>
                <td>{row.reason || (row.state === 'stored' ? 'complete readings' : '—')}</td>
                <td class="count">{row.cells.toLocaleString('en')}</td>
                <td class="count">{row.people}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Figure>
  );
}

const reasonTable = ({ reasons }: Answer): DataTable => [
  { name: 'state', values: reasons.map(({ state }) => stateWord(state)) },
  { name: 'reason', values: reasons.map(({ reason }) => reason || null) },
  { name: 'cells', values: reasons.map(({ cells }) => cells) },
  { name: 'people', values: reasons.map(({ people }) => people) },
];

const percent = (share: number | null) => (share === null ? '—' : `${Math.round(share * 100)} %`);

/** Nights and wear of each person. */
export function Compliance({ answer }: { answer: Answer }) {
  const { people, from, to, hours, sql } = answer;
  const table: DataTable = [
    { name: 'person', values: people.map(({ id }) => id) },
    { name: 'nights', values: people.map(({ nights }) => nights) },
    {
      name: 'worn [% of what was recorded]',
      values: people.map(({ worn_share: share }) => (share === null ? null : Math.round(share * 1000) / 10)),
    },
    { name: `days worn for ${hours} h`, values: people.map(({ valid_days: days }) => days) },
  ];
  return (
    <Figure
      title="Compliance"
      finding={`Worn: of the time that was recorded. A day of which nothing was recorded is not valid.${pageText(answer)}`}
      table={() => table}
      sql={sql.compliance}
      file={`compliance-${from}-${to}${pageFile(answer)}`}
      hasPicture={false}
      hasTable={false}
    >
      <p class="second">
        <label>
          A valid day is worn for at least{' '}
          <input
            type="number"
            min={1}
            max={24}
            step={1}
            value={hours}
            onChange={({ currentTarget: field }) => field.reportValidity() && setQuery({ hours: field.value || null }, { replace: true })}
          />{' '}
          h
        </label>
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Person</th>
            <th scope="col" class="count">
              Nights
            </th>
            <th scope="col">Worn</th>
            <th scope="col" class="count">
              Valid days
            </th>
          </tr>
        </thead>
        <tbody>
          {people.map(({ id, nights, worn_share: share, valid_days: days }) => (
            <tr key={id}>
              <th scope="row">{id}</th>
              <td class="count">{nights}</td>
              <td class="share">
                <svg class="worn" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect width={100 * (share ?? 0)} height={8} />
                </svg>{' '}
                {percent(share)}
              </td>
              <td class="count">{days ?? '—'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Figure>
  );
}
