import { useRef } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { askedOfPeople } from '../asked.ts';
import { clockRange, NightBars, Sparkline } from '../charts/small.tsx';
import { setQuery, usePlace } from '../location.ts';
import { Button } from '../parts/button.tsx';
import type { DataTable } from '../parts/data-table.ts';
import { Figure } from '../parts/figure.tsx';
import { clock, dayName, hoursAndMinutes, offsetName, shortDay } from '../parts/format.ts';
import { useHeld, Waiting } from '../parts/held.tsx';
import { Link } from '../parts/link.tsx';
import { isMetric, metricText, metricWithUnit, numberText, wordsOf } from '../parts/metrics.ts';
import { pageFile, pageText } from '../parts/pages.ts';
import { Sentence } from '../parts/sentence.tsx';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';
import { FirstRun } from './first-run.tsx';
import { UnderWay } from './under-way.tsx';
import './overview.css';

type People = AnswerOf<'GET people'>;
type Person = People['people'][number];

const SORTS = { attention: 'most in need first', name: 'by name', freshest: 'freshest first' } as const;

/** Everybody at a glance. */
export function Overview() {
  const { query } = usePlace();
  const people = useAnswer('GET people', askedOfPeople(query));
  return (
    <Shown of={people}>
      {answer =>
        answer.first_run ? (
          <>
            <UnderWay />
            <FirstRun {...answer.first_run} />
          </>
        ) : (
          <Everybody of={answer} asked={people.asked} />
        )
      }
    </Shown>
  );
}

function Everybody({ of: answer, asked }: { of: People; asked: string }) {
  const { greeting, at, offset, sentence, everybody, total } = answer;
  const known = useRef(total);
  // Who is gone from a page is on another one, unless there are fewer people now.
  const held = useHeld(asked, answer.people, { keyOf: ({ id }) => id, mayStay: () => total >= known.current });
  known.current = total;
  const today = new Date((at + offset) * 1000).toISOString();
  return (
    <>
      <div class="greeting">
        <h1>{greeting}</h1>
        <span class="second">
          {dayName(today.slice(0, 10))} {today.slice(0, 4)} · {clock(at, offset)}, {offsetName(offset)}
        </span>
      </div>
      <Sentence of={sentence} />
      <UnderWay />
      {everybody > 1 && <Finder {...answer} />}
      <Waiting held={held} of="people" target={() => document.querySelector<HTMLElement>('.people .name')} />
      <div class="overview-grid">
        <Nights of={{ ...answer, people: [...held.rows] }} />
        <NeedsALook of={answer} />
      </div>
    </>
  );
}

