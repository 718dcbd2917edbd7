import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { DATED_COLLECTIONS } from '../support/declared.ts';
import { type Answer, type Asked, type FaultService, startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { COLLECTIONS, HEART_RATE, shift } from '../support/wire-reader.ts';

const folder = tempFolder();
/** All of it is long over. */
const NOW = Date.parse('2025-06-01T12:00:00Z');

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({
    count: 3,
    from: '2025-01-01',
    to: '2025-02-20',
    now: () => NOW,
    settings: { pageSize: 20, heartRatePageSize: 20_000 },
  });
});
afterAll(() => sandbox.close());

/** One line of the service's access log: what was asked, and what was answered. */
interface Line {
  person: string;
  collection: string;
  /** As it was asked for; of heart rate the end is a moment, of the others a day that counts in. */
  from: string;
  to: string;
  firstPage: boolean;
  lastPage: boolean;
  status: number;
  /** Of each day, how many documents or rows were in the answer. */
  days: Map<string, number>;
  /** Days of which there was something that nobody could store. */
  spoilt: Set<string>;
  /** Whether there was something of which nobody could tell the day. */
  undated: boolean;
}

/** What becomes of an answer: another one, or one without the documents of some days, or with documents of some days in a bad state. */
type Fault = { status: number } | { without(day: string): boolean } | { spoil: 'id' | 'day' | 'timestamp'; of: string } | undefined;
type FaultScript = (request: { person: string; collection: string; from: string; firstPage: boolean }) => Fault;

const PATHS = { ...COLLECTIONS, heart_rate: HEART_RATE[0]! };
const UNDATED = 'ring_configuration';

/** The service behind a script of faults, with its access log. */
async function startLoggedService(script: FaultScript): Promise<{ service: FaultService; log: Line[] }> {
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const log: Line[] = [];
  for (const [collection, path] of Object.entries(PATHS)) service.on(path, request => answer(collection, request));

  async function answer(collection: string, request: Asked): Promise<Answer> {
    const person = sandbox.people.find(({ token }) => token === request.token)!.name;
    const [from, to] = ['start', 'end'].map(end => request.query.get(`${end}_date`) ?? request.query.get(`${end}_datetime`) ?? '');
    const line = { person, collection, from: from!.slice(0, 10), to: to!, firstPage: !request.query.has('next_token') };
    const fault = script(line);
    const { status, body } = fault && 'status' in fault ? { status: fault.status, body: { detail: 'scripted' } } : await forward(request);
    const data = (body as { data?: Record<string, string>[] }).data ?? [];
    const dayOf = (document: Record<string, string>) => document.day ?? document.timestamp?.slice(0, 10) ?? '';
    const kept = fault && 'without' in fault ? data.filter(document => !fault.without(dayOf(document))) : data;
    const days = new Map<string, number>();
    const spoilt = new Set<string>();
    let undated = false;
    const sent = kept.map(document => {
      const day = dayOf(document);
      if (!fault || !('spoil' in fault) || day !== fault.of) {
        days.set(day, (days.get(day) ?? 0) + 1);
        return document;
      }
      if (fault.spoil === 'id') spoilt.add(day);
      else undated = true;
      return { ...document, [fault.spoil]: 'id' === fault.spoil ? null : 'soon' };
    });
    const lastPage = status === 200 && ((body as { next_token?: string }).next_token ?? null) === null;
    log.push({ ...line, lastPage, status, days, spoilt, undated });
    return { status, json: status === 200 ? { ...body, data: sent } : body };
  }
  return { service, log };
}

async function forward({ path, rawQuery, token }: Asked): Promise<{ status: number; body: object }> {
  const response = await fetch(sandbox.url + path + rawQuery, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: (await response.json()) as object };
}

/** What the client asks for beside the days that it wants, on both sides. */
const WIDENED = 2;

/**
 * The state of each day, from the access log and what the script says of who is shut out. A reading is a first page and what followed it;
 * several of one range run after the other.
 */
function judge(log: readonly Line[], days: readonly string[], person: string, collection: string, isShutOut: boolean): string[] {
  const lines = log.filter(line => line.person === person && line.collection === collection);
  const isHeartRate = collection === 'heart_rate';
  const verdicts = new Map<string, string>();
  const stored = new Set<string>();
  const suspicious = new Set<string>();
  const spoilt = new Set<string>();
  const whole = new Set<string>();
  // Ranges that were not read to their end.
  const broken = new Map<string, Line>();
  let reading: Line[] = [];
  for (const line of lines) {
    // The pages of several ranges may come mixed: those of one range are told by it.
    reading = line.firstPage ? [...reading.filter(({ from, to }) => from !== line.from || to !== line.to), line] : [...reading, line];
    const pages = reading.filter(({ from, to }) => from === line.from && to === line.to);
    const covered = days.filter(day =>
      isHeartRate ? day >= line.from && day < line.to.slice(0, 10) : day >= shift(line.from, WIDENED) && day <= shift(line.to, -WIDENED),
    );
    // Of documents each page counts at once, of heart rate only the whole.
    const counted = isHeartRate ? (line.lastPage ? pages : []) : [line];
    const brought = new Set(counted.flatMap(page => [...page.days.keys()]));
    const isEmptyOverRows = isHeartRate && line.lastPage && !brought.size && covered.some(day => stored.has(day));
    for (const day of covered) {
      if (isEmptyOverRows) suspicious.add(day);
      else if (line.lastPage) suspicious.delete(day);
      const ended = pages.some(({ undated }) => undated) ? 'failed' : 'empty';
      if (line.lastPage) whole.add(day);
      const verdict = line.lastPage ? ended : line.status === 200 ? undefined : (VERDICTS[line.status] ?? 'failed');
      if (verdict) verdicts.set(day, verdict);
    }
    if (line.lastPage) broken.delete(`${line.from} ${line.to}`);
    else broken.set(`${line.from} ${line.to}`, line);
    for (const day of brought) stored.add(day);
    for (const day of line.spoilt) spoilt.add(day);
  }
  const otherwise = isShutOut ? 'not_authorised' : 'not_asked';
  const verdictOn = (day: string) => (spoilt.has(day) ? 'failed' : (verdicts.get(day) ?? otherwise));
  // Of a day that came with a range of which the rest never did, a part may be missing.
  const isPartial = (day: string) => !whole.has(day) && [...broken.values()].some(({ from, to }) => day >= from && day <= to);
  return days.map(day => (suspicious.has(day) ? 'suspicious' : stored.has(day) && !isPartial(day) ? 'stored' : verdictOn(day)));
}

