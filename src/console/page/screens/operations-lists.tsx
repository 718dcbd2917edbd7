import { useRef, useState } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { ask, type Refused } from '../api.ts';
import { setQuery, usePlace } from '../location.ts';
import { Act } from '../parts/act.tsx';
import { PassingButton } from '../parts/button.tsx';
import { localText, utcText } from '../parts/format.ts';
import { useHeld, Waiting } from '../parts/held.tsx';
import { useRowFocus } from '../parts/row-focus.ts';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';
import { Whole } from '../parts/whole.tsx';
import './coverage.css';

type Run = AnswerOf<'GET runs'>['runs'][number];

const momentOf = (at: number) => <Whole text={utcText(at, Date.now() / 1000)} />;
const SHOWN_RUNS = 12;

/** Runs under way with their progress, and the last ones. */
export function Runs() {
  const runs = useAnswer('GET runs', {});
  const room = useRowFocus<HTMLElement>();
  return (
    <section class="card runs" {...room}>
      <h2>Runs</h2>
      <p class="second">Of the sweeps that went well the last three.</p>
      <Shown of={runs}>
        {({ runs: list }) =>
          list.length ? (
            <>
              {list.length > SHOWN_RUNS && <p class="second">The first {SHOWN_RUNS} of them; sync.runs has all.</p>}
              <table>
                <thead>
                  <tr>
                    <th scope="col">Kind</th>
                    <th scope="col">Started, UTC</th>
                    <th scope="col">Windows</th>
                    <th scope="col">State</th>
                  </tr>
                </thead>
                <tbody>
                  {list.slice(0, SHOWN_RUNS).map(run => (
                    <RunRow key={run.id} run={run} again={runs.again} />
                  ))}
                </tbody>
              </table>
            </>
          ) : (
            <p>Nothing was read yet.</p>
          )
        }
      </Shown>
    </section>
  );
}

function RunRow({ run, again }: { run: Run; again(): void }) {
  const { id, kind, from, to, started, planned, done, failed, state, is_active: isActive, waits_for: waitsFor } = run;
  return (
    <tr>
      <th scope="row">
        {kind}
        <div class="second">
          <Whole text={`${from}\u00a0– ${to}`} />
        </div>
      </th>
      <td>
        <Whole text={localText(started, 0)} />
      </td>
      <td>
        {isActive && <progress max={Math.max(1, planned)} value={done} aria-label={`${kind}: windows read`} />}
        {done} of {planned}
        {failed > 0 && `, ${failed} failed`}
      </td>
      <td>
        <span class={`chip ${state}`}>{state}</span>
        {waitsFor !== null && <div class="second">waits for {waitsFor}</div>}
        {isActive && (
          <div>
            <Act action={{ name: 'stop', id }} label="Stop…" of={kind} onDone={again} />
          </div>
        )}
      </td>
    </tr>
  );
}

const OUTCOMES = ['stored', 'unchanged', 'removed', 'parked', 'unknown_user', 'unknown_type'];

/** What the service announced, as it comes. */
export function Events() {
  const { query } = usePlace();
  const filters = { user: query.get('user') ?? undefined, outcome: query.get('outcome') ?? undefined };
  const before = Number(query.get('before')) || undefined;
  const events = useAnswer('GET events', { ...filters, before });
  return (
    <section class="card events">
      <h2>Events</h2>
      <form class="coverage-choices" onSubmit={event => event.preventDefault()}>
        <label>
          Person{' '}
          <input
            type="search"
            value={filters.user ?? ''}
            onChange={event => setQuery({ user: event.currentTarget.value || null, before: null })}
          />
        </label>
        <label>
          Became{' '}
          <select value={filters.outcome ?? ''} onChange={event => setQuery({ outcome: event.currentTarget.value || null, before: null })}>
            <option value="">anything</option>
            {OUTCOMES.map(name => (
              <option key={name} value={name}>
                {name.replace('_', ' ')}
              </option>
            ))}
          </select>
        </label>
      </form>
      <Shown of={events}>
        {({ events: list }) => (
          <EventTable latest={list} asked={events.asked} before={before} isFiltered={Boolean(filters.user ?? filters.outcome)} />
        )}
      </Shown>
    </section>
  );
}

type Event = AnswerOf<'GET events'>['events'][number];
const keyOf = ({ received, id, change, kind }: Event) => `${received} ${id} ${change} ${kind}`;
/** As many as are answered at once. */
const MOST = 100;

