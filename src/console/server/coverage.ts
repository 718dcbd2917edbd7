import type { z } from 'zod';
import { addDays, dayNumberOf, findDayNumber } from '../../../schema/instant.ts';
import type { coverageFilters, coverageRoutes } from '../api/coverage.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { askFor } from './columns.ts';
import { tellCell, tellCoverage } from './coverage-words.ts';
import type { Asking, Handlers } from './handlers.ts';
import { Refusal } from './refusal.ts';

type Coverage = AnswerOf<'GET coverage'>;
type Person = Coverage['people'][number];
type CoverageFilters = z.output<typeof coverageFilters>;
type Known = { id: string; state: string; reason: string; cells: number };

const PAGE = 60;
const DAYS = 60;
const MOST_DAYS = 1_100;
/** People times days that are looked at together. */
const MOST_CELLS = 66_000;

export const coverageHandlers: Handlers<keyof typeof coverageRoutes> = {
  'GET coverage': findCoverage,
  'GET coverage/cell': findCell,
};

/** Days, and the people of a page who match what is asked. */
export interface Matching {
  from: string;
  to: string;
  total: number;
  page: number;
  pages: number;
  people: Omit<Person, 'nights' | 'worn_share' | 'valid_days'>[];
}

interface Looked extends Matching {
  first: string;
  last: string;
  collections: string[];
  everybody: (Matching['people'][number] & { lacking: number; refused: number })[];
  cells: Known[];
}

/** @throws Refusal naming what can be asked */
export const findMatching = (input: CoverageFilters, asking: Asking): Promise<Matching> => lookAtPeople(input, asking);

async function findCoverage(input: ParsedInputOf<'GET coverage'>, asking: Asking): Promise<Coverage> {
  const { questions, session } = asking;
  const { people, everybody, cells, ...rest } = await lookAtPeople(input, asking);
  const { from, to } = rest;
  const worth = { from, to, hours: input.hours };
  const worn = await askFor(questions, 'coverage-worn', worth);
  const wornRow = new Map(worn.texts('id').map((id, row) => [id, row]));
  const withWear = (person: Matching['people'][number]): Person => {
    const at = wornRow.get(person.id);
    const count = (name: string) => (at === undefined ? 0 : (worn.number(name, at) ?? 0));
    return {
      ...person,
      nights: count('nights'),
      worn_share: count('recorded_seconds') ? count('worn_seconds') / count('recorded_seconds') : null,
      valid_days: count('known_days') ? count('valid_days') : null,
    };
  };
  return {
    ...rest,
    sentence: tellCoverage(everybody, { from, to, isOwn: session.person !== null }),
    hours: input.hours,
    people: people.map(withWear),
    reasons: countReasons(cells),
    sql: {
      reasons: questions.sqlOf('coverage-reasons', { from, to, collection: input.collection ?? null }),
      compliance: questions.sqlOf('coverage-worn', worth),
    },
  };
}

async function lookAtPeople(input: CoverageFilters, { questions }: Asking): Promise<Looked> {
  const known = await askFor(questions, 'coverage-days');
  const last = known.text('last') ?? input.to ?? '1970-01-01';
  const first = known.text('first') ?? last;
  const about = await askFor(questions, 'coverage-about');
  const { from, to } = rangeOf(input, last, about.number('people') ?? 0);
  const collection = input.collection ?? null;
  const [letters, states] = await Promise.all([
    askFor(questions, 'coverage', { from, to, collection }),
    askFor(questions, 'coverage-reasons', { from, to, collection }),
  ]);
  const everybody = letters.rows().map(row => ({
    id: letters.text('id', row) ?? '',
    account: letters.text('account', row) ?? '',
    reason: letters.text('reason', row),
    letters: letters.text('letters', row) ?? '',
    missing: letters.number('missing', row) ?? 0,
    failed: letters.number('failed', row) ?? 0,
    lacking: letters.number('lacking', row) ?? 0,
    refused: letters.number('refused', row) ?? 0,
  }));
  const cells = states.rows().map(
    (row): Known => ({
      id: states.text('id', row) ?? '',
      state: states.text('state', row) ?? '',
      reason: states.text('reason', row) ?? '',
      cells: states.number('cells', row) ?? 0,
    }),
  );
  const found = sortPeople(filterPeople(everybody, cells, input), input.sort);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  const page = Math.min(input.page, pages);
  const people = found.slice((page - 1) * PAGE, page * PAGE).map(({ lacking: _lacking, refused: _refused, ...person }) => person);
  const collections = (about.text('collections') ?? '').split(' ').filter(Boolean);
  return { from, to, first, last, collections, total: found.length, page, pages, people, everybody, cells };
}

