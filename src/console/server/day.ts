import type { dayRoutes } from '../api/day.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';
import { localDay } from './local-day.ts';
import { findPerson } from './person.ts';

type Day = AnswerOf<'GET people/:id/day/:day'>;

const KINDS = ['sleep', 'workout', 'session', 'tag', 'rest_mode'] as const;
const BUCKET = 300;

export const dayHandlers: Handlers<keyof typeof dayRoutes> = {
  'GET people/:id/day/:day': findDay,
};

async function findDay({ id, day: given }: ParsedInputOf<'GET people/:id/day/:day'>, asking: Asking): Promise<Day> {
  const { questions } = asking;
  const person = await findPerson(id, asking);
  const day = given === 'newest' ? person.newest : given;
  const told = await askFor(questions, 'day-clocks', { user: id });
  const changes = told.rows().map(row => ({ start: told.number('start', row) ?? 0, offset: told.number('utc_offset', row) ?? 0 }));
  const { start, end, clocks } = localDay(day, changes);
  const parameters = { user: id, day, start, end };
  const [heart, met, events, maximum] = await Promise.all([
    askFor(questions, 'day-heart-rate', parameters),
    askFor(questions, 'day-met', parameters),
    askFor(questions, 'day-events', parameters),
    askFor(questions, 'day-maximum', parameters),
  ]);
  const measured = [
    ...startsOf(heart),
    ...startsOf(
      met,
      met.rows(row => met.number('met', row) !== null),
    ),
  ].map(at => at + BUCKET);
  const until = Math.min(end, Math.max(start, Math.floor(asking.now() / 1000), ...measured));
  return {
    ...{ id, day, start, end, clocks, is_clock_known: changes.length > 0, until },
    heart_rate: {
      start: startsOf(heart),
      lowest: heart.numbers('lowest'),
      median: heart.numbers('median'),
      highest: heart.numbers('highest'),
      measurements: heart.numbers('measurements'),
      source: heart.texts('source'),
    },
    met: { start: startsOf(met), met: met.numbers('met') },
    non_wear: nonWearOf(met),
    events: eventsOf(events),
    maximum: maximumOf(maximum),
    sql: questions.sqlOf('day-heart-rate', parameters),
  };
}

const startsOf = (answered: Answered, rows = answered.rows()) => rows.map(row => answered.number('start', row) ?? 0);

/** Neighbouring 5 minutes in which the ring was not worn, in one. */
function nonWearOf(met: Answered): Day['non_wear'] {
  const start: number[] = [];
  const seconds: number[] = [];
  for (const row of met.rows(at => met.isTrue('is_not_worn', at))) {
    const at = met.number('start', row) ?? 0;
    const last = start.length - 1;
    const length = seconds[last] ?? 0;
    if (last >= 0 && (start[last] ?? 0) + length === at) seconds[last] = length + BUCKET;
    else {
      start.push(at);
      seconds.push(BUCKET);
    }
  }
  return { start, seconds };
}

function eventsOf(events: Answered): Day['events'] {
  return events.rows().flatMap(row => {
    const kind = KINDS.find(name => name === events.text('kind', row));
    const start = events.number('start', row);
    if (!kind || start === null) return [];
    return [{ kind, start, end: events.number('end', row), name: events.text('name', row) ?? '', detail: events.text('detail', row) }];
  });
}

function maximumOf(maximum: Answered): Day['maximum'] {
  const heartRate = maximum.number('maximum');
  const origin = maximum.text('origin');
  return heartRate === null || origin === null ? null : { heart_rate: heartRate, origin };
}
