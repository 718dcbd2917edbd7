import { expect, test } from 'vitest';
import { addDays } from '../../../schema/instant.ts';
import { windowEntry } from '../../../src/ledger/windows.ts';
import { startSweep } from '../../../src/sync/sweeps/sweep.ts';
import type { Warehouse } from '../../../src/warehouse/warehouse.ts';
import { account, at, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const NOW = Date.parse('2025-03-10T12:00:00Z');
const both = ['heart_rate', 'sleep'];

/** A run that has ended: each of its collections was read in one window. */
interface Past {
  kind: string;
  at: string;
  from: string;
  to: string;
  users: string[];
  /** Those of the request; both, where it says nothing. */
  collections?: string[];
  /** What became of each; complete, where it says nothing, and without a window, where that is undefined. */
  outcomes?: Record<string, 'complete' | 'failed' | 'suspicious' | 'not_offered' | undefined>;
  /** The days that were read, where these are others than the request's. */
  read?: [from: string, to: string];
  serviceAt?: string;
}

const night: Past = { kind: 'nightly', at: '2025-02-14T03:30:00Z', from: '2025-02-01', to: '2025-02-15', users: ['ada'] };

async function warehouseAfter(runs: readonly Past[], people: readonly string[]): Promise<Warehouse> {
  const warehouse = await warehouseWith(
    folder,
    people.map(name => account(name)),
  );
  for (const [
    i,
    { kind, at: when, from, to, users, collections = both, outcomes = {}, read: [begin, end] = [from, to], serviceAt },
  ] of runs.entries()) {
    const moment = at(when);
    const moments = { requestedAt: moment, readAt: moment, serviceAt: serviceAt ? at(serviceAt) : null, committedAt: moment };
    const range = { startAt: at(`${begin}T00:00Z`), endAt: at(`${addDays(end, 1)}T00:00Z`) };
    const windows = users.flatMap(userId =>
      collections.flatMap(collection => {
        const outcome = collection in outcomes ? outcomes[collection] : 'complete';
        return outcome ? [windowEntry({ runId: `r${i}`, userId, collection, ...range }, { ...moments, outcome, documents: 1 })] : [];
      }),
    );
    const request = JSON.stringify({ kind, from, to, users, collections, refresh: true });
    const row = { kind, started_at: moment, ended_at: moment, state: 'complete', request };
    await warehouse.record([...windows, { table: 'sync.runs', key: { run_id: `r${i}` }, row }]);
  }
  return warehouse;
}

interface Sweep {
  kind?: 'nightly' | 'sweep';
  days?: number;
  people?: string[];
  users?: string[];
}

/** What a sweep reads after these runs: days that follow each other are one span, in however many windows. */
async function readBy(
  runs: readonly Past[],
  { kind = 'nightly', days = 14, people = ['ada'], users = people }: Sweep = {},
): Promise<string[]> {
  const warehouse = await warehouseAfter(runs, people);
  const pipeline = await pipelineOf(warehouse, NOW);
  const { run } = await startSweep(pipeline, { kind, days, collections: both, users });
  const rows = await warehouse.read(
    `SELECT user_id, collection, start_at::DATE::VARCHAR, (end_at::DATE - 1)::VARCHAR FROM sync.windows WHERE run_id = '${run.id}' ORDER BY ALL`,
  );
  const spans: { place: string; from: string; to: string }[] = [];
  for (const [user, collection, from, to] of rows as string[][]) {
    const last = spans.at(-1);
    const place = `${user} ${collection}`;
    if (last?.place === place && addDays(last.to, 1) === from) last.to = to!;
    else spans.push({ place, from: from!, to: to! });
  }
  return spans.map(({ place, from, to }) => `${place} ${from.slice(5)} to ${to.slice(5)}`);
}

const bobs: Past = { kind: 'backfill', at: '2025-03-10T11:00:00Z', from: '2025-01-01', to: '2025-03-10', users: ['bob'] };
const rates: Past = {
  ...night,
  kind: 'sweep',
  at: '2025-03-10T11:00:00Z',
  from: '2025-03-09',
  to: '2025-03-11',
  collections: ['heart_rate'],
};

/** The same days of both collections. */
const bothOf = (user: string, ...spans: string[]) => both.flatMap(collection => spans.map(span => `${user} ${collection} ${span}`));
const ada = bothOf('ada', '02-13 to 03-11');
const bob = bothOf('bob', '03-09 to 03-11');

test.each([
  ['alone', [night], ['ada'], ['ada'], ada],
  ['beside one who was added since', [night], ['ada', 'bob'], ['ada', 'bob'], [...ada, ...bob]],
  ['beside one who was read since', [night, bobs], ['ada', 'bob'], ['ada', 'bob'], [...ada, ...bob]],
  ['whose heart rate alone was read since', [night, rates], ['ada'], ['ada'], ada],
  ['who is not asked for', [night, bobs], ['ada', 'bob'], ['bob'], bob],
])('the sweep after weeks in which nobody was here goes back to the last night of an account %s', async (_, runs, people, users, spans) => {
  expect(await readBy(runs, { kind: 'sweep', days: 3, people, users })).toEqual(spans);
});

const sweep: Past = { ...night, kind: 'sweep', at: '2025-03-10T11:00:00Z', from: '2025-02-13', to: '2025-03-11' };
const short: Past = { ...night, kind: 'backfill', at: '2025-03-10T10:00:00Z', from: '2025-03-10', to: '2025-03-11' };
const yesterdays: Past = { ...night, at: '2025-03-09T03:30:00Z', from: '2025-02-02', to: '2025-03-10' };

test.each([
  ['after weeks in which nobody was here as far back as the nights after the last one would have gone', [night], ['02-01 to 03-11']],
  ['but not over days that a sweep has read late enough since', [night, sweep], ['02-01 to 02-12', '02-25 to 03-11']],
  ['no less far where a backfill of the last days has come between', [night, short], ['02-01 to 03-11']],
  ['no less far where a night of few days has come between', [night, { ...short, kind: 'nightly' }], ['02-01 to 03-11']],
  ['no further than its own days after a backfill that went as far back', [night, { ...short, from: '2025-02-02' }], ['02-25 to 03-11']],
  ['no further than its own days where there was one the day before', [night, yesterdays], ['02-25 to 03-11']],
  ['no further than its own days where nothing was ever read', [], ['02-25 to 03-11']],
])('a night goes back, %s', async (_, runs, spans) => {
  expect(await readBy(runs, { days: 15 })).toEqual(bothOf('ada', ...spans));
});

/** Nights of 14 days, one after the other. */
function nights(first: string, last: string, changes: Partial<Past> = {}): Past[] {
  const found: Past[] = [];
  for (let day = first; day <= last; day = addDays(day, 1)) {
    found.push({ ...night, at: `${day}T03:30:00Z`, from: addDays(day, -12), to: addDays(day, 1), ...changes });
  }
  return found;
}
const byHand = (day: string, from: string, to: string): Past => ({ ...night, kind: 'backfill', at: `${day}T10:00:00Z`, from, to });

test('a night goes no further back than weeks where shorter ones have been the rule for longer', async () => {
  const old = { ...night, at: '2024-11-01T03:30:00Z', from: '2024-10-20', to: '2024-11-02' };
  const rule = nights('2024-11-09', '2025-03-08').map(run => ({ ...run, from: addDays(run.to, -2) }));
  expect(await readBy([old, ...rule])).toEqual(bothOf('ada', '01-26 to 03-11'));
});

test.each([
  [
    'a backfill of long ago that ended weeks without nights',
    [...nights('2024-12-01', '2024-12-24'), byHand('2025-01-02', '2024-12-05', '2025-01-03'), ...nights('2025-01-03', '2025-03-09')],
    ['02-26 to 03-11'],
  ],
  [
    'backfills of the last days that take the place of nights',
    nights('2024-12-01', '2025-03-09', { kind: 'backfill' }),
    ['02-26 to 03-11'],
  ],
  [
    'short readings before and after weeks in which its account was paused',
    [
      ...nights('2025-01-01', '2025-01-20'),
      byHand('2025-01-21', '2025-01-21', '2025-01-22'),
      byHand('2025-03-08', '2025-03-08', '2025-03-09'),
    ],
    ['01-08 to 03-11'],
  ],
  [
    'a backfill of days to come that was followed by weeks without nights',
    [...nights('2025-01-05', '2025-01-08'), byHand('2025-01-08', '2025-01-01', '2025-04-30'), ...nights('2025-01-09', '2025-01-20')],
    ['01-08 to 03-11'],
  ],
  [
    'a pause, and a backfill that left out what was settled',
    [
      ...nights('2025-01-20', '2025-02-10'),
      { ...byHand('2025-03-09', '2025-01-01', '2025-03-10'), read: ['2025-02-07', '2025-03-10'] as [string, string] },
    ],
    ['01-29 to 02-06', '02-26 to 03-11'],
  ],
  ['one night that was missed', nights('2025-02-01', '2025-03-08'), ['02-24 to 03-11']],
])('a night goes back as far as it should after %s', async (_, runs, spans) => {
  expect(await readBy(runs)).toEqual(bothOf('ada', ...spans));
});

test('a night goes back for a collection that was refused for weeks, and for nobody else', async () => {
  const refused = nights('2025-02-10', '2025-03-09', { outcomes: { sleep: undefined } });
  const bobs = nights('2025-01-20', '2025-03-09', { users: ['bob'] });
  expect(await readBy([...nights('2025-01-20', '2025-02-09'), ...refused, ...bobs], { people: ['ada', 'bob'] })).toEqual([
    'ada heart_rate 02-26 to 03-11',
    'ada sleep 01-28 to 03-11',
    ...bothOf('bob', '02-26 to 03-11'),
  ]);
});

test.each(['failed', 'not_offered'] as const)(
  'a night does not go back for a collection that was %s when it was read last',
  async outcome => {
    const ill = nights('2025-02-20', '2025-03-09', { outcomes: { sleep: outcome } });
    expect(await readBy([...nights('2025-01-20', '2025-02-19'), ...ill])).toEqual(bothOf('ada', '02-26 to 03-11'));
  },
);

test('a night goes back over days that others failed to read late enough, once the service answers again', async () => {
  const ill = nights('2025-02-20', '2025-03-08', { outcomes: { sleep: 'failed' } });
  const well = { ...rates, collections: ['sleep'] };
  expect(await readBy([...nights('2025-01-20', '2025-02-19'), ...ill, well])).toEqual([
    'ada heart_rate 02-24 to 03-11',
    'ada sleep 02-07 to 03-11',
  ]);
});

test('what a night has tried to read again in vain is tried day by day for 30 days, and then left to a repair', async () => {
  const paused = [...nights('2025-01-05', '2025-01-20'), ...nights('2025-02-05', '2025-03-09')];
  const inVain = (day: string): Past => ({
    ...nights(day, day)[0]!,
    read: ['2025-01-20', '2025-01-21'],
    outcomes: { sleep: 'failed', heart_rate: undefined },
  });
  const windowsAfter = async (day: string) => {
    const warehouse = await warehouseAfter([...paused, inVain(day)], ['ada']);
    const { run } = await startSweep(await pipelineOf(warehouse, NOW), { kind: 'nightly', days: 14, collections: ['sleep'] });
    return warehouse.read(
      `SELECT start_at::DATE::VARCHAR, (end_at - start_at)::VARCHAR FROM sync.windows WHERE run_id = '${run.id}' AND start_at < DATE '2025-02-01' ORDER BY ALL`,
    );
  };
  expect(await windowsAfter('2025-03-01')).toEqual([
    ['2025-01-08', '12 days'],
    ['2025-01-20', '1 day'],
    ['2025-01-21', '1 day'],
    ['2025-01-22', '2 days'],
  ]);
  expect(await windowsAfter('2025-02-06')).toEqual([
    ['2025-01-08', '12 days'],
    ['2025-01-22', '2 days'],
  ]);
});

test('by the calendar of a service that was years away nothing is told of these days', async () => {
  const away = nights('2025-01-20', '2025-02-09', { serviceAt: '2023-06-01T00:00:00Z', read: ['2023-05-20', '2023-06-02'] });
  expect(await readBy(away)).toEqual(bothOf('ada', '02-26 to 03-11'));
});
