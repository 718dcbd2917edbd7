import { askFor } from './columns.ts';
import type { Asking } from './handlers.ts';
import { Refusal } from './refusal.ts';

/** The days of which something of a person is stored. */
export interface PersonDays {
  first: string;
  last: string;
  newestNight: string | null;
  /** What is shown where no day is asked for: the newest night, or the last day. */
  newest: string;
}

/** @throws Refusal 404 where there is nobody of that name, or nobody whom the session may see */
export async function findPerson(id: string, { questions, session, now }: Asking): Promise<PersonDays> {
  const isSeen = session.person === null || session.person === id;
  const found = isSeen ? await askFor(questions, 'person-days', { user: id }) : undefined;
  if (!found?.count) throw new Refusal(404, `Nobody is called ${id}.`, 'The overview lists everybody.');
  const today = new Date(now()).toISOString().slice(0, 10);
  const last = found.text('last_day') ?? today;
  const newestNight = found.text('newest_night');
  return { first: found.text('first_day') ?? last, last, newestNight, newest: newestNight ?? last };
}
