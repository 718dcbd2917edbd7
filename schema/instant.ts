/**
 * Days and instants as the wire writes them. Pure text and number work: no `Date` parsing, because `Date` reads the machine's
 * time zone into text without an offset and drops microseconds.
 */

/** A moment with the offset it was written with. `micros` counts from the Unix epoch, UTC; exact up to the year 2255. */
export interface Instant {
  micros: number;
  /** Seconds east of UTC. */
  offset: number;
}

const INSTANT = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:([Zz])|([+-])(\d\d):?(\d\d)(?::?(\d\d))?)$/;
const DAY = /^(\d{4})-(\d\d)-(\d\d)$/;
const MICROS_PER_SECOND = 1_000_000;
export const MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND;

/** The number of days since 1970-01-01, or undefined when the text is not a calendar day. */
export function findDayNumber(text: string): number | undefined {
  const match = DAY.exec(text);
  if (!match) return undefined;
  return dayNumber(Number(match[1]), Number(match[2]), Number(match[3]));
}

function dayNumber(year: number, month: number, day: number): number | undefined {
  if (month < 1 || month > 12 || day < 1 || day > 31 || year < 1) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.getTime() / 86_400_000;
}

/** The day with this number, as `YYYY-MM-DD`. */
export function formatDay(number: number): string {
  return new Date(number * 86_400_000).toISOString().slice(0, 10);
}

/** The day `count` days after `day`. Throws when `day` is not a calendar day. */
export function addDays(day: string, count: number): string {
  const number = findDayNumber(day);
  if (number === undefined) throw new RangeError(`not a day: ${day}`);
  return formatDay(number + count);
}

/** The UTC day of a moment in microseconds. */
export function dayOfMicros(micros: number): string {
  return formatDay(Math.floor(micros / MICROS_PER_DAY));
}

/**
 * Reads an ISO 8601 date-time with offset. Undefined when it has no offset, names no real moment, or is finer than a microsecond
 * (which no column could keep).
 */
export function findInstant(text: string): Instant | undefined {
  const match = INSTANT.exec(text);
  if (!match) return undefined;
  const days = dayNumber(Number(match[1]), Number(match[2]), Number(match[3]));
  const [hour, minute, second] = [Number(match[4]), Number(match[5]), Number(match[6] ?? 0)];
  if (days === undefined || hour > 23 || minute > 59 || second > 59) return undefined;
  const fraction = (match[7] ?? '').padEnd(9, '0');
  if (fraction.slice(6) !== '000') return undefined;
  const [offsetHour, offsetMinute, offsetSecond] = [Number(match[10] ?? 0), Number(match[11] ?? 0), Number(match[12] ?? 0)];
  if (offsetHour > 23 || offsetMinute > 59 || offsetSecond > 59) return undefined;
  const offset = (match[9] === '-' ? -1 : 1) * (offsetHour * 3600 + offsetMinute * 60 + offsetSecond) || 0;
  const seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
  return { micros: seconds * MICROS_PER_SECOND + Number(fraction.slice(0, 6)), offset };
}

/** Writes an instant in its own local time: `2025-03-30T03:00:00.000+02:00`; microseconds only where there are any; offset 0 as `+00:00`. */
export function formatInstant({ micros, offset }: Instant): string {
  const local = micros + offset * MICROS_PER_SECOND;
  const millis = Math.floor(local / 1000);
  const rest = local - millis * 1000;
  const text = new Date(millis).toISOString().slice(0, 23) + (rest ? String(rest).padStart(3, '0') : '');
  const size = Math.abs(offset);
  const part = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const seconds = size % 60 ? `:${part(size % 60)}` : '';
  return `${text}${offset < 0 ? '-' : '+'}${part(size / 3600)}:${part((size % 3600) / 60)}${seconds}`;
}
