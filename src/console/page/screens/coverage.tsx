import type { AnswerOf } from '../../api/routes.ts';
import { Legend, Matrix } from '../charts/matrix.tsx';
import { letterWord } from '../charts/matrix-model.ts';
import { setQuery, usePlace } from '../location.ts';
import { Act } from '../parts/act.tsx';
import { Button, PassingButton } from '../parts/button.tsx';
import type { DataTable } from '../parts/data-table.ts';
import { DateField } from '../parts/date-field.tsx';
import { Figure } from '../parts/figure.tsx';
import { addDays } from '../parts/format.ts';
import { Link } from '../parts/link.tsx';
import { pageFile, pageText } from '../parts/pages.ts';
import { useSession } from '../parts/session.tsx';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';
import './coverage.css';
import { CellCard } from './coverage-cell.tsx';
import { Group } from './coverage-group.tsx';
import { Compliance, Reasons } from './coverage-tables.tsx';

type Answer = AnswerOf<'GET coverage'>;

const FILTERS = ['from', 'to', 'collection', 'state', 'reason', 'page'] as const;

function filtersOf(query: URLSearchParams) {
  const given = Object.fromEntries(FILTERS.flatMap(name => (query.get(name) ? [[name, query.get(name)]] : [])));
  return { ...given, sort: query.get('sort') === 'name' ? ('name' as const) : ('missing' as const) };
}

/** People by days: what is stored, what is missing, and why. */
export function Coverage() {
  const { query } = usePlace();
  const session = useSession();
  const filters = filtersOf(query);
  const hours = query.get('hours');
  const coverage = useAnswer('GET coverage', hours ? { ...filters, hours } : filters);
  const [id, day] = (query.get('cell') ?? '').split(/\/(?=[^/]*$)/);
  return (
    <>
      <h1>Coverage</h1>
      {!coverage.answer && coverage.error && <Choices answer={undefined} query={query} />}
      <Shown of={coverage}>
        {answer => (
          <>
            <p class="sentence" role="status">
              {answer.sentence}
            </p>
            <Choices answer={answer} query={query} />
            <MatrixCard answer={answer} open={id && day ? { id, day } : null} />
            {id && day && <CellCard id={id} day={day} />}
            <div class="coverage-two">
              <div>
                <Reasons answer={answer} query={query} />
                {session?.role !== 'person' && <Group input={filters} />}
              </div>
              <Compliance answer={answer} />
            </div>
          </>
        )}
      </Shown>
    </>
  );
}

/** Also where the days that were asked for cannot be answered: then others can be chosen. */
function Choices({ answer, query }: { answer: Answer | undefined; query: URLSearchParams }) {
  const [from, to] = [answer?.from ?? query.get('from') ?? '', answer?.to ?? query.get('to') ?? ''];
  const set = (name: string) => (event: Event) => {
    const { value } = event.currentTarget as HTMLSelectElement;
    setQuery({ [name]: value || null, page: null });
  };
  return (
    <form class="coverage-choices" onSubmit={event => event.preventDefault()}>
      <DateField label="From" value={from} onChoose={day => setQuery({ from: day, page: null }, { replace: true })} />
      <DateField label="To" value={to} onChoose={day => setQuery({ to: day, page: null }, { replace: true })} />
      <label>
        Collection{' '}
        <select value={query.get('collection') ?? ''} onChange={set('collection')}>
          <option value="">All collections</option>
          {(answer?.collections ?? []).map(name => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Sort{' '}
        <select value={query.get('sort') === 'name' ? 'name' : ''} onChange={set('sort')}>
          <option value="">most missing first</option>
          <option value="name">by name</option>
        </select>
      </label>
      {answer && (
        <Act
          action={{ name: 'repair', from, to, ...(query.get('collection') ? { collections: [query.get('collection') ?? ''] } : {}) }}
          label="Repair what failed…"
          of="these days"
        />
      )}
      {query.get('state') && (
        <PassingButton onPress={() => setQuery({ state: null, reason: null, page: null })}>Show everybody again</PassingButton>
      )}
    </form>
  );
}

function MatrixCard({ answer, open }: { answer: Answer; open: { id: string; day: string } | null }) {
  const { people, from, to, page, pages, total } = answer;
  if (!people.length) return <p class="card">Nobody matches. Choose other days or another reason.</p>;
  return (
    <Figure
      title="People by days"
      note="what is known of each day; press a cell for the reason, by collection"
      finding={`${findingOf(answer)}${pageText(answer)}`}
      table={() => tableOf(answer)}
      sql={`FROM sync.coverage_between('${from}', '${to}');`}
      file={`coverage-${from}-${to}${pageFile(answer)}`}
    >
      <Legend />
      <div class="coverage-rows">
        <ul class="coverage-names" aria-label="People">
          {people.map(({ id, account }) => (
            <li key={id}>
              <Link to={`/people/${encodeURIComponent(id)}`}>{id}</Link>
              {account !== 'active' && <span class="coverage-account"> {account}</span>}
            </li>
          ))}
        </ul>
        <Matrix rows={people} from={from} onOpen={(id, day) => setQuery({ cell: `${id}/${day}` }, { replace: open !== null })} />
      </div>
      <p class="second">
        A day is failed or pending where any collection is. It is stored in part where sleep, scores, activity or heart rate, which come
        every day, are not all there, or not authorised. The day of heart rate is a day of UTC.
      </p>
      {pages > 1 && (
        <p>
          <Button isOff={page === 1} onPress={() => setQuery({ page: String(page - 1) })}>
            Before
          </Button>{' '}
          Page {page} of {pages}, {total} people{' '}
          <Button isOff={page === pages} onPress={() => setQuery({ page: String(page + 1) })}>
            After
          </Button>
        </p>
      )}
    </Figure>
  );
}

function tableOf({ people, from }: Answer): DataTable {
  const cells = people.flatMap(({ id, letters }) =>
    [...letters].map((letter, at) => ({ id, day: addDays(from, at), state: letterWord(letter) })),
  );
  return [
    { name: 'person', values: cells.map(({ id }) => id) },
    { name: 'day', values: cells.map(({ day }) => day) },
    { name: 'state', values: cells.map(({ state }) => state) },
  ];
}

/** How many days of the people who are shown are in which state, the most first. */
function findingOf({ people }: Answer): string {
  const counted = new Map<string, number>();
  for (const letter of people.flatMap(({ letters }) => [...letters])) counted.set(letter, (counted.get(letter) ?? 0) + 1);
  const told = [...counted].sort(([, a], [, b]) => b - a).map(([letter, count]) => `${count.toLocaleString('en')} ${letterWord(letter)}`);
  return `Days of ${people.length === 1 ? '1 person' : `${people.length} people`}: ${told.join(', ')}.`;
}
