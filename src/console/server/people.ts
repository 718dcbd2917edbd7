import type { peopleRoutes } from '../api/people.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { addDays } from '../page/parts/format.ts';
import { readsMuch } from '../page/parts/reads-much.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';
import { type Brief, dayAt, judgeEverybody, orderBy } from './people-judged.ts';
import { greetingAt, tellNeed, tellPeople, tellState } from './people-words.ts';

type People = AnswerOf<'GET people'>;
type Person = People['people'][number];

/** Who looks: all that is shown depends on. */
type Looking = Omit<Asking, 'session' | 'signal'> & { session: Pick<Asking['session'], 'person'> };

/** People of a page, links of "Needs a look", nights as bars, days of a small line. */
const PAGE = 60;
const LINKS = 5;
const NIGHTS = 14;
const DAYS = 28;
const METRICS = ['average_hrv', 'lowest_heart_rate', 'temperature_deviation'] as const;

export const peopleHandlers: Handlers<keyof typeof peopleRoutes> = {
  'GET people': findPeople,
};

async function findPeople({ q = '', sort, page: wanted }: ParsedInputOf<'GET people'>, asking: Looking): Promise<People> {
  const { questions, session, now } = asking;
  const at = Math.floor(now() / 1000);
  const isFound = (id: string) => id.toLowerCase().includes(q.trim().toLowerCase());
  const days = { from: addDays(dayAt(at, 0), -DAYS), to: addDays(dayAt(at, 0), 1) };
  const hasFile = questions.stamp !== undefined;
  const [judged] = hasFile ? await Promise.all([judgeEverybody(asking, at), askAhead(isFound, days, asking)]) : [[]];
  const everybody = judged.sort(orderBy.attention);
  const found = everybody.filter(({ id }) => isFound(id)).sort(orderBy[sort]);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  const page = Math.min(wanted, pages);
  const shown = found.slice((page - 1) * PAGE, page * PAGE);
  const needs = everybody.flatMap(brief => {
    const text = tellNeed(brief, session.person === null ? brief.id : 'you');
    return text === undefined ? [] : [{ id: brief.id, text }];
  });
  const offset = commonOffset(everybody);
  const range = { users: namesOf(shown.map(({ id }) => id)), ...days };
  return {
    greeting: greetingAt(new Date((at + offset) * 1000).getUTCHours()),
    at,
    offset,
    sentence: tellPeople(everybody, { own: session.person, isReading: await isReading(asking.commands) }),
    everybody: everybody.length,
    total: found.length,
    page,
    pages,
    people: shown.length ? await drawn(shown, range, asking) : [],
    needs_a_look: needs.slice(0, LINKS),
    more: Math.max(0, needs.length - LINKS),
    first_run: everybody.length ? null : await firstRun(asking),
    sql: questions.sqlOf('people-usual', range),
  };
}

/** Whether much is being read just now, which the snapshot has later. */
export async function isReading(commands: Asking['commands']): Promise<boolean> {
  // While the folder is closed for a moment its owner answers nothing.
  const runs = (await commands?.activeRuns().catch(() => undefined)) ?? [];
  return runs.some(readsMuch);
}

/** Asks what Overview shows of everybody, whose answers are kept. */
export async function askPeople(asking: Omit<Asking, 'session' | 'signal'>): Promise<void> {
  await findPeople({ sort: 'attention', page: 1 }, { ...asking, session: { person: null } });
}

/** The offset of most people's newest nights [seconds east of UTC]; of as many the first by name. */
function commonOffset(everybody: readonly Brief[]): number {
  const counts = new Map<number, number>();
  for (const { night } of [...everybody].sort(orderBy.name)) {
    const offset = night?.end_offset ?? null;
    if (offset !== null) counts.set(offset, (counts.get(offset) ?? 0) + 1);
  }
  const [most] = [...counts].sort(([, a], [, b]) => b - a);
  return most?.[0] ?? 0;
}

async function firstRun({ settings: { enrolment, signIn }, commands }: Looking): Promise<NonNullable<People['first_run']>> {
  const accounts = (await commands?.listAccounts()) ?? [];
  const followed = accounts.filter(({ state }) => state !== 'removed').length;
  if (enrolment) {
    const text = 'Makes a link by which the first person signs in, on any device:';
    return { followed, text, command: 'ringneck account invite NAME', can_invite: Boolean(signIn && commands) };
  }
  const text = signIn ? 'Opens the page of the service, on which the first person signs in:' : 'Takes the token of the first person:';
  return { followed, text, command: `ringneck account ${signIn ? 'login' : 'add'} NAME`, can_invite: false };
}

interface Days {
  from: string;
  to: string;
}

interface Range extends Days {
  users: string;
}

/** In one order, whatever that of the list is: so the question is the same one. */
const namesOf = (ids: readonly string[]) => JSON.stringify(ids.toSorted());

/** Where all who are found stand on one page, what is drawn of them is asked for before it is known in which order. */
async function askAhead(isFound: (id: string) => boolean, days: Days, asking: Looking): Promise<void> {
  const ids = (await askFor(asking.questions, 'people')).texts('id').flatMap(id => (id !== null && isFound(id) ? [id] : []));
  if (ids.length && ids.length <= PAGE) await askDrawn({ users: namesOf(ids), ...days }, asking);
}

const askDrawn = (range: Range, { questions }: Looking) =>
  Promise.all([askFor(questions, 'people-nights', { ...range }), askFor(questions, 'people-usual', { ...range })]);

async function drawn(shown: readonly Brief[], range: Range, asking: Looking): Promise<Person[]> {
  const [nights, usual] = await askDrawn(range, asking);
  const nightAt = new Map(nights.rows().map(row => [`${nights.text('day', row)} ${nights.text('id', row)}`, row]));
  const usualAt = new Map(
    usual.rows().map(row => [`${usual.text('metric', row)} ${usual.text('day', row)} ${usual.text('id', row)}`, row]),
  );
  return shown.map(brief => {
    const { id, night, isLastNight, unusual, state } = brief;
    const sparks = METRICS.map(metric => sparkOf(metric, brief, usual, usualAt));
    const bars = daysTo(brief.today, NIGHTS);
    const rows = bars.map(day => nightAt.get(`${day} ${id}`) ?? -1);
    const hasUsual = sparks.some(({ median }) => median.some(known => known !== null));
    return {
      id,
      state,
      says: tellState(brief, { hasUsual }),
      night,
      is_last_night: isLastNight,
      nights: { day: bars, start: nights.numbers('start_minute', rows), end: nights.numbers('end_minute', rows) },
      sparks,
      unusual: unusual.map(({ metric, z }) => ({ metric, z })),
    };
  });
}

const daysTo = (last: string, count: number) => Array.from({ length: count }, (_, index) => addDays(last, index + 1 - count));

function sparkOf(
  metric: (typeof METRICS)[number],
  brief: Brief,
  usual: Answered,
  usualAt: ReadonlyMap<string, number>,
): Person['sparks'][number] {
  const days = daysTo(brief.today, DAYS);
  const rows = days.map(day => usualAt.get(`${metric} ${day} ${brief.id}`) ?? -1);
  const values = usual.numbers('value', rows);
  return {
    metric,
    value: brief.isLastNight ? (values.at(-1) ?? null) : null,
    is_unusual: brief.unusual.some(one => one.metric === metric),
    day: days,
    values,
    median: usual.numbers('median', rows),
    spread: usual.numbers('spread', rows),
  };
}
