import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resources } from '../schema/index.ts';
import { addDays, findDayNumber, MICROS_PER_DAY } from '../schema/instant.ts';
import { createPeople, type People } from '../src/simulator/users/people.ts';
import type { Asked } from './limit.ts';

/** What the sandbox's people did in a year, as JSON on disk: both sides of every comparison read the same bytes. */
export interface Recording {
  folder: string;
  users: string[];
  from: string;
  to: string;
}

/** Documents (or rows) of one person in one collection, in their order, as one text with commas between them. */
export interface Recorded {
  /** Days as text; for heart rate milliseconds since the epoch. */
  keys: string[];
  json: Buffer;
  /** Where each begins; one more at the end. Each ends one byte (the comma) before the next begins. */
  starts: number[];
}

const SEED = 7;
const FROM = '2025-01-01';
const TO = '2025-12-31';
const HEART_RATE_EVERY_MS = 300_000;
export const HEART_RATE = 'heart_rate';
/** What a person really has. */
export const COLLECTIONS = ['daily_activity', 'sleep', 'daily_sleep', 'daily_readiness', 'daily_stress', 'daily_spo2', HEART_RATE];
export const ALL_SEVEN = 'activity, sleep, daily_sleep, readiness, stress, SpO2 and heart rate';

/** Records a year of so many people, or finds it in the system's temporary folder. */
export function ensureRecording(people: number, collections: readonly string[]): Recording {
  const folder = join(
    tmpdir(),
    `ringneck-bench-${generatorHash()}`,
    `${people}-${createHash('sha256').update(collections.join()).digest('hex').slice(0, 8)}`,
  );
  const users = Array.from({ length: people }, (_, i) => `user-${String(i + 1).padStart(3, '0')}`);
  const recording = { folder, users, from: FROM, to: TO };
  try {
    if (readdirSync(folder).length === people * collections.length) return recording;
  } catch {}
  const unfinished = `${folder}.${process.pid}`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const generated = createPeople({ seed: SEED, count: people, from: FROM, to: TO });
  users.forEach((user, i) => {
    const { userId } = generated.persons[i]!;
    for (const collection of collections) {
      const lines = collection === HEART_RATE ? thin(heartRateLines(generated, userId)) : documentLines(generated, userId, collection);
      writeFileSync(join(unfinished, fileName(user, collection)), lines.join('\n'));
    }
  });
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished, folder);
  return recording;
}

/** Nothing later than the last day. */
export function readRecorded({ folder, to }: Recording, user: string, collection: string): Recorded {
  const lines = readFileSync(join(folder, fileName(user, collection)), 'utf8')
    .split('\n')
    .filter(Boolean);
  const end = Date.parse(addDays(to, 1));
  return toRecorded(lines.filter(line => (collection === HEART_RATE ? Number.parseInt(line, 10) < end : line.slice(0, to.length) <= to)));
}

/** Lines of a key, a tab and JSON. */
function toRecorded(lines: readonly string[]): Recorded {
  const keys: string[] = [];
  const starts = [0];
  const documents = lines.map(line => {
    const tab = line.indexOf('\t');
    keys.push(line.slice(0, tab));
    const document = line.slice(tab + 1);
    starts.push(starts.at(-1)! + Buffer.byteLength(document) + 1);
    return document;
  });
  return { keys, json: Buffer.from(documents.join(',')), starts };
}

/** Heart rate of the last days until now, of people like those recorded: what events have the pipeline read. Made anew each time. */
export function generateHeartRate(people: number, days: number): Recorded[] {
  const today = new Date().toISOString().slice(0, 10);
  const generated = createPeople({ seed: SEED, count: people, from: addDays(today, -days), to: today });
  return generated.persons.map(({ userId }) => toRecorded(heartRateLines(generated, userId)));
}

function documentLines(people: People, userId: string, collection: string): string[] {
  const lines: string[] = [];
  for (let day = FROM; day <= TO; day = addDays(day, 1)) {
    for (const document of people.documents(userId, collection, day)) lines.push(`${document.day}\t${JSON.stringify(document)}`);
  }
  return lines;
}

