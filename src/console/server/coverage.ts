import { addDays, dayNumberOf, findDayNumber } from '../../../schema/instant.ts';
import type { coverageRoutes } from '../api/coverage.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { askFor } from './columns.ts';
import { tellCell, tellCoverage } from './coverage-words.ts';
import type { Asking, Handlers } from './handlers.ts';
import { Refusal } from './refusal.ts';

type Coverage = AnswerOf<'GET coverage'>;
type Person = Coverage['people'][number];
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

async function findCoverage(input: ParsedInputOf<'GET coverage'>, { questions, session }: Asking): Promise<Coverage> {
  const known = await askFor(questions, 'coverage-days');
  const last = known.text('last') ?? input.to ?? '1970-01-01';
  const first = known.text('first') ?? last;
  const { from, to } = rangeOf(input, last);
  const about = await askFor(questions, 'coverage-about');
  ensureNotTooMany(from, to, about.number('people') ?? 0);
  const collection = input.collection ?? null;
  const [letters, states, worn] = await Promise.all([
    askFor(questions, 'coverage', { from, to, collection }),
    askFor(questions, 'coverage-reasons', { from, to, collection }),
    askFor(questions, 'coverage-worn', { from, to, hours: input.hours }),
  ]);
  const wornRow = new Map(worn.texts('id').map((id, row) => [id, row]));
  const all = letters.rows().map((row): Person => {
    const id = letters.text('id', row) ?? '';
    const at = wornRow.get(id);
    const count = (name: string) => (at === undefined ? 0 : (worn.number(name, at) ?? 0));
    return {
      id,
      account: letters.text('account', row) ?? '',
      reason: letters.text('reason', row),
      letters: letters.text('letters', row) ?? '',
      missing: letters.number('missing', row) ?? 0,
      failed: letters.number('failed', row) ?? 0,
      nights: count('nights'),
      worn_share: count('recorded_seconds') ? count('worn_seconds') / count('recorded_seconds') : null,
      valid_days: count('valid_days'),
    };
  });
  const cells = states.rows().map(
    (row): Known => ({
      id: states.text('id', row) ?? '',
      state: states.text('state', row) ?? '',
      reason: states.text('reason', row) ?? '',
      cells: states.number('cells', row) ?? 0,
    }),
  );
  const people = sortPeople(filterPeople(all, cells, input), input.sort);
  const pages = Math.max(1, Math.ceil(people.length / PAGE));
  const page = Math.min(input.page, pages);
  return {
    sentence: tellCoverage(all, { from, to, isOwn: session.person !== null }),
    from,
    to,
    first,
    last,
    hours: input.hours,
    collections: (about.text('collections') ?? '').split(' ').filter(Boolean),
    total: people.length,
    page,
    pages,
    people: people.slice((page - 1) * PAGE, page * PAGE),
    reasons: countReasons(cells),
  };
}

/** @throws Refusal naming what can be asked */
function rangeOf({ from, to }: { from?: string | undefined; to?: string | undefined }, last: string): { from: string; to: string } {
  for (const day of [from, to]) ensureDay(day ?? last);
  const end = to ?? last;
  const start = from ?? addDays(end, 1 - DAYS);
  if (start > end) throw new Refusal(400, `The first day, ${start}, is after the last one, ${end}.`, 'Change one of them.');
  if (dayNumberOf(end) - dayNumberOf(start) >= MOST_DAYS) {
    throw new Refusal(413, `${start} to ${end} is more than ${MOST_DAYS} days.`, 'Ask for fewer days.');
  }
  return { from: start, to: end };
}

function ensureDay(day: string): void {
  if (findDayNumber(day) === undefined) throw new Refusal(400, `${day} is no day.`, 'A day is written as 2025-11-22.');
}

function ensureNotTooMany(from: string, to: string, people: number): void {
  const days = dayNumberOf(to) - dayNumberOf(from) + 1;
  const most = Math.max(1, Math.floor(MOST_CELLS / Math.max(1, people)));
  if (days > most)
    throw new Refusal(413, `${days} days of ${people} people are too many to be shown together.`, `Ask for at most ${most} days.`);
}

function filterPeople(
  people: Person[],
  cells: readonly Known[],
  { state, reason }: { state?: string | undefined; reason?: string | undefined },
) {
  if (state === undefined) return people;
  const wanted = cells.filter(known => known.state === state && (reason === undefined || known.reason === reason));
  const ids = new Set(wanted.map(({ id }) => id));
  return people.filter(({ id }) => ids.has(id));
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function sortPeople(people: Person[], sort: 'missing' | 'name'): Person[] {
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