function Finder({ total, everybody, page, pages }: People) {
  const { query } = usePlace();
  const { sort } = askedOfPeople(query);
  const turn = (to: number) => setQuery({ page: to === 1 ? null : String(to) });
  return (
    <search class="finder">
      <label>
        Find people{' '}
        <input
          type="search"
          id="find"
          maxLength={200}
          value={query.get('q') ?? ''}
          onInput={({ currentTarget: { value } }) => setQuery({ q: value || null, page: null }, { replace: true })}
        />
      </label>
      <label>
        Order{' '}
        <select
          value={sort}
          onChange={({ currentTarget: { value } }) => setQuery({ sort: value === 'attention' ? null : value, page: null })}
        >
          {Object.entries(SORTS).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <span class="second" role="status">
        {total === everybody ? `${everybody} people` : `${total} of ${everybody} people`}
      </span>
      {pages > 1 && (
        <nav class="pages" aria-label="Pages">
          <Button isOff={page <= 1} onPress={() => turn(page - 1)}>
            Before
          </Button>
          <span>
            Page {page} of {pages}
          </span>
          <Button isOff={page >= pages} onPress={() => turn(page + 1)}>
            After
          </Button>
        </nav>
      )}
    </search>
  );
}

function Nights({ of: answer }: { of: People }) {
  const { people, sql, everybody } = answer;
  const range = clockRange(people);
  return (
    <Figure
      title={everybody === 1 ? 'Last night' : 'Last night, everybody'}
      note="each against the 28 nights before"
      finding={
        people.length
          ? `Grey band: what was usual, median ± 1.48 times the median absolute deviation of the 28 nights before. ◆ what is called unusual. No diagnosis.${pageText(answer)}`
          : 'Nobody is called so.'
      }
      table={() => tableOf(people)}
      sql={sql}
      file={`overview${pageFile(answer)}`}
      hasPicture={false}
    >
      <div class="people-room">
        <table class="people">
          <thead>
            <tr>
              <th scope="col">Person</th>
              <th scope="col">Asleep</th>
              <th scope="col" class="wide">
                14 nights, {hourText(range[0])}–{hourText(range[1])}
              </th>
              <th scope="col" class="wide">
                Night HRV
              </th>
              <th scope="col" class="wide">
                Lowest heart rate
              </th>
              <th scope="col" class="wide">
                Temperature
              </th>
              <th scope="col">Unusual</th>
            </tr>
          </thead>
          <tbody>
            {people.map(person => (
              <Row key={person.id} person={person} range={range} />
            ))}
          </tbody>
        </table>
      </div>
    </Figure>
  );
}

const hourText = (minute: number) => `${String(((((minute / 60) % 24) + 24) % 24) | 0).padStart(2, '0')}:00`;

/** Where a person is shown. */
const pathOf = (id: string) => `/people/${encodeURIComponent(id)}`;

function Row({
  person: { id, night, is_last_night, nights, sparks, unusual, says, state },
  range,
}: {
  person: Person;
  range: readonly [number, number];
}) {
  const chips = unusual.filter(({ metric }) => isMetric(metric));
  return (
    <tr data-person={id} data-state={state}>
      <th scope="row">
        <Link to={pathOf(id)} class="name">
          {id}
        </Link>
        {night?.end_offset != null && <div class="second">{offsetName(night.end_offset)}</div>}
      </th>
      <td>
        <Asleep night={night} isLast={is_last_night} />
      </td>
      <td class="wide">
        <NightBars nights={nights} range={range} />
      </td>
      {sparks.map(spark => (
        <td key={spark.metric} class="wide">
          <div class="spark">
            <span class={spark.is_unusual ? 'figure-text unusual-text' : 'figure-text'}>
              {spark.value === null ? '—' : metricText(spark.metric, spark.value)}{' '}
              <span class="second">{spark.value !== null && wordsOf(spark.metric).unit}</span>
            </span>
            <Sparkline spark={spark} label={sparkLabel(spark)} />
          </div>
        </td>
      ))}
      <td>
        {chips.map(({ metric, z }) => (
          <span key={metric} class="chip unusual-chip">
            {isMetric(metric) && wordsOf(metric).name} {z > 0 ? '▲' : '▼'} {numberText(Math.abs(z), 1)} sd
          </span>
        ))}
        {state !== 'unusual' && <span class={state === 'usual' ? 'second' : 'chip'}>{says}</span>}
      </td>
    </tr>
  );
}

function Asleep({ night, isLast }: { night: Person['night']; isLast: boolean }) {
  if (!night) return <span class="second">no night stored</span>;
  if (!isLast) {
    return (
      <>
        no night yet
        <div class="second">last: {shortDay(night.day)}</div>
      </>
    );
  }
  return (
    <>
      <strong>{night.asleep === null ? '—' : hoursAndMinutes(night.asleep)}</strong>
      <div class="second">
        {night.start === null ? '—' : clock(night.start, night.start_offset ?? 0)} – {clock(night.end, night.end_offset ?? 0)}
      </div>
    </>
  );
}

function sparkLabel({ metric, values, is_unusual }: Person['sparks'][number]): string {
  const known = values.filter(value => value !== null);
  if (!known.length) return `${wordsOf(metric).name}: no values in 28 days`;
  const span = `${metricText(metric, Math.min(...known))} to ${metricWithUnit(metric, Math.max(...known))}`;
  return `${wordsOf(metric).name}, 28 days: ${span}, ${known.length} values${is_unusual ? ', the last is unusual' : ''}`;
}

function NeedsALook({ of: { needs_a_look, more, everybody } }: { of: People }) {
  return (
    <section class="card needs" aria-labelledby="needs">
      <h2 id="needs">Needs a look</h2>
      {needs_a_look.length === 0 && <p class="second">{everybody === 1 ? 'Nothing' : 'Nobody'} just now.</p>}
      <ul>
        {needs_a_look.map(({ id, text }) => (
          <li key={id}>
            <Link to={pathOf(id)} class="name">
              {id}
            </Link>
            <span>{text}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <p class="second">And {more} more, first in the list.</p>}
      <p class="second">
        “Unusual” means two of temperature, breathing, HRV and lowest heart rate at 2 or more robust standard deviations from the 28 nights
        before, or anything at 3 or more. It is no diagnosis.
      </p>
    </section>
  );
}

function tableOf(people: readonly Person[]): DataTable {
  const column = (name: string, of: (person: Person) => string | number | null) => ({ name, values: people.map(of) });
  const last = (person: Person) => (person.is_last_night ? person.night : null);
  const sparkOf = (at: number) => (person: Person) => person.sparks[at]?.value ?? null;
  return [
    column('person', ({ id }) => id),
    column('newest night', ({ night }) => night?.day ?? null),
    column('asleep last night [s]', person => last(person)?.asleep ?? null),
    column('HRV [ms]', sparkOf(0)),
    column('lowest heart rate [bpm]', sparkOf(1)),
    column('temperature [°C from the baseline]', sparkOf(2)),
    column('unusual', ({ unusual }) => unusual.map(({ metric, z }) => `${metric} ${numberText(z, 1, true)}`).join(', ') || null),
    column('state', ({ says }) => says),
  ];
}
