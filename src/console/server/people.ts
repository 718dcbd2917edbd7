import type { peopleRoutes } from '../api/people.ts';
import type { AnswerOf } from '../api/routes.ts';
import type { Asking, Handlers } from './handlers.ts';

type People = AnswerOf<'GET people'>;

export const peopleHandlers: Handlers<keyof typeof peopleRoutes> = {
  'GET people': findPeople,
};

async function findPeople({ q = '' }: { q?: string | undefined }, { questions }: Asking): Promise<People> {
  const rows = await questions.ask('people');
  const found = (rows.id ?? []).map((id, at): People['people'][number] => ({ id: String(id), night: nightAt(rows, at) }));
  const people = found.filter(({ id }) => id.toLowerCase().includes(q.toLowerCase()));
  const withNight = people.filter(({ night }) => night !== null).length;
  const sentence = people.length ? `${withNight} of ${people.length} people have a night.` : 'Nobody is here yet.';
  return { sentence, total: people.length, people };
}

function nightAt(rows: Readonly<Record<string, readonly unknown[]>>, at: number): People['people'][number]['night'] {
  const textOf = (name: string) => rows[name]?.[at];
  const numberOf = (name: string) => {
    const value = rows[name]?.[at];
    return typeof value === 'number' ? value : null;
  };
  const day = textOf('day');
  const end = numberOf('end');
  if (typeof day !== 'string' || end === null) return null;
  return {
    day,
    asleep: numberOf('asleep'),
    start: numberOf('start'),
    start_offset: numberOf('start_offset'),
    end,
    end_offset: numberOf('end_offset'),
  };
}
