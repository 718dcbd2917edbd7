import { printable } from '../../base/printable.ts';
import { dayNumber, hoursAndMinutes, MONTHS, minutesText, offsetName, shortDay } from '../page/parts/format.ts';
import type { Metric } from '../page/parts/metrics.ts';
import { ENOUGH, listed, type MissingNight, SAME, type Sentence } from './night-words.ts';

const DAY = 86_400;

/** `November 2025` */
export const monthName = (month: string) => `${MONTHS[Number(month.slice(5)) - 1]} ${month.slice(0, 4)}`;

/** `1, 5–9 and 21 Nov` of days of one month, in their order. */
export const daysText = (days: readonly string[]) => `${numbersText(days)}${days[0] ? ` ${shortDay(days[0]).split(' ')[1]}` : ''}`;

function numbersText(days: readonly string[]): string {
  const runs: number[][] = [];
  for (const day of days) {
    const number = Number(day.slice(8));
    const run = runs.at(-1);
    if (run?.at(-1) === number - 1) run.push(number);
    else runs.push([number]);
  }
  return listed(runs.flatMap(run => (run.length > 2 ? [`${run[0]}–${run.at(-1)}`] : run.map(String))));
}

export function medianOf(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

interface Bed {
  start: number;
  end: number;
  offset: number;
  endOffset: number;
  /** Of waking. */
  day: string;
}

interface MonthToTell {
  name: string;
  isOver: boolean;
  /** Days of it until now. */
  days: number;
  beds: readonly Bed[];
  /** Seconds, by night; of the 28 days before the month too. */
  asleep: readonly number[];
  before: readonly number[];
  unusual: readonly string[];
  /** Whether there is a day that could be judged. */
  isJudged: boolean;
}

/** How a month was; of one that is not over only what is known of it so far. */
export function tellMonth({ name, isOver, days, beds, asleep, before, unusual, isJudged }: MonthToTell): Sentence {
  const said: Sentence = [];
  const median = medianOf(asleep);
  if (!isOver) said.push({ text: `${name} is not over. `, tone: 'answer' });
  if (!beds.length) return [...said, { text: `No night${isOver ? ` of ${name}` : ' of it'} is stored. `, tone: 'answer' }];
  if (median !== null) {
    said.push({ text: `${hoursAndMinutes(median)} asleep`, tone: 'answer' });
    said.push({ text: `${isOver ? comparedWith(median, before) : ''}; `, tone: 'plain' });
  }
  const so = isOver ? '' : ' so far';
  said.push({ text: `in bed from ${clockOf(beds, 'start')} to ${clockOf(beds, 'end')} `, tone: 'plain' });
  said.push({ text: `(medians of ${beds.length} ${beds.length === 1 ? 'night' : 'nights'} of ${days} days${so}). `, tone: 'plain' });
  if (unusual.length) {
    said.push({
      text: `${unusual.length === 1 ? '1 day was' : `${unusual.length} days were`} unusual: ${daysText(unusual)}.`,
      tone: 'unusual',
    });
  } else if (isJudged) said.push({ text: 'No day is called unusual.', tone: 'plain' });
  else said.push({ text: `What is usual is not known yet: that takes ${ENOUGH} nights before.`, tone: 'plain' });
  return said;
}

function comparedWith(median: number, before: readonly number[]): string {
  const usual = before.length < ENOUGH ? null : medianOf(before);
  if (usual === null) return '';
  const more = median - usual;
  if (Math.abs(more) < SAME) return ', about as long as in the 28 days before';
  return `, ${minutesText(Math.abs(more))} ${more > 0 ? 'more' : 'less'} than in the 28 days before`;
}

/** By each night's own clock, from the noon before, so that midnight divides nothing. */
function clockOf(beds: readonly Bed[], which: 'start' | 'end'): string {
  const local = beds.map(({ start, end, offset, endOffset, day }) => {
    return (which === 'start' ? start + offset : end + endOffset) - (dayNumber(day) - 0.5) * DAY;
  });
  const seconds = (medianOf(local) ?? 0) + DAY / 2;
  return new Date((Math.round(seconds / 60) * 60 + 10 * DAY) * 1000).toISOString().slice(11, 16);
}

/** Letters of what another said. */
const QUOTED = 48;

/** What another said, as far as it fits on a line. */
function quoted(reason: string | null): string {
  if (!reason) return '';
  const text = printable(reason);
  return ` (${text.length > QUOTED ? `${text.slice(0, QUOTED - 1)}…` : text})`;
}

/** Why there is nothing, in a few words. */
export function tellWhy(state: string | null, reason: string | null, stored: string): string {
  switch (state) {
    case 'empty':
      return 'the service has none';
    case 'stored':
      return stored;
    case 'not_offered':
      return 'the service does not offer it';
    case 'not_authorised':
      return `the service does not give it${quoted(reason)}`;
    case 'failed':
    case 'suspicious':
      return `could not be read${quoted(reason)}`;
    case 'pending':
      return `is being read${quoted(reason)}`;
    default:
      return 'not asked for since the day was over';
  }
}

export interface NoNight extends MissingNight {
  isToday: boolean;
}

/** Why a day has no night, on one line. */
export function tellNoNight({ isToday, state, reason, nonWear, isWorn, unended, naps }: NoNight): string {
  const worn = !isWorn && nonWear !== null ? `; ring not worn for ${hoursAndMinutes(nonWear)}` : '';
  if (unended > 0) return 'stored, but it has not ended yet';
  if (isToday) return 'no night yet: the day is not over';
  if (naps > 0) return `only ${naps === 1 ? 'a nap' : `${naps} naps`}${worn}`;
  return `${tellWhy(state, reason, 'the service has no main sleep')}${worn}`;
}

/** A line for each reason, with its days; the rest of too many in one. */
export function linesByReason(what: string, reasons: ReadonlyMap<string, readonly string[]>, most: number): string[] {
  const lines = [...reasons].map(([reason, days]) => `${what}, ${daysText(days)}: ${reason}.`);
  const rest = [...reasons.values()].slice(most).flat().sort();
  return rest.length ? [...lines.slice(0, most), `${what}, ${daysText(rest)}: other reasons.`] : lines;
}

/** How the numbers came about, as far as a reader of paper must know. */
const MEASURED: Readonly<Record<Metric, string>> = {
  total_sleep_duration: 'time asleep: by the stages that the service sees',
  average_hrv: 'HRV: rMSSD, mean of the night',
  lowest_heart_rate: 'lowest heart rate of the night',
  average_heart_rate: 'mean heart rate of the night',
  average_breath: 'breathing: mean of the night',
  temperature_deviation: 'temperature: of the skin, from the person’s usual as the service reckons it',
  spo2_average: 'oxygen: mean SpO2 of the night',
  efficiency: 'efficiency: asleep, of the time in bed',
  deep_sleep_duration: 'deep sleep: by the stages that the service sees',
  rem_sleep_duration: 'REM sleep: by the stages that the service sees',
  sleep_score: 'sleep score: 1 to 100, of the service’s own making',
  readiness_score: 'readiness score: 1 to 100, of the service’s own making',
  activity_score: 'activity score: 1 to 100, of the service’s own making',
  stress_high: 'high stress: time of the day that the service calls so',
  steps: 'steps of the day',
  active_calories: 'active energy of the day',
};

/** @param offsets of the clock, in the order in which the nights have them; `from` is empty for the first */
export function tellMeasured(id: string, offsets: readonly { offset: number; from: string }[], metrics: readonly Metric[]): string[] {
  const [first, ...moves] = offsets;
  const moved = moves.map(({ offset, from }) => `${offsetName(offset)} from ${shortDay(from)}`);
  const clock = first ? [` (${[offsetName(first.offset), ...moved.slice(0, 6)].join(', ')}${moved.length > 6 ? ' …' : ''})`] : [];
  return [
    `By a ring: ${metrics.map(metric => MEASURED[metric]).join('; ')}.`,
    `A night counts on the day of waking. Hours are those of ${id}’s own clock${clock.join('')}.`,
    `Band: median ± 1.48 times the median absolute deviation of the 28 days before each day, from ${ENOUGH} values on. ◆: 2 such spreads away or more. Called unusual: 3 or more, or 2 in two of temperature, breathing, HRV and lowest heart rate. A tick at the base: no value. No diagnosis.`,
  ];
}
