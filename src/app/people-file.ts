import { readFileSync, statSync } from 'node:fs';
import { findDayNumber } from '../../schema/instant.ts';
import { accessOf } from '../base/access.ts';
import { parseCsv } from '../base/csv.ts';
import { messageOf, UsageError } from '../base/errors.ts';
import { printable } from '../base/printable.ts';
import { isToken, TOKEN_FORM } from '../base/token.ts';
import { isAccountName } from '../ledger/accounts.ts';
import type { Facts, FreeValue } from '../warehouse/participants.ts';
import { storable } from '../warehouse/sql.ts';

/** Of the facts those that somebody tells. */
export type Told = { readonly [Name in keyof Facts]?: Facts[Name] | undefined };

/** What a line of a file says of somebody. A column that the file lacks says nothing; null: it is to be empty. */
export interface PersonLine {
  line: number;
  name: string;
  token?: string;
  facts: Told;
  /** The columns of the study's own. */
  extra: Record<string, FreeValue | null>;
}

/** Why a line cannot be taken; without the value where that is a secret. */
export interface BadLine {
  line: number;
  column: string;
  value: string | null;
  wanted: string;
}

/** The same of a file with tokens. */
export type PersonToAdd = PersonLine & { token: string };

export interface PeopleFile<Person extends PersonLine = PersonLine> {
  people: Person[];
  /** When there are any, nothing of the file is to be done. */
  bad: BadLine[];
  /** The columns of the study's own. */
  free: string[];
}

/** What is told of its lines must fit into a call of the owner. */
const MOST_BYTES = 4_000_000;
export const MOST_LINES = 10_000;
const MOST_COLUMNS = 1_000;
const MOST_CHARACTERS = 1_000;
/** What is shorter opens nothing at any service. */
const SHORTEST_TOKEN = 16;

/** What stands in a column: its value, undefined where the text is none. */
interface Kind<Value> {
  wanted: string;
  parse: (text: string) => Value | undefined;
}

const TEXT: Kind<string> = {
  wanted: `a text of at most ${MOST_CHARACTERS} characters, without line breaks`,
  parse: text => (storable(text) && printable(text) === text && text.length <= MOST_CHARACTERS ? text : undefined),
};

const DAY: Kind<string> = { wanted: 'a day, YYYY-MM-DD', parse: text => (findDayNumber(text) === undefined ? undefined : text) };

const whole = (min: number, max: number): Kind<number> => ({
  wanted: `a whole number from ${min} to ${max}`,
  parse: text => (/^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined),
});

const YEAR = whole(1900, new Date().getUTCFullYear());
const BEATS = whole(60, 250);

/** In the order in which they are written. */
export const FACTS = ['group_name', 'enrolled_from', 'enrolled_until', 'birth_year', 'max_heart_rate'] as const satisfies (keyof Facts)[];

/** Other names that a known column may have. */
const ALIASES: Readonly<Record<string, string>> = { user_id: 'name', group: 'group_name' };

const NAME: Kind<string> = {
  wanted: 'the name of an account: 1 to 64 letters, digits, ".", "_" or "-"',
  parse: text => (isAccountName(text) ? text : undefined),
};

const TOKEN: Kind<string> = { wanted: `a token: ${TOKEN_FORM}`, parse: text => (isToken(text) ? text : undefined) };

/** What a column is called that everybody who reads the warehouse would read in clear. */
const SECRET = /token|secret|passw|pwd|credential|api.?key/i;

const KNOWN: readonly string[] = ['name', 'token', ...FACTS];

/** `Birth year` and `birthYear` are `birth_year`; any other name is one of the study's own. */
function columnOf(given: string): string {
  const plain = (name: string) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  const known = [...KNOWN, ...Object.keys(ALIASES)].find(name => plain(name) === plain(given));
  return known === undefined ? given : (ALIASES[known] ?? known);
}

/**
 * Reads a CSV file with a header and a line for each person.
 * @param withTokens whether it must have a column `token`, and then be closed to others; otherwise it must have none
 * @throws UsageError for a file that cannot be read as such, that lacks a column, or that others can read although it has tokens
 */
export function readPeopleFile(path: string, options: { withTokens: true }): PeopleFile<PersonToAdd>;
export function readPeopleFile(path: string, options: { withTokens: false }): PeopleFile;
export function readPeopleFile(path: string, { withTokens }: { withTokens: boolean }): PeopleFile {
  if (withTokens) ensureClosed(path);
  const [head, ...records] = parseCsv(readText(path), path);
  if (!head) throw new UsageError(`${path} is empty: its first line names the columns, ${withTokens ? 'name,token' : 'name,group_name'} …`);
  if (records.length > MOST_LINES) {
    throw new UsageError(
      `${path} has ${records.length} lines below the first: at most ${MOST_LINES} are taken at a time. Make several files of it, each with its first line`,
    );
  }
  const columns = readHead(path, head.fields, withTokens);
  const bad: BadLine[] = [];
  const people = records.flatMap(({ line, fields }) => {
    if (fields.length !== columns.length) {
      bad.push({ line, column: 'fields', value: String(fields.length), wanted: `${columns.length}, as the first line has` });
      return [];
    }
    const cells = new Map(columns.map((column, i) => [column, fields[i]?.trim() ?? '']));
    return [readPerson(line, cells, bad)];
  });
  findTwice(people, bad);
  const free = columns.filter(column => !KNOWN.includes(column));
  return { people, bad: bad.sort((a, b) => a.line - b.line), free };
}

