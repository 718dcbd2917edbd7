const UNREADABLE_MS = 30_000;
/** A 429 that says 0 is not asked again in a busy loop. */
const SHORTEST_MS = 1_000;
/** What asks for more is taken for a mistake: an absurd value would silence a collection for good. */
const LONGEST_MS = 86_400_000;
const SECONDS = /^\d+(\.\d+)?$/;
/** `Date.parse` of V8 makes a date of nearly anything that holds a number, hence the pattern. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*, \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT$/;

export type Headers = Record<string, string | string[] | undefined>;

/** The first value of a header, or undefined. */
export function findHeader(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** What `Retry-After` asks for, in milliseconds, or undefined when it is missing, negative or unreadable. */
export function findRetryAfterMs(headers: Headers, now: number): number | undefined {
  const text = findHeader(headers, 'retry-after')?.trim();
  if (text === undefined) return undefined;
  if (SECONDS.test(text)) return Math.min(Number(text) * 1000, LONGEST_MS);
  const moment = findHttpDate(text);
  if (moment === undefined) return undefined;
  // The service's own clock, where it shows one and whatever it shows: ours may be wrong by an hour.
  const wait = moment - (findShownMs(headers) ?? now);
  return wait < 0 ? undefined : Math.min(wait, LONGEST_MS);
}

/** Nobody wore a ring before: the clock of a machine that was never set. */
const EARLIEST_MS = Date.UTC(2014, 0, 1);

/** The service's own clock as an answer shows it, in milliseconds and cut to whole seconds; undefined where it shows none. */
export function findDateMs(headers: Headers): number | undefined {
  const moment = findShownMs(headers);
  return moment === undefined || moment < EARLIEST_MS ? undefined : moment;
}

const findShownMs = (headers: Headers) => findHttpDate(findHeader(headers, 'date')?.trim() ?? '');

/** How long ago the service made an answer that a cache has kept, in seconds; 0 where nobody says. */
export function findAgeS(headers: Headers): number {
  const text = findHeader(headers, 'age')?.trim() ?? '';
  return /^\d+$/.test(text) ? Number(text) : 0;
}

function findHttpDate(text: string): number | undefined {
  const moment = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(moment) ? undefined : moment;
}

/** How long a 429 closes the rate limiter. */
export function parseRateLimitMs(headers: Headers, now: number): number {
  return Math.max(SHORTEST_MS, findRetryAfterMs(headers, now) ?? UNREADABLE_MS);
}
