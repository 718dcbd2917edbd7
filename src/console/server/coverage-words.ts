import { isWithdrawn } from '../../app/fixes.ts';

/** A person as far as the sentence needs to know them. */
interface Covered {
  id: string;
  account: string;
  missing: number;
  failed: number;
  /** Days of which the service has nothing of what comes every day. */
  lacking: number;
  /** Days of which the service does not give everything. */
  refused: number;
  /** Why it is not active. */
  reason: string | null;
}

/** Who is complete, and of the others what keeps them from it. */
export function tellCoverage(people: readonly Covered[], { from, to, isOwn }: { from: string; to: string; isOwn: boolean }): string {
  if (!people.length) return 'Nobody is here yet.';
  const period = `from ${from} to ${to}`;
  const [first] = people;
  if (isOwn && first) {
    const refused = first.account === 'active' && first.refused > 0 ? ' Some collections are not authorised.' : '';
    return first.missing
      ? `Of your days ${period}, ${daysText(first.missing)} not complete.${refused}`
      : `Of your days ${period} nothing ${refused ? 'else ' : ''}is missing.${refused}`;
  }
  const open = people.filter(({ missing }) => missing > 0);
  const complete = people.length - open.length;
  const said =
    complete === people.length
      ? `All that the service gives of ${people.length === 1 ? '1 person' : `all ${people.length} people`} was read, ${period}.`
      : `All that the service gives was read of ${complete} of ${people.length} people, ${period}.`;
  const withdrawn = open.filter(({ account, reason }) => account !== 'active' && isWithdrawn(reason)).length;
  const closed = open.filter(({ account }) => account !== 'active').length - withdrawn;
  const failed = open.filter(({ account, failed }) => account === 'active' && failed > 0);
  const rest: string[] = [];
  if (closed) rest.push(`${closed} cannot be read until somebody signs in or resumes them`);
  if (withdrawn) rest.push(`${withdrawn} ${withdrawn === 1 ? 'has' : 'have'} withdrawn and ${withdrawn === 1 ? 'is' : 'are'} not read`);
  if (failed.length) rest.push(`${namesOf(failed)} ${failed.length === 1 ? 'has' : 'have'} days that failed and can be read again`);
  const refused = people.filter(({ account, refused }) => account === 'active' && refused > 0);
  if (refused.length) rest.push(`of ${namesOf(refused)} some collections are not authorised`);
  const lacking = people.reduce((sum, { lacking }) => sum + lacking, 0);
  if (lacking) rest.push(`${lacking === 1 ? '1 day lacks' : `${lacking} days lack`} something that comes every day: the service has none`);
  return rest.length ? `${said} ${capital(rest.join('; '))}.` : said;
}

/** What a day of a person is like. */
export function tellCell(id: string, states: readonly string[]): string {
  const counted = new Map<string, number>();
  for (const state of states) counted.set(state, (counted.get(state) ?? 0) + 1);
  const told = [...counted].sort(([, a], [, b]) => b - a).map(([state, count]) => `${count} ${stateWord(state)}`);
  return `Of ${states.length} collections of ${id}: ${told.join(', ')}.`;
}

const WORDS: Readonly<Record<string, string>> = {
  empty: 'empty at the service',
  not_offered: 'not offered',
  not_authorised: 'not authorised',
  not_asked: 'not asked',
};

const stateWord = (state: string): string => WORDS[state] ?? state;
const daysText = (days: number) => (days === 1 ? '1 is' : `${days} are`);
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function namesOf(people: readonly Covered[]): string {
  return people.length <= 3 ? people.map(({ id }) => id).join(', ') : `${people.length} people`;
}
