import { isWithdrawn } from '../../app/fixes.ts';
import { dayName, shortDay } from '../page/parts/format.ts';
import { tellCause } from './behind.ts';
import { listed, type Sentence, tellUnusual, type UsualRow } from './night-words.ts';
import type { Brief } from './people-judged.ts';

/** By the hour of the clock that most people have. */
export function greetingAt(hour: number): string {
  if (hour < 5 || hour >= 18) return 'Good evening';
  return hour < 12 ? 'Good morning' : 'Good afternoon';
}

/** How somebody is doing, in a word or two. */
export function tellState({ state, reason, night }: Brief, { hasUsual }: { hasUsual: boolean }): string {
  switch (state) {
    case 'parked':
      return `parked: ${causeIn({ state, reason })}`;
    case 'failed':
      return 'not all could be read';
    case 'unusual':
      return 'unusual';
    case 'long_missing':
      return night ? `no night since ${shortDay(night.day)}` : 'no night';
    case 'empty':
      return 'no night stored yet';
    case 'waiting':
      return 'no night yet';
    case 'paused':
      return isWithdrawn(reason) ? 'withdrawn' : 'paused';
    case 'usual':
      return hasUsual ? 'as usual' : 'not enough nights yet';
  }
}

/** Why somebody needs a look; undefined: nobody has to. */
export function tellNeed(brief: Brief, whose = brief.id): string | undefined {
  const { state, reason, night, unusual } = brief;
  switch (state) {
    case 'parked':
      return `${tellCause({ state, reason }).replace(/\.?$/, '.')} Nothing new comes.`;
    case 'failed':
      return `Not all of the last days could be read${reason ? `: ${reason}` : ''}.`;
    case 'unusual':
      return `${tellUnusual(unusual.map(toTell), whose)}.`;
    case 'long_missing':
      return night ? `No night since ${dayName(night.day)} ${night.day.slice(0, 4)}.` : undefined;
    case 'empty':
      return 'No night is stored yet.';
    default:
      return undefined;
  }
}

/** Within a sentence. */
function causeIn(account: Pick<Brief, 'state' | 'reason'>): string {
  const cause = tellCause(account).replace(/\.$/, '');
  return cause.charAt(0).toLowerCase() + cause.slice(1);
}

const toTell = ({ metric, value, z }: Brief['unusual'][number]): UsualRow => ({ metric, value, z, median: null, nights: 0 });

interface Around {
  /** The person who looks at their own data, else null. */
  own: string | null;
  /** Whether much is being read just now. */
  isReading: boolean;
}

/** The answer of the overview. */
export function tellPeople(people: readonly Brief[], { own, isReading }: Around): Sentence {
  const [first] = people;
  if (!first) return [{ text: 'Nobody is followed yet.', tone: 'answer' }];
  const of = (state: Brief['state']) => people.filter(brief => brief.state === state);
  const said: Sentence = [{ text: tellLastNight(people, own), tone: 'answer' }];
  const [mostUnusual, ...others] = of('unusual');
  if (mostUnusual) {
    const rest = others.length ? ` ${others.length} more ${others.length === 1 ? 'has' : 'have'} an unusual night.` : '';
    said.push({ text: ` ${tellNeed(mostUnusual, own === null ? mostUnusual.id : 'you')}${rest}`, tone: 'unusual' });
  }
  const missing = of('long_missing');
  if (missing.length === 1 && missing[0]?.night) {
    said.push({
      text: ` ${own === null ? missing[0].id : 'There is'} ${own === null ? 'has no' : 'no'} night since ${dayName(missing[0].night.day)}.`,
      tone: 'plain',
    });
  } else if (missing.length) said.push({ text: ` ${missing.length} have had no night for two days and more.`, tone: 'plain' });
  said.push({ text: ` ${tellBehind(of('parked').length, of('failed').length)}`, tone: 'plain' });
  // All others see the runs themselves, and how far they are.
  if (isReading && own !== null) said.push({ text: ' Data is being read just now.', tone: 'plain' });
  return said;
}

function tellLastNight(people: readonly Brief[], own: string | null): string {
  const with_ = people.filter(({ isLastNight }) => isLastNight).length;
  if (own !== null) return with_ ? 'Your last night is here.' : 'Your last night has not come yet.';
  const [only] = people;
  if (people.length === 1 && only) return with_ ? `${only.id} has last night.` : `The last night of ${only.id} has not come yet.`;
  return `${with_} of ${people.length} people have last night.`;
}

function tellBehind(parked: number, failed: number): string {
  if (!parked && !failed) return 'No reading of the last 7 days has failed.';
  const parts = [];
  if (parked) parts.push(`${parked} cannot be read until somebody signs in or resumes them`);
  if (failed) parts.push(`of ${failed} not all could be read`);
  const text = listed(parts);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
