import type { rasterRoutes } from '../api/raster.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { addDays, dayNumber } from '../page/parts/format.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';
import type { Sentence } from './night-words.ts';
import { findPerson } from './person.ts';
import { Refusal } from './refusal.ts';

type Raster = AnswerOf<'GET people/:id/raster'>;

/** Days that are shown where none are asked for, and that are answered at once. */
const YEAR = 366;
const MOST_DAYS = 1100;

const LETTERS: Readonly<Record<string, string>> = { deep: 'd', light: 'l', rem: 'r', awake: 'a' };

export const rasterHandlers: Handlers<keyof typeof rasterRoutes> = {
  'GET people/:id/raster': findRaster,
};

async function findRaster({ id, from: first, to: last }: ParsedInputOf<'GET people/:id/raster'>, asking: Asking): Promise<Raster> {
  const { questions, session } = asking;
  const person = await findPerson(id, asking);
  const to = last ?? person.last;
  const yearBefore = addDays(to, 1 - YEAR);
  const from = first ?? (person.first > yearBefore && person.first <= to ? person.first : yearBefore);
  const days = dayNumber(to) - dayNumber(from) + 1;
  if (!(days >= 1)) throw new Refusal(400, `${to} lies before ${from}.`);
  if (days > MOST_DAYS) throw new Refusal(413, `${days} days are more than are answered at once.`, `Ask for ${MOST_DAYS} days at most.`);
  const parameters = { user: id, from, to };
  const [found, scores] = await Promise.all([askFor(questions, 'raster', parameters), askFor(questions, 'raster-scores', parameters)]);
  const sleeps = sleepsOf(found);
  return {
    ...{ id, from, to, sleeps },
    sentence: tellRaster(sleeps, days, session.person === id ? 'Your' : `${id}’s`),
    stages: {
      seconds: found.rows().map(row => found.number('seconds', row) ?? lengthAt(found, row)),
      letters: found
        .texts('stage')
        .map(stage => LETTERS[stage ?? ''] ?? '?')
        .join(''),
    },
    scores: { day: scores.texts('day').map(day => day ?? ''), score: scores.numbers('score').map(score => score ?? 0) },
    sql: { raster: questions.sqlOf('raster', parameters), scores: questions.sqlOf('raster-scores', parameters) },
  };
}

const lengthAt = (found: Answered, row: number) => (found.number('end', row) ?? 0) - (found.number('start', row) ?? 0);

function sleepsOf(found: Answered): Raster['sleeps'] {
  const keyOf = (row: number) => `${found.text('day', row)} ${found.text('sleep_id', row)}`;
  const firsts = found.rows(row => row === 0 || keyOf(row) !== keyOf(row - 1));
  const of = (name: string) => found.numbers(name, firsts).map(value => value ?? 0);
  return {
    day: found.texts('day', firsts).map(day => day ?? ''),
    is_main: firsts.map(row => found.isTrue('main', row)),
    start: of('start'),
    end: of('end'),
    offset: of('start_offset'),
    end_offset: found.numbers('end_offset', firsts).map((offset, at) => offset ?? found.number('start_offset', firsts[at]) ?? 0),
    stretches: firsts.map((row, at) => (firsts[at + 1] ?? found.count) - row),
  };
}

/** How many nights there are, and how often the clock moved: between two nights, or within one. */
export function tellRaster({ is_main, offset, end_offset }: Raster['sleeps'], days: number, whose: string): Sentence {
  const offsets = is_main.flatMap((isMain, at) => (isMain ? [offset[at] ?? 0, end_offset[at] ?? 0] : []));
  const nights = offsets.length / 2;
  const moves = offsets.filter((one, at) => at > 0 && one !== offsets[at - 1]).length;
  const said: Sentence = [
    { text: `${nights} ${nights === 1 ? 'night' : 'nights'} of ${days} ${days === 1 ? 'day' : 'days'}. `, tone: 'plain' },
  ];
  if (!moves) return said;
  said.push({ text: `${whose} clock moved ${moves === 1 ? 'once' : `${moves} times`}`, tone: 'answer' });
  said.push({ text: ': the new offset stands at the right edge, at the night with which it began.', tone: 'plain' });
  return said;
}
