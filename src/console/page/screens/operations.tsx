import { useRef } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { LagChart } from '../charts/lag-chart.tsx';
import { Act, isActing } from '../parts/act.tsx';
import { localText } from '../parts/format.ts';
import { Link } from '../parts/link.tsx';
import { useRowFocus } from '../parts/row-focus.ts';
import { useSession } from '../parts/session.tsx';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';
import './operations.css';
import { Events, Log, Runs, SessionList } from './operations-lists.tsx';

type Answer = AnswerOf<'GET operations'>;

/** Who is behind and what helps, and what the pipeline does. */
export function Operations() {
  const operations = useAnswer('GET operations', {});
  const session = useSession();
  return (
    <>
      <h1>Operations</h1>
      <Shown of={operations}>
        {answer => (
          <>
            <p class="sentence" role="status">
              {answer.sentence}
            </p>
            {session?.can_act && (
              <p>
                <Act action={{ name: 'repair' }} label="Read what is missing…" of="everybody" onDone={operations.again} />
              </p>
            )}
            <Behind behind={answer.behind} again={operations.again} />
            <div class="operations-three">
              {answer.lag && <LagChart lag={answer.lag} />}
              <div class="operations-column">
                <Queue answer={answer} again={operations.again} />
                <Pairs title="Versions" pairs={answer.versions} />
              </div>
              <Pairs title="Machine" pairs={answer.machine} />
            </div>
          </>
        )}
      </Shown>
      <div class="operations-two">
        <div class="operations-column">
          <Runs />
          {session?.role === 'operator' && <SessionList />}
        </div>
        <Events />
      </div>
      <Log />
    </>
  );
}

function Behind({ behind: now, again }: { behind: Answer['behind']; again(): void }) {
  const room = useRowFocus<HTMLElement>();
  const shown = useRef(now);
  // Who is helped is behind no more: the row with the words about that stays until they are read.
  if (!isActing()) shown.current = now;
  const behind = shown.current;
  if (!behind.length) return null;
  return (
    <section class="card" {...room}>
      <h2>Who is behind, and what helps</h2>
      <table class="behind">
        <thead>
          <tr>
            <th scope="col">Person</th>
            <th scope="col">Since, UTC</th>
            <th scope="col">What happened</th>
            <th scope="col">What helps</th>
            <th scope="col">
              <span class="unseen">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {behind.map(({ id, since, state, cause, helps, action }) => (
            <tr key={id}>
              <th scope="row">
                <Link to={`/people/${encodeURIComponent(id)}`}>{id}</Link>
              </th>
              <td>{since === null ? '—' : localText(since, 0)}</td>
              <td>
                <span class={`chip ${state}`}>{state}</span> {cause}
              </td>
              <td>{helps}</td>
              <td>
                {action && (
                  <Act
                    action={{ name: action.name, users: action.users, ...(action.collections ? { collections: action.collections } : {}) }}
                    label={action.label}
                    of={id}
                    onDone={again}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const COUNTS = [
  ['waiting', 'Waiting'],
  ['active', 'Active'],
  ['delayed', 'Put off: tried again later'],
  ['failed', 'Failed'],
] as const;

function Queue({ answer: { queue, queue_problem: problem }, again }: { answer: Answer; again(): void }) {
  const room = useRowFocus<HTMLElement>();
  if (!queue) {
    return (
      <section class="card">
        <h2>Queue</h2>
        <p>{problem ?? 'No queue is open.'}</p>
      </section>
    );
  }
  // The next occurrence of each schedule always lies among the delayed.
  const { schedules, ...others } = queue.counts;
  const all = [...Object.values(others), { ...schedules, delayed: 0 }];
  const sum = (name: (typeof COUNTS)[number][0]) => all.reduce((total, counts) => total + counts[name], 0);
  const told = queue.jobs.filter(({ state }) => state === 'failed' || state === 'waiting');
  const unlisted = sum('failed') + sum('waiting') - told.length;
  return (
    <section class="card" {...room}>
      <h2>Queue</h2>
      <Rows pairs={COUNTS.map(([name, label]) => ({ name: label, value: String(sum(name)) }))} />
      {told.length > 0 && unlisted > 0 && <p class="second">{unlisted} more wait or have failed than are listed.</p>}
      {told.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Queue</th>
              <th scope="col">State</th>
              <th scope="col">Reason</th>
              <th scope="col">
                <span class="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {told.map(({ queue: name, id, state, reason }) => (
              <tr key={`${name} ${id}`}>
                <th scope="row">{name}</th>
                <td>{state}</td>
                <td>{reason ?? '—'}</td>
                <td>
                  {state === 'failed' && (
                    <Act action={{ name: 'retry', id, queue: name }} label="Try again" of={`job ${id}`} onDone={again} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

type PairList = Answer['machine'];

function Pairs({ title, pairs }: { title: string; pairs: PairList }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      <Rows pairs={pairs} />
    </section>
  );
}

function Rows({ pairs }: { pairs: PairList }) {
  return (
    <dl class="pairs">
      {pairs.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