interface EventsProps {
  latest: readonly Event[];
  asked: string;
  before: number | undefined;
  isFiltered: boolean;
}

function EventTable({ latest, asked, before, isFiltered }: EventsProps) {
  const room = useRef<HTMLElement>(null);
  const end = latest.at(-1);
  // What newer ones have pushed out of the answer is still there.
  const mayStay = ({ received }: Event) => latest.length === MOST && end !== undefined && received <= end.received;
  const held = useHeld(asked, latest, { keyOf, mayStay });
  const { rows: events } = held;
  const last = events.at(-1);
  if (!last) return <p>{before ? 'No earlier ones.' : isFiltered ? 'No event is like that.' : 'No event has come yet.'}</p>;
  const goToTop = () => {
    room.current?.scrollTo(0, 0);
    return room.current;
  };
  return (
    <>
      <Waiting held={held} of="events" target={goToTop} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <section ref={room} class="rows" aria-label="Events" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Received, UTC</th>
              <th scope="col">Person</th>
              <th scope="col">What</th>
              <th scope="col">Became</th>
              <th scope="col" class="count">
                Took
              </th>
            </tr>
          </thead>
          <tbody>
            {events.map(event => (
              <EventRow key={keyOf(event)} event={event} />
            ))}
          </tbody>
        </table>
        <p>
          {before !== undefined && <PassingButton onPress={() => setQuery({ before: null })}>Newest</PassingButton>}{' '}
          {latest.length === MOST && <PassingButton onPress={() => setQuery({ before: String(last.received) })}>Earlier</PassingButton>}
        </p>
      </section>
    </>
  );
}

function EventRow({ event: { received, id, change, kind, outcome, reason, lag } }: { event: Event }) {
  return (
    <tr>
      <td>{momentOf(received)}</td>
      <td>{id ?? 'nobody known'}</td>
      <td>
        {change} {kind}
      </td>
      <td>
        {outcome.replace('_', ' ')}
        {reason && <div class="second">{reason}</div>}
      </td>
      <td class="count">{lag === null ? '—' : `${lag.toFixed(2)}\u00a0s`}</td>
    </tr>
  );
}

/** Who may look, and the button that ends it. */
export function SessionList() {
  const sessions = useAnswer('GET sessions', {});
  const [error, setError] = useState<Refused>();
  const room = useRowFocus<HTMLElement>();
  const end = (id: string) => ask('DELETE sessions/:id', { id }).then(sessions.again, setError);
  return (
    <section class="card" {...room}>
      <h2>Sessions of this console</h2>
      {error && <p role="alert">{error.message}</p>}
      <Shown of={sessions}>
        {({ sessions: list }) => (
          <table>
            <thead>
              <tr>
                <th scope="col">Role</th>
                <th scope="col">Opened, UTC</th>
                <th scope="col">Last seen, UTC</th>
                <th scope="col">
                  <span class="unseen">Action</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.map(({ id, role, person, opened, seen, is_this: isThis }) => (
                <tr key={id}>
                  <th scope="row">
                    {role}
                    {person && ` ${person}`}
                    {isThis && ' (this one)'}
                  </th>
                  <td>
                    <Whole text={localText(opened, 0)} />
                  </td>
                  <td>
                    <Whole text={localText(seen, 0)} />
                  </td>
                  <td>
                    <button type="button" onClick={() => void end(id)}>
                      End<span class="unseen"> the session of {person ?? role}</span>
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Shown>
    </section>
  );
}

/** The last lines of the log, when somebody wants them. */
export function Log() {
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="card operations-card">
      <h2>Log</h2>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? 'Hide the last lines' : 'Show the last lines'}
      </button>
      {isOpen && <Lines />}
    </section>
  );
}

function Lines() {
  const log = useAnswer('GET log', {});
  return (
    <Shown of={log}>
      {({ lines }) =>
        lines.length ? (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
          <section class="rows" aria-label="Log, newest first" tabIndex={0}>
            <table>
              <tbody>
                {lines.map(({ at, level, message, rest }, index) => (
                  <tr key={index}>
                    <td>{momentOf(at)}</td>
                    <td>{level}</td>
                    <td>
                      {message}
                      {rest && <div class="second">{rest}</div>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        ) : (
          <p>Nothing was logged yet.</p>
        )
      }
    </Shown>
  );
}