const VERDICTS: Record<number, string> = { 401: 'not_authorised', 403: 'not_authorised', 404: 'not_offered' };

const range = (from: string, to: string): string[] => {
  const days: string[] = [];
  for (let day = from; day <= to; day = shift(day, 1)) days.push(day);
  return days;
};

test('coverage equals, day by day, what the fault script and the access log of the service say', async () => {
  const [ann, bob, cid] = sandbox.people.map(({ name }) => name);
  let lapsed = false;
  let empty = false;
  const { service, log } = await startLoggedService(({ person, collection, from, firstPage }) => {
    if (person === bob && lapsed) return { status: 403 };
    if (collection === 'daily_spo2') return { status: 404 };
    if (person === ann && collection === 'session') return { status: 403 };
    // The second page is dropped.
    if (person === ann && collection === 'daily_stress' && !firstPage && from < '2025-02-01') return { status: 500 };
    // One of its windows breaks down.
    if (person === ann && collection === 'heart_rate' && from >= '2025-01-12' && from < '2025-01-19') return { status: 502 };
    if (person === cid && collection === 'sleep' && from < '2025-02-01') return { status: 500 };
    if (person === cid && collection === 'heart_rate' && empty) return { without: () => true };
    // What cannot be stored: of one kind its day is known, of the others it may be any day of the range.
    if (person === ann && collection === 'daily_activity') return { spoil: 'id', of: '2025-01-12' };
    if (person === ann && collection === 'daily_resilience') return { spoil: 'day', of: '2025-01-12' };
    if (person === bob && collection === 'heart_rate' && from < '2025-01-12') return { spoil: 'timestamp', of: '2025-01-08' };
    // Honest gaps: a ring that was left in a drawer.
    return { without: day => person === cid && day >= '2025-01-20' && day <= '2025-01-24' };
  });
  let now = NOW;
  const harness = await openHarness(join(folder, 'data'), service.url, { now: () => now });
  await harness.add(sandbox.people);
  // Neither the days between the two nor those after them are asked for by anybody.
  await harness.backfill({ from: '2025-01-05', to: '2025-01-27', collections: Object.keys(COLLECTIONS) });
  for (const [from, to] of [
    ['2025-01-05', '2025-01-11'],
    ['2025-01-12', '2025-01-18'],
    ['2025-01-19', '2025-01-27'],
  ] as const)
    await harness.backfill({ from, to, collections: ['heart_rate'] });
  // One refusal of a collection is none.
  now += 60_000;
  await harness.backfill({ from: '2025-01-05', to: '2025-01-27', users: [ann!], collections: ['session'] });
  lapsed = true;
  await harness.backfill({ from: '2025-02-05', to: '2025-02-10' });
  empty = true;
  await harness.backfill({ from: '2025-01-12', to: '2025-01-18', users: [cid!], collections: ['heart_rate'], refresh: true });

  const days = range('2025-01-05', '2025-02-20');
  const rows = await harness.read(
    `SELECT user_id, collection, day::VARCHAR, state, documents FROM sync.coverage_between('2025-01-05', '2025-02-20')`,
  );
  const told = new Map(rows.map(([user, collection, day, state]) => [`${user} ${collection} ${day}`, state]));
  const seen: Record<string, number> = {};
  for (const { name: person } of sandbox.people) {
    for (const collection of Object.keys(PATHS)) {
      if (collection === UNDATED) continue;
      const isShutOut = person === bob || (person === ann && collection === 'session');
      const expected = judge(log, days, person, collection, isShutOut);
      expect(
        days.map(day => `${day} ${told.get(`${person} ${collection} ${day}`)}`),
        `${person} ${collection}`,
      ).toEqual(days.map((day, i) => `${day} ${expected[i]}`));
      for (const state of expected) seen[state] = (seen[state] ?? 0) + 1;
    }
  }
  expect(told.size).toBe(3 * (DATED_COLLECTIONS * days.length + 1));
  // The script is one that has something of each.
  expect(Object.keys(seen).sort()).toEqual(['empty', 'failed', 'not_asked', 'not_authorised', 'not_offered', 'stored', 'suspicious']);

  // Of heart rate the counts are those of the answers too.
  const answered = new Map<string, number>();
  for (const line of log) {
    if (line.person !== ann || line.collection !== 'heart_rate' || line.status !== 200) continue;
    for (const [day, count] of line.days) answered.set(day, (answered.get(day) ?? 0) + count);
  }
  const counts = rows.filter(([user, collection, , state]) => user === ann && collection === 'heart_rate' && state === 'stored');
  expect(counts.length).toBeGreaterThan(15);
  for (const [, , day, , count] of counts) expect(count, String(day)).toBe(answered.get(day as string));
});
