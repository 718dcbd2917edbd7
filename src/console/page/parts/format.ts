/** `7 h 21` of seconds. */
export function hoursAndMinutes(seconds: number): string {
  const minutes = Math.round(Math.abs(seconds) / 60);
  const sign = seconds < 0 && minutes > 0 ? '−' : '';
  return `${sign}${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')}`;
}

/** `46 min`, `1 h 05` of seconds. */
export function minutesText(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : hoursAndMinutes(seconds);
}

/** `00:05` on the clock of an offset. @param offset seconds east of UTC */
export function clock(instant: number, offset: number): string {
  return new Date((instant + offset) * 1000).toISOString().slice(11, 16);
}

/** `2026-11-22 00:05` on the clock of an offset. @param offset seconds east of UTC */
export function localText(instant: number, offset: number): string {
  return new Date((instant + offset) * 1000).toISOString().slice(0, 16).replace('T', ' ');
}

/** `UTC+5:45` @param offset seconds east of UTC */
export function offsetName(offset: number): string {
  const minutes = Math.abs(Math.round(offset / 60));
  if (minutes === 0) return 'UTC';
  const rest = minutes % 60 ? `:${String(minutes % 60).padStart(2, '0')}` : '';
  return `UTC${offset < 0 ? '−' : '+'}${Math.floor(minutes / 60)}${rest}`;
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const;
export const MONTHS = [
  ...(['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October'] as const),
  ...(['November', 'December'] as const),
] as const;

/** Days since 1970 of `2026-11-22`. */
export const dayNumber = (day: string) => Date.parse(`${day}T00:00:00Z`) / 86_400_000;

/** `0001-01-01` and `9999-12-31`: others are written in another way. */
const [FIRST_DAY, LAST_DAY] = [-719_162, 2_932_896];

/** `2026-11-22` of days since 1970; the first or the last day that has four digits for its year where there is none. */
export const dayOfNumber = (number: number) =>
  new Date(Math.min(Math.max(number, FIRST_DAY), LAST_DAY) * 86_400_000).toISOString().slice(0, 10);

export const addDays = (day: string, days: number) => dayOfNumber(dayNumber(day) + days);

/** `Sunday 22 November` */
export function dayName(day: string): string {
  const date = new Date(`${day}T00:00:00Z`);
  return `${WEEKDAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** `22 Nov` */
export function shortDay(day: string): string {
  const date = new Date(`${day}T00:00:00Z`);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]?.slice(0, 3)}`;
}

/** `13:45:09 UTC`, of another day `27 Nov 13:45:09 UTC`, of another year with it. */
export const momentText = (at: number, now: number) => `${utcText(at, now)} UTC`;

/** The same where the heading says that it is UTC. */
export function utcText(at: number, now: number): string {
  const [day = '', time = ''] = new Date(at * 1000).toISOString().split('T');
  const today = new Date(now * 1000).toISOString().slice(0, 10);
  const year = day.slice(0, 4) === today.slice(0, 4) ? '' : ` ${day.slice(0, 4)}`;
  return `${day === today ? '' : `${shortDay(day)}${year} `}${time.slice(0, 8)}`;
}
