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

/** A stretch of time in microseconds, `endAt` excluded. */
export interface MomentRange {
  startAt: number;
  endAt: number;
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

/** The number of a day that is known to be one. */
export function dayNumberOf(day: string): number {
  const number = findDayNumber(day);
  if (number === undefined) throw new RangeError(`${day} is no day`);
  return number;
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
  return findUsual(text) ?? findAny(text);
}

/** No text of the usual form is longer. */
const usual = new Uint8Array(32);

function findUsual(text: string): Instant | undefined {
  if (text.length > usual.length) return undefined;
  // What is no ASCII becomes 0, which no instant has.
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    usual[i] = code < 0x80 ? code : 0;
  }
  return findUsualInstant(usual, 0, text.length);
}

/** The day that was read last: of the next instant it is mostly the same. */
const recent = { digits: 19700101, number: 0 };

/**
 * Reads `2025-03-30T03:00:00` with `Z` or `+02:00`, and three digits of a second or none, several times as quickly as the pattern does.
 * @returns undefined of any other form, which may be an instant all the same
 */
export function findUsualInstant(bytes: Uint8Array, from: number, to: number): Instant | undefined {
  let at = from + 19;
  let millis = 0;
  if (bytes[at] === DOT) {
    millis = digitsAt(bytes, at + 1) * 10 + digitAt(bytes, at + 3);
    at += 4;
  }
  let offset = 0;
  if (to === at + 6) {
    const sign = bytes[at];
    const [hours, minutes] = [digitsAt(bytes, at + 1), digitsAt(bytes, at + 4)];
    if ((sign !== PLUS && sign !== MINUS) || bytes[at + 3] !== COLON || !(hours <= 23) || !(minutes <= 59)) return undefined;
    offset = (sign === MINUS ? -1 : 1) * (hours * 3600 + minutes * 60) || 0;
  } else if (to !== at + 1 || bytes[at] !== UPPER_Z) return undefined;
  if (bytes[from + 10] !== UPPER_T || bytes[from + 13] !== COLON || bytes[from + 16] !== COLON) return undefined;
  const [hour, minute, second] = [digitsAt(bytes, from + 11), digitsAt(bytes, from + 14), digitsAt(bytes, from + 17)];
  // Not a number where there is no digit.
  if (!(hour <= 23 && minute <= 59 && second <= 59 && millis >= 0)) return undefined;
  if (bytes[from + 4] !== MINUS || bytes[from + 7] !== MINUS) return undefined;
  const [year, month, day] = [
    digitsAt(bytes, from) * 100 + digitsAt(bytes, from + 2),
    digitsAt(bytes, from + 5),
    digitsAt(bytes, from + 8),
  ];
  const digits = year * 10_000 + month * 100 + day;
  if (digits !== recent.digits) {
    const number = digits >= 0 ? dayNumber(year, month, day) : undefined;
    if (number === undefined) return undefined;
    recent.digits = digits;
    recent.number = number;
  }
  const seconds = recent.number * 86_400 + hour * 3600 + minute * 60 + second - offset;
  return { micros: seconds * MICROS_PER_SECOND + millis * 1000, offset };
}

const [DOT, PLUS, MINUS, COLON, UPPER_T, UPPER_Z] = [0x2e, 0x2b, 0x2d, 0x3a, 0x54, 0x5a];

function digitAt(bytes: Uint8Array, at: number): number {
  const digit = bytes[at]! - 0x30;
  return digit >= 0 && digit <= 9 ? digit : Number.NaN;
}

const digitsAt = (bytes: Uint8Array, at: number) => digitAt(bytes, at) * 10 + digitAt(bytes, at + 1);

function findAny(text: string): Instant | undefined {
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

/** Microseconds since the epoch as ISO 8601 in UTC: `2025-03-01T12:00:00.000Z`. */
export const isoOf = (micros: number): string => formatInstant({ micros, offset: 0 }).replace('+00:00', 'Z');