function readText(path: string): string {
  try {
    const { size } = statSync(path);
    if (size > MOST_BYTES) throw new UsageError(`${path} is larger than ${MOST_BYTES / 1e6} MB: is it the right file?`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (error instanceof TypeError) throw new UsageError(`${path} is not UTF-8 text: save it as CSV in UTF-8`, { cause: error });
    throw new UsageError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Who reads the tokens of a study reads its people. */
function ensureClosed(path: string): void {
  if (process.platform === 'win32') return;
  const access = accessOf(path, `${path} is to hold tokens, and is`);
  if (access) throw new UsageError(`${access.message}: ${access.fix}`);
}

/** @returns for each field of a line which column it is */
function readHead(path: string, given: readonly string[], withTokens: boolean): string[] {
  const refuse = (why: string): never => {
    throw new UsageError(`${path}, line 1: ${why}`);
  };
  if (given.length > MOST_COLUMNS) refuse(`there are ${given.length} columns: at most ${MOST_COLUMNS}`);
  const columns = given.map(name => columnOf(name.trim().normalize('NFC')));
  // Of a file without its first line this is somebody's token.
  const show = (column: string) => (withTokens ? `number ${columns.indexOf(column) + 1}` : JSON.stringify(column.slice(0, 64)));
  for (const [i, column] of columns.entries()) {
    if (column === '') refuse(`column ${i + 1} has no name`);
    if (columns.indexOf(column) < i) refuse(`the column ${show(column)} is there twice`);
    if (!/^[\p{L}\p{N}_][\p{L}\p{N}_ .()%/+-]{0,63}$/u.test(column)) {
      refuse(`${withTokens ? `column ${i + 1}` : show(column)} cannot name a column: 1 to 64 letters, digits, blanks and _ . ( ) % / + -`);
    }
    if (column === 'extra') refuse('no column can be called "extra": write each of its values as a column of its own');
  }
  if (!columns.includes('name'))
    refuse(
      `there is no column "name"${withTokens ? ': this line names the columns, as name,token' : `, only ${columns.slice(0, 20).map(show).join(', ')}`}`,
    );
  if (withTokens && !columns.includes('token')) refuse('there is no column "token"');
  const secret = columns.find(column => SECRET.test(column) && !(withTokens && column === 'token'));
  if (secret !== undefined) {
    const instead = withTokens ? '; the column "token" alone is kept sealed' : ', or use ringneck account add --file';
    refuse(`tokens and passwords are no facts of participants: take the column ${JSON.stringify(secret)} out${instead}`);
  }
  return columns;
}

function readPerson(line: number, cells: ReadonlyMap<string, string>, bad: BadLine[]): PersonLine {
  // In a file with tokens one may stand in another's column.
  const isSecret = (column: string, value: string) =>
    column === 'token' || (cells.has('token') && value.length >= SHORTEST_TOKEN && isToken(value));
  const read = <Value>(column: string, { wanted, parse }: Kind<Value>): Value | undefined => {
    const value = cells.get(column) ?? '';
    const parsed = parse(value);
    if (parsed === undefined) bad.push({ line, column, value: isSecret(column, value) ? null : value, wanted });
    return parsed;
  };
  /** Null: the cell is empty; undefined: there is no such column. */
  const tell = <Value>(column: string, kind: Kind<Value>): Value | null | undefined => {
    if (!cells.has(column)) return undefined;
    return cells.get(column) === '' ? null : (read(column, kind) ?? null);
  };
  return {
    line,
    name: read('name', NAME) ?? '',
    ...(cells.has('token') && { token: read('token', TOKEN) ?? '' }),
    facts: {
      group_name: tell('group_name', TEXT),
      enrolled_from: tell('enrolled_from', DAY),
      enrolled_until: tell('enrolled_until', DAY),
      birth_year: tell('birth_year', YEAR),
      max_heart_rate: tell('max_heart_rate', BEATS),
    },
    extra: Object.fromEntries([...cells.keys()].flatMap(column => (KNOWN.includes(column) ? [] : [[column, tell(column, FREE) ?? null]]))),
  };
}

/** A number, true or false where that is just how it is written: what it is written as comes out again. */
const FREE: Kind<FreeValue> = {
  wanted: TEXT.wanted,
  parse: text => {
    if (text === 'true' || text === 'false') return text === 'true';
    return Number.isFinite(Number(text)) && String(Number(text)) === text ? Number(text) : TEXT.parse(text);
  },
};

/** Notes lines of a person, or with a token, of an earlier line. */
function findTwice(people: readonly PersonLine[], bad: BadLine[]): void {
  const lines = new Map<string, number>();
  const note = (line: number, column: string, text: string, value: string | null) => {
    if (text === '') return;
    const key = `${column} ${text}`;
    const before = lines.get(key);
    if (before === undefined) lines.set(key, line);
    else bad.push({ line, column, value, wanted: `another one than that of line ${before}` });
  };
  for (const { line, name, token } of people) {
    note(line, 'name', name, name);
    if (token !== undefined) note(line, 'token', token, null);
  }
}

/** What is wrong with a line, for whoever wrote it. */
export const describeBad = ({ line, column, value, wanted }: BadLine): string =>
  `line ${line}, ${column} ${value === null ? '(not shown)' : JSON.stringify(value)}: wanted ${wanted}`;