function heartRateLines(people: People, userId: string): string[] {
  const [first, last] = [findDayNumber(people.from)! - 1, findDayNumber(people.to)! + 2].map(day => day * MICROS_PER_DAY);
  return people.heartRate(userId, first!, last!).map(row => `${row.timestamp_unix}\t${JSON.stringify(row)}`);
}

/** The first of each five minutes: a ring measures that often, the sandbox's by day four times as often. */
function thin(lines: readonly string[]): string[] {
  let last: number | undefined;
  return lines.filter(line => {
    const slot = Math.floor(Number.parseInt(line, 10) / HEART_RATE_EVERY_MS);
    const isFirst = slot !== last;
    last = slot;
    return isFirst;
  });
}

/** The JSON of some neighbours, without brackets. Shares memory with the recording. */
export function slice({ json, starts }: Recorded, from: number, to: number): Buffer {
  return from < to ? json.subarray(starts[from]!, starts[to]! - 1) : Buffer.alloc(0);
}

/** Heart rate from one moment until another, milliseconds. */
export function partOf(recorded: Recorded, from: number, until: number): Recorded {
  const [first, end] = [from, until].map(moment => recorded.keys.filter(key => Number(key) < moment).length) as [number, number];
  const starts = recorded.starts.slice(first, end + 1).map(start => start - recorded.starts[first]!);
  return { keys: recorded.keys.slice(first, end), json: slice(recorded, first, end), starts };
}

/** The identifiers of recorded documents, in their order. */
export function idsOf(recorded: Recorded): string[] {
  return recorded.keys.map((_, i) => (JSON.parse(slice(recorded, i, i + 1).toString()) as { id: string }).id);
}

/** Whole answers of a collection, as the service would send them one after another. */
export function answersOf(recorded: Recorded, pageSize: number): Buffer[] {
  const answers: Buffer[] = [];
  for (let from = 0; from < recorded.keys.length; from += pageSize) {
    const to = Math.min(from + pageSize, recorded.keys.length);
    const tail = to < recorded.keys.length ? `"page-${to}"` : 'null';
    answers.push(Buffer.concat([Buffer.from('{"data":['), slice(recorded, from, to), Buffer.from(`],"next_token":${tail}}`)]));
  }
  return answers;
}

export function resourceNamed(name: string) {
  const found = resources.find(resource => resource.name === name);
  if (!found) throw new Error(`no resource ${name}`);
  return found;
}

const fileName = (user: string, collection: string) => `${user}.${collection}.tsv`;

/** The generator will change: a recording of an earlier one is not used. */
function generatorHash(): string {
  const folder = fileURLToPath(new URL('../src/simulator/users/', import.meta.url));
  const hash = createHash('sha256').update(`${SEED} ${FROM} ${TO} ${HEART_RATE_EVERY_MS}`);
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    if (path.endsWith('.js')) hash.update(readFileSync(join(folder, path)));
  }
  return hash.digest('hex').slice(0, 8);
}

/** What a request for heart rate may span is 30 days (specification 4.3); four weeks are what one would take. */
const HEART_RATE_DAYS = 28;

/** What somebody would ask for by hand: documents in one range, heart rate in ranges of four weeks. By account, in the order of collections. */
export function listRequests({ users, from, to }: Recording, collections: readonly string[]): Asked[][] {
  return users.map((user, account) =>
    collections.flatMap(collection => {
      const asked = { user, account, collection };
      if (collection !== HEART_RATE) return [{ ...asked, path: resourceNamed(collection).path, query: { start_date: from, end_date: to } }];
      const ranges: Asked[] = [];
      for (let day = from; day <= to; day = addDays(day, HEART_RATE_DAYS)) {
        const end = [addDays(day, HEART_RATE_DAYS), addDays(to, 1)].sort()[0]!;
        ranges.push({ ...asked, path: 'heartrate', query: { start_datetime: `${day}T00:00:00Z`, end_datetime: `${end}T00:00:00Z` } });
      }
      return ranges;
    }),
  );
}
