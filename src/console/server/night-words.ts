import type { z } from 'zod';
import type { sentence } from '../api/night.ts';
import { hoursAndMinutes, minutesText } from '../page/parts/format.ts';
import { type Metric, metricWithUnit, wordsOf } from '../page/parts/metrics.ts';
import { unusualOf } from './unusual.ts';

export type Sentence = z.output<typeof sentence>;

export interface UsualRow {
  metric: string;
  value: number | null;
  median: number | null;
  z: number | null;
  nights: number;
}

interface NightToTell {
  asleep: number | null;
  latency: number | null;
  offsetChange: number;
  usual: readonly UsualRow[];
  /** Whose night it is: `you` where the person looks at their own. */
  whose: string;
}

/** Days that there must be before anything is called usual. */
export const ENOUGH = 14;
/** What falling asleep takes before it is worth a word: seconds. */
const LONG_LATENCY = 1800;
/** What time asleep must differ by before it is called more or less than usual: seconds. */
export const SAME = 900;

/** How a night was, against what is usual for the person. */
export function tellNight({ asleep, latency, offsetChange, usual, whose }: NightToTell): Sentence {
  const said: Sentence = [{ text: asleep === null ? 'How long is not known' : `${hoursAndMinutes(asleep)} asleep`, tone: 'answer' }];
  said.push({ text: `${compared(asleep, usual)}. `, tone: 'plain' });
  const unusual = tellUnusual(usual, whose);
  if (unusual) said.push({ text: `${unusual}. `, tone: 'unusual' });
  if (latency !== null && latency >= LONG_LATENCY) said.push({ text: `Falling asleep took ${minutesText(latency)}. `, tone: 'plain' });
  if (offsetChange !== 0) said.push({ text: tellClock(offsetChange), tone: 'plain' });
  return said;
}

function compared(asleep: number | null, usual: readonly UsualRow[]): string {
  const row = usual.find(({ metric }) => metric === 'total_sleep_duration');
  if (asleep === null || !row) return '';
  if (row.median === null) return `; what is usual is not known yet (${row.nights} of ${ENOUGH} nights)`;
  const more = asleep - row.median;
  if (Math.abs(more) < SAME) return ', about as long as usual';
  return `, ${minutesText(Math.abs(more))} ${more > 0 ? 'more' : 'less'} than usual`;
}

/** `Breathing (17.5 /min) and temperature (+0.77 °C) are well above what is usual for ada`; '' where nothing is called unusual. */
export function tellUnusual(usual: readonly UsualRow[], whose: string): string {
  const unusual = unusualOf(usual);
  const parts = [true, false].flatMap(isAbove => {
    const rows = unusual.filter(({ z }) => z > 0 === isAbove);
    if (!rows.length) return [];
    const names = rows.map(({ metric, value }) => `${wordsOf(metric).inText}${valueText(metric, value)}`);
    return [`${listed(names)} ${rows.length > 1 ? 'are' : 'is'} well ${isAbove ? 'above' : 'below'}`];
  });
  const text = parts.length ? `${parts.join(', ')} what is usual for ${whose}` : '';
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const valueText = (metric: Metric, value: number | null) => (value === null ? '' : ` (${metricWithUnit(metric, value)})`);

/** `a, b and c` */
export const listed = (names: readonly string[]) =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

function tellClock(change: number): string {
  return `The clock moved ${change > 0 ? 'forward' : 'back'} by ${minutesText(Math.abs(change))} in this night; at which moment is not in the data. `;
}

/** Why a metric is not judged; '' where it is. */
export function noteOf({ value, median, z, nights, spread }: UsualRow & { spread: number | null }, isOfDay: boolean): string {
  if (value === null) return isOfDay ? 'none came for this day' : 'none came for this night';
  if (median === null) return `not enough nights yet (${nights} of ${ENOUGH})`;
  if (z !== null) return '';
  if (isOfDay && spread !== null && spread > 0) return 'not judged: the day is not over';
  // So it is where half of the days are alike, however much the others differ.
  return spread === 0 ? 'the same on most days before' : 'not judged';
}

export interface MissingNight {
  state: string | null;
  reason: string | null;
  nonWear: number | null;
  isWorn: boolean;
  unended: number;
  naps: number;
  /** Whether the day is not over by the person's clock. */
  isToday: boolean;
}

/** What is known of a sleep that nothing keeps from coming. */
const MAY_COME = ['empty', 'stored', 'not_asked'];

/** Why a day has no night. */
export function tellMissing({ state, reason, nonWear, isWorn, unended, naps, isToday }: MissingNight): string {
  const because = reason ? `: ${reason}` : '';
  const worn = !isWorn && nonWear !== null ? ` The ring was not worn for ${hoursAndMinutes(nonWear)} of this day.` : '';
  if (unended > 0) return 'A sleep of this day is stored that has not ended: the night comes when the ring has brought the rest of it.';
  const napsText = naps === 1 ? 'a nap' : `${naps} naps`;
  if (isToday && (state === null || MAY_COME.includes(state))) {
    return `The day is not over: its night may still come.${naps > 0 ? ` Only ${napsText} came so far.` : ''}`;
  }
  if (naps > 0 && !isToday) return `No main sleep came for this day, only ${napsText}.${worn}`;
  switch (state) {
    case 'empty':
      return `The service has no sleep for this day: it was asked after the day was over.${worn}`;
    case 'stored':
      return `What the service has of sleep for this day is not a night (deleted, or rest alone).${worn}`;
    case 'not_offered':
      return 'The service does not offer sleep.';
    case 'not_authorised':
      return `The service does not give this person’s sleep${because}.`;
    case 'failed':
    case 'suspicious':
      return `The sleep of this day could not be read${because}.`;
    case 'pending':
      return `The sleep of this day is being read${because}.`;
    default:
      return `Whether there is a sleep of this day is not known: it has not been asked for since the day was over${because}.${worn}`;
  }
}
