import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Answer, type FaultService, startFaultService } from './fault-service.ts';
import { type Harness, openHarness } from './harness.ts';
import { below, pick, type Random } from './random-documents.ts';
import { type Sandbox, startSandbox } from './sandbox.ts';

const days = { from: '2025-03-01', to: '2025-03-14' };
const range = { from: '2025-02-27', to: '2025-03-16' };
const PAGE = '<html><head><title>Sign in to this network</title></head><body>blocked</body></html>';

/** What lies between us and a service says of its own accord: none of it is the service's word. */
const OWN_ANSWERS: readonly Answer[] = [
  { status: 200, text: PAGE },
  { status: 200, json: {} },
  { status: 200, json: { status: 'ok' } },
  { status: 302, headers: { location: 'http://127.0.0.1:9/login' }, text: '' },
  { status: 400, text: PAGE },
  { status: 401, text: PAGE },
  { status: 403, text: PAGE },
  { status: 403, text: 'Forbidden', headers: { 'content-type': 'text/plain' } },
  { status: 404, text: PAGE },
  { status: 404, text: '' },
  { status: 410, text: PAGE },
  { status: 422, json: [] },
  { status: 429, text: PAGE, headers: { 'retry-after': '1' } },
  { status: 502, text: PAGE },
  { status: 503, text: PAGE, headers: { 'retry-after': '1' } },
  { fault: 'reset' },
];

export interface IntermediarySetting {
  sandbox: Sandbox;
  folder: string;
  /** Of a backfill that nobody disturbs. */
  hashes: Record<string, string>;
  /** The identifiers that it stores of each collection and day; of heart rate how many rows. */
  truth: Map<string, string>;
  close(): Promise<void>;
}

const contents = async (harness: Harness): Promise<Map<string, string>> => {
  const truth = new Map<string, string>();
  for (const { name, dated, dayField } of harness.app.warehouse.resources) {
    const day = dated ? `${dayField}::VARCHAR` : 'NULL';
    const rows = await harness.read(`SELECT ${day}, string_agg(id || content_hash, ' ' ORDER BY id) FROM "${name}" GROUP BY 1`);
    for (const [of, ids] of rows) truth.set(`${name} ${of}`, ids as string);
  }
  for (const [day, rows] of await harness.read('SELECT ts::DATE::VARCHAR, count(*)::VARCHAR FROM heart_rate GROUP BY 1')) {
    truth.set(`heart_rate ${day}`, rows as string);
  }
  return truth;
};

export async function openIntermediarySetting(folder: string): Promise<IntermediarySetting> {
  const sandbox = await startSandbox({ count: 1, ...days, settings: { pageSize: 4, heartRatePageSize: 3_000 } });
  const harness = await openHarness(join(folder, 'plain'), sandbox.url);
  await harness.add(sandbox.people);
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
  const [hashes, truth] = [await harness.hash(), await contents(harness)];
  await harness.close();
  return { sandbox, folder, hashes, truth, close: () => sandbox.close() };
}

/** So many first pages of one path are kept, to be said again. */
const KEPT = 200;

/**
 * Every so many of a hundred requests meet something else than the service: its own answer, which may stay for some requests more, a cut
 * one, or a first page of the same path, whatever was asked for.
 */
function disturb(proxy: FaultService, upstream: string, random: Random, percent: number): void {
  const bodies = new Map<string, string[]>();
  const own = new Map<string, { answer: Answer; left: number }>();
  const answer = async ({ path, rawQuery, headers }: FaultService['asked'][number]): Promise<Answer | undefined> => {
    const stays = own.get(path);
    if (stays && stays.left-- > 0) return stays.answer;
    const isDisturbed = below(random, 100) < percent;
    const kind = below(random, 5);
    if (isDisturbed && kind > 1) {
      const answer = pick(random, OWN_ANSWERS);
      own.set(path, { answer, left: 1 + below(random, 3) });
      return answer;
    }
    const before = bodies.get(path) ?? [];
    if (isDisturbed && kind === 1 && before.length) return { text: pick(random, before) };
    const response = await fetch(upstream + path + rawQuery, {
      headers: { authorization: headers.authorization ?? '' },
      redirect: 'manual',
    });
    const text = await response.text();
    if (response.status !== 200) return undefined;
    // First pages: of a later one in the place of an earlier one nobody can tell that it is not the next, for pages have no number.
    // And an empty one, as a probe of today gets, is as true of one range as of another.
    if (!rawQuery.includes('next_token') && !text.includes('"data":[]')) bodies.set(path, [...before.slice(1 - KEPT), text]);
    return isDisturbed ? { text, fault: 'truncate' } : { text };
  };
  for (const path of ['/v2/usercollection/*', '/v2/usercollection/*/*', '/v2/sandbox/usercollection/*']) proxy.on(path, answer);
}

/** What coverage says of a day that is not all there: nothing of it may be taken for done. */
async function findLies(harness: Harness, truth: IntermediarySetting['truth']): Promise<string[]> {
  const lies: string[] = [];
  // In this order: what comes between the two is no lie.
  const { runs } = await harness.commands.coverage({ from: days.from, to: days.to });
  const here = await contents(harness);
  for (const { collection, from, to, state } of runs) {
    if (!['stored', 'empty', 'not_offered'].includes(state)) continue;
    for (let day = from; ; day = nextDay(day!)) {
      const place = `${collection} ${day}`;
      if (state === 'not_offered' || here.get(place) !== truth.get(place)) lies.push(`${place} is ${state}`);
      if (day === null || day === to) break;
    }
  }
  return lies;
}

const nextDay = (day: string) => new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);

/**
 * A backfill behind something that answers in the service's place, then one over what is stored already; at every moment, and after each
 * of them, coverage says of no day that is missing that it is stored, empty or not offered. Once the service is heard alone, one repair
 * brings everything.
 */
export async function intermediaryRound(
  { sandbox, folder, hashes, truth }: IntermediarySetting,
  name: string,
  random: Random,
): Promise<void> {
  const proxy = await startFaultService({}, { upstream: sandbox.url });
  const harness = await openHarness(join(folder, name), proxy.url);
  try {
    await harness.add(sandbox.people);
    // At first the service itself is hardly heard: of no route it is known that it is there.
    for (const [refresh, percents] of [
      [false, [80]],
      [false, [2, 10, 40]],
      [true, [2, 10, 40]],
    ] as const) {
      disturb(proxy, sandbox.url, random, pick(random, percents));
      let isOver = false;
      const over = harness.backfill({ ...range, refresh }).finally(() => {
        isOver = true;
      });
      over.catch(() => undefined);
      while (!isOver) {
        expect(await findLies(harness, truth), `${name}, under way`).toEqual([]);
        await sleep(50);
      }
      await over;
      expect(await findLies(harness, truth), name).toEqual([]);
    }
    for (const path of ['/v2/usercollection/*', '/v2/usercollection/*/*', '/v2/sandbox/usercollection/*']) proxy.on(path, () => undefined);
    await harness.commands.repair({}, { emit: () => {}, signal: new AbortController().signal });
    expect(await harness.hash(), name).toEqual(hashes);
    expect(await harness.read(`SELECT user_id, state FROM sync.accounts WHERE state <> 'active'`), name).toEqual([]);
  } finally {
    await harness.close();
    await proxy.close();
  }
}