/** Where no first day is asked for, as many days as are shown together. @throws Refusal naming what can be asked */
function rangeOf({ from, to }: Pick<CoverageFilters, 'from' | 'to'>, last: string, people: number): { from: string; to: string } {
  for (const day of [from, to]) ensureDay(day ?? last);
  const most = Math.min(MOST_DAYS, Math.max(1, Math.floor(MOST_CELLS / Math.max(1, people))));
  const end = to ?? last;
  const start = from ?? addDays(end, 1 - Math.min(DAYS, most));
  if (start > end) throw new Refusal(400, `The first day, ${start}, is after the last one, ${end}.`, 'Change one of them.');
  const days = dayNumberOf(end) - dayNumberOf(start) + 1;
  if (days > most) {
    const told =
      most < MOST_DAYS
        ? `${days} days of ${people} people are too many to be shown together`
        : `${days} days are more than are answered at once`;
    throw new Refusal(413, `${told}.`, `Ask for ${most} days at most.`);
  }
  return { from: start, to: end };
}

function ensureDay(day: string): void {
  if (findDayNumber(day) === undefined) throw new Refusal(400, `${day} is no day.`, 'A day is written as 2025-11-22.');
}

function filterPeople(
  people: Looked['everybody'],
  cells: readonly Known[],
  { state, reason }: { state?: string | undefined; reason?: string | undefined },
) {
  if (state === undefined) return people;
  const wanted = cells.filter(known => known.state === state && (reason === undefined || known.reason === reason));
  const ids = new Set(wanted.map(({ id }) => id));
  return people.filter(({ id }) => ids.has(id));
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function sortPeople(people: Looked['everybody'], sort: 'missing' | 'name'): Looked['everybody'] {
  if (sort === 'name') return people;
  return people.toSorted((a, b) => b.failed - a.failed || b.missing - a.missing || compare(a.id, b.id));
}

/** What is stored or was never there comes last: it needs nobody. */
const ORDER = ['failed', 'suspicious', 'not_authorised', 'pending', 'not_asked', 'not_offered', 'empty', 'stored'];

function countReasons(cells: readonly Known[]): Coverage['reasons'] {
  const counted = new Map<string, Coverage['reasons'][number]>();
  for (const { state, reason, cells: count } of cells) {
    const key = `${state}\n${reason}`;
    const before = counted.get(key) ?? { state, reason, cells: 0, people: 0 };
    counted.set(key, { state, reason, cells: before.cells + count, people: before.people + 1 });
  }
  return [...counted.values()].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || b.cells - a.cells);
}

async function findCell({ id, day }: ParsedInputOf<'GET coverage/cell'>, { questions }: Asking): Promise<AnswerOf<'GET coverage/cell'>> {
  ensureDay(day);
  const found = await askFor(questions, 'coverage-cell', { user: id, day });
  if (!found.count) throw new Refusal(404, `There is no account ${id}.`, 'Its name may have changed, or it was erased.');
  const texts = (name: string) => found.texts(name).map(text => text ?? '');
  const rows = {
    collection: texts('collection'),
    state: texts('state'),
    reason: found.texts('reason'),
    documents: found.numbers('documents').map(count => count ?? 0),
    read_at: found.numbers('read_at'),
    run: found.texts('run'),
    run_kind: found.texts('run_kind'),
    run_state: found.texts('run_state'),
  };
  return { id, day, sentence: tellCell(id, rows.state), rows };
}
