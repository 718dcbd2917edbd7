import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { parseLakeAddress } from './lake-address.ts';
import { splitWords } from './on-failure.ts';

const require = createRequire(import.meta.url);

/** Reads a value from its text. `expected` says in the words of the error message what that is. */
export interface Parser<Value> {
  expected: string;
  /** Undefined where the text is not that. */
  parse: (given: string) => Value | undefined;
}

/** What one environment variable is. */
export interface Setting<Value> {
  variable: string;
  /** Read like a given value when the variable is not set; without one the setting may be undefined. */
  fallback?: string;
  /** What the table shows as default, where that is not the fallback itself. */
  shown?: string;
  meaning: string;
  value: Parser<Value>;
  /** Its value is not shown, and may also come from the file that `<variable>_FILE` names. */
  secret?: true;
}

type Defaulted<Value> = Setting<Value> & { fallback: string };

/** A setting that always has a value: its fallback, when the variable is not set. */
export const required = <Value>(
  variable: string,
  fallback: string,
  meaning: string,
  value: Parser<Value>,
  shown?: string,
): Defaulted<Value> => ({
  variable,
  fallback,
  meaning,
  value,
  ...(shown === undefined ? {} : { shown }),
});

/** A setting that may be undefined. */
export const optional = <Value>(variable: string, meaning: string, value: Parser<Value>, shown = '–'): Setting<Value | undefined> => ({
  variable,
  meaning,
  value,
  shown,
});

/** A setting whose value nobody may see who looks at the environment or at an error. */
export const secret = <Value>(setting: Setting<Value>): Setting<Value> => ({
  ...setting,
  meaning: `${setting.meaning}; or ${fileVariable(setting)}: a file that holds it`,
  secret: true,
});

export const fileVariable = ({ variable }: Pick<Setting<unknown>, 'variable'>): string => `${variable}_FILE`;

/** A parser for which whatever `read` throws counts as unreadable. */
const text = <Value>(expected: string, read: (given: string) => Value | undefined): Parser<Value> => ({
  expected,
  parse(given) {
    try {
      return read(given);
    } catch {
      return undefined;
    }
  },
});

export const matching = (pattern: RegExp, expected: string) => text(expected, given => (pattern.test(given) ? given : undefined));

export const oneOf = <const Value extends string>(values: readonly Value[]) =>
  text(`one of ${values.join(', ')}`, given => values.find(value => value === given));

export const count = (least: number, most: number) =>
  text(`a whole number from ${least} to ${most}`, given => {
    const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
    return value >= least && value <= most ? value : undefined;
  });

/** Null: off. */
export const portOrOff = text('a whole number from 0 to 65535, or “off”', given =>
  given === 'off' ? null : count(0, 65_535).parse(given),
);

// A shell expands ~ and $HOME; systemd, Docker and a file of settings do not: the folder would be called so.
export const path = text('a path (~ and $NAME are not expanded)', given => (/^~|\$[A-Za-z_{]/.test(given) ? undefined : resolve(given)));

export const serviceUrl = text('an http:// or https:// address without user, query or fragment', given => {
  const url = new URL(given);
  const plain = /^https?:$/.test(url.protocol) && !url.username && !url.password && !/[?#]/.test(given);
  return plain ? url.href.replace(/\/+$/, '') : undefined;
});

/** Whether what is sent there stays on this machine, or is encrypted on its way. */
export const isPrivateWay = (address: string): boolean => {
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
};

/** May have a query: the service adds its own parameters to it. */
export const callbackUrl = text('an http:// or https:// address without user or fragment', given => {
  const url = new URL(given);
  return /^https?:$/.test(url.protocol) && !url.username && !url.password && !given.includes('#') ? url.href : undefined;
});

/** Kept to the letter, as it is registered. One that is not on this machine is where a person copies the answer from. */
export const redirectUrl = text(
  'an address without user, query or fragment: http:// on this machine, as http://127.0.0.1:8976/callback, or https://',
  given => (serviceUrl.parse(given) !== undefined && isPrivateWay(given) ? given : undefined),
);

/** A person’s address is nobody’s business here: it is never asked for. */
export const scopes = text('words of printable ASCII separated by blanks, without `email`', given => {
  const words = [...new Set(given.trim().split(/\s+/))];
  return words.every(word => /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/.test(word) && word.toLowerCase() !== 'email') ? words : undefined;
});

export const headerValue = matching(/^[\x21-\x7e]{1,512}$/, 'one word of printable ASCII, at most 512 characters');

/** As people read it. */
export const shortLine = matching(/^(?=.*\S)[^\p{Cc}\u2028\u2029]{1,200}$/u, 'one line of at most 200 characters');

export const commandLine = text('a command, its quotes closed', given => (splitWords(given).length ? given : undefined));

export const queueUrl = text('a redis:// or rediss:// address', given => {
  const url = new URL(given);
  return /^rediss?:$/.test(url.protocol) && url.hostname !== '' ? given : undefined;
});

/** Minute and hour of every day: the fallback, and what most people say, is one without loading what knows all patterns. */
const DAILY = /^[0-5]?\d ([01]?\d|2[0-3]) \* \* \*$/;

// cron-parser fills missing fields in ("3" is "at any minute of the 3rd"), which is hardly what was meant.
export const cronPattern = text('a cron pattern of five or six fields, as `30 3 * * *`', given => {
  const pattern = given.trim();
  if (DAILY.test(pattern)) return pattern;
  if (!/^\S+(\s+\S+){4,5}$|^@[a-z]+$/.test(pattern)) return undefined;
  const { CronExpressionParser }: typeof import('cron-parser') = require('cron-parser');
  CronExpressionParser.parse(pattern).next();
  return pattern;
});

export const timeZone = text('an IANA time zone, as Europe/Zurich', given => {
  new Intl.DateTimeFormat('en', { timeZone: given });
  return given;
});

export const lakeAddress = text(
  'ducklake:postgres://user@host/catalogue?data=s3://bucket/prefix, or ?data=/a/folder: without a password, which has a setting of its own',
  parseLakeAddress,
);

export const fileMode = text('an octal file mode that lets the owner read and write, as 0600', given => {
  const mode = /^(0o?)?[0-7]{3}$/.test(given) ? Number.parseInt(given.slice(-3), 8) : 0;
  return (mode & 0o600) === 0o600 ? mode : undefined;
});
