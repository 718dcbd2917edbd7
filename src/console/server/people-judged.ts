import { groupBy } from '../../base/items.ts';
import { personStates } from '../api/people.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { addDays, dayNumber } from '../page/parts/format.ts';
import type { Metric } from '../page/parts/metrics.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking } from './handlers.ts';
import { unusualOf } from './unusual.ts';

type Person = AnswerOf<'GET people'>['people'][number];

/** What the list needs of everybody, whether shown or not. */
export interface Brief extends Pick<Person, 'id' | 'state' | 'night'> {
  reason: string | null;
  isLastNight: boolean;
  /** Today, by their clock. */
  today: string;
  unusual: { metric: Metric; value: number | null; z: number }[];
}

/** Nights that nobody has missed for longer are awaited; from here on one is missing: days. */
const LONG = 2;
/** Days of which everything should have been read. */
const WEEK = 7;

/** @param instant epoch seconds */
export const dayAt = (instant: number, offset: number) => new Date((instant + offset) * 1000).toISOString().slice(0, 10);

/** Everybody, judged by what is known at a moment. @param now epoch seconds */
export async function judgeEverybody({ questions }: Pick<Asking, 'questions'>, now: number): Promise<Brief[]> {
  const today = dayAt(now, 0);
  const [people, marked, missing] = await Promise.all([
    askFor(questions, 'people'),
    askFor(questions, 'people-marked', { from: addDays(today, -1), to: addDays(today, 1) }),
    askFor(questions, 'people-missing', { from: addDays(today, -WEEK), to: addDays(today, -1) }),
  ]);
  const reasonOf = new Map(missing.rows().map(row => [missing.text('id', row), missing.text('reason', row)]));
  const marksOf = groupBy(marked.rows(), row => `${marked.text('day', row)} ${marked.text('id', row)}`);
  return people.rows().map(row => {
    const id = people.text('id', row) ?? '';
    const night = nightAt(people, row);
    const own = dayAt(now, night?.end_offset ?? 0);
    const isLastNight = night !== null && night.day >= own;
    const marks = isLastNight ? (marksOf.get(`${night.day} ${id}`) ?? []) : [];
    const unusual = unusualOf(
      marks.map(at => ({ metric: marked.text('metric', at) ?? '', value: marked.number('value', at), z: marked.number('z', at) })),
    );
    const account = people.text('state', row);
    const known = { isLastNight, night, today: own, isUnusual: unusual.length > 0, hasFailed: reasonOf.has(id) };
    const state = account === 'parked' || account === 'paused' ? account : stateOf(known);
    const reason = (state === 'failed' ? reasonOf.get(id) : people.text('reason', row)) ?? null;
    return { id, state, night, reason, isLastNight, today: own, unusual };
  });
}

interface Known {
  night: Person['night'];
  isLastNight: boolean;
  today: string;
  isUnusual: boolean;
  hasFailed: boolean;
}

function stateOf({ night, isLastNight, today, isUnusual, hasFailed }: Known): Person['state'] {
  if (hasFailed) return 'failed';
  if (isUnusual) return 'unusual';
  if (!night) return 'empty';
  if (isLastNight) return 'usual';
  return dayNumber(today) - dayNumber(night.day) >= LONG ? 'long_missing' : 'waiting';
}

function nightAt(people: Answered, row: number): Person['night'] {
  const of = (name: string) => people.number(name, row);
  const day = people.text('day', row);
  const end = of('end');
  if (day === null || end === null) return null;
  return { day, asleep: of('asleep'), start: of('start'), start_offset: of('start_offset'), end, end_offset: of('end_offset') };
}

/** The order of the list; those of the same rank by name. */
export const orderBy: Record<ParsedInputOf<'GET people'>['sort'], (a: Brief, b: Brief) => number> = {
  attention: (a, b) => rank(a) - rank(b) || farthest(b) - farthest(a) || byName(a, b),
  name: (a, b) => byName(a, b),
  freshest: (a, b) => (b.night?.end ?? 0) - (a.night?.end ?? 0) || byName(a, b),
};

const rank = ({ state }: Brief) => personStates.indexOf(state);
const farthest = ({ unusual: [first] }: Brief) => Math.abs(first?.z ?? 0);
const byName = (a: Brief, b: Brief) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
