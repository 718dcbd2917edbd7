import type { AnswerOf } from '../../api/routes.ts';
import { clock, hoursAndMinutes, offsetName } from '../parts/format.ts';
import { Link } from '../parts/link.tsx';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';

type Person = AnswerOf<'GET people'>['people'][number];

/** Everybody at a glance. */
export function Overview() {
  const people = useAnswer('GET people', {});
  return (
    <Shown of={people}>
      {({ sentence, people }) => (
        <>
          <h1>Overview</h1>
          <p class="sentence">{sentence}</p>
          <section class="card">
            <h2>Last night, everybody</h2>
            <table>
              <thead>
                <tr>
                  <th scope="col">Person</th>
                  <th scope="col">Asleep</th>
                </tr>
              </thead>
              <tbody>
                {people.map(person => (
                  <Row key={person.id} {...person} />
                ))}
              </tbody>
            </table>
          </section>
        </>
      )}
    </Shown>
  );
}

function Row({ id, night }: Person) {
  const to = `/people/${encodeURIComponent(id)}${night ? `?day=${night.day}` : ''}`;
  return (
    <tr>
      <th scope="row">
        <Link to={to}>{id}</Link>
      </th>
      <td>
        {night?.asleep == null ? 'no night yet' : hoursAndMinutes(night.asleep)}
        {night?.start != null && (
          <div class="second">
            {clock(night.start, night.start_offset ?? 0)} – {clock(night.end, night.end_offset ?? 0)} ({offsetName(night.end_offset ?? 0)})
          </div>
        )}
      </td>
    </tr>
  );
}
