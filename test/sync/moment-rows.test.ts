import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { WireDocument } from '../../schema/resource.ts';
import { warehouseSource } from '../../src/app/mirror.ts';
import type { BackfillInput } from '../../src/app/run-commands.ts';
import { createService } from '../../src/service/service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { type LiteralService, startLiteralService } from '../support/literal-service.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { resourceNamed } from '../support/warehouse.ts';

const NAME = 'ring_battery_level';
const PATH = `/v2/usercollection/${NAME}`;
const folder = tempFolder();
let folders = 0;

const level = (timestamp: string, percent: number): WireDocument => ({
  timestamp,
  timestamp_unix: Date.parse(timestamp),
  charging: false,
  in_charger: false,
  level: percent,
});

/** A harness with one account, at a service that has these rows and nothing else. */
async function setUp(...rows: WireDocument[]) {
  const service = await startLiteralService();
  onTestFinished(() => service.close());
  const held = { rows };
  service.on(PATH, ({ query }) => {
    const [start, end] = [query.get('start_datetime')!, query.get('end_datetime')!].map(Date.parse) as [number, number];
    const data = held.rows.filter(({ timestamp_unix: at }) => Number(at) >= start && Number(at) < end);
    return { json: { data, next_token: null } };
  });
  const clock = { ms: Date.parse('2025-06-01T12:00:00Z') };
  const client = { sleep: async () => {} };
  const harness = await openHarness(join(folder, `r${++folders}`), service.url, { now: () => clock.ms, client });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  return { service, held, harness, clock };
}

const read = (harness: Harness, input: Partial<BackfillInput> = {}) =>
  harness.backfill({ from: '2025-03-01', to: '2025-03-20', collections: [NAME], refresh: true, ...input });

const asked = (service: LiteralService) =>
  service.asked
    .filter(({ path }) => path.startsWith(PATH))
    .map(({ path, query }) => `${path.slice(PATH.length)}?${[...query].map(pair => pair.join('=')).join('&')}`);

const stored = (harness: Harness) => harness.read(`SELECT id, day::VARCHAR, level FROM ${NAME} ORDER BY id`);

const FIRST = level('2025-03-01T00:00:00.000Z', 90);
const MIDNIGHT = level('2025-03-20T23:59:59.999Z', 60);
const BESIDE = level('2025-03-21T00:00:00.000Z', 59);

test('rows are asked for by midnights in UTC, two days on each side, never of more than 30 days', async () => {
  const { service, harness } = await setUp(FIRST, MIDNIGHT, BESIDE);
  expect(await read(harness)).toMatchObject({ state: 'complete', documents: 3, requests: 1, failures: [] });
  expect(asked(service)).toEqual(['?start_datetime=2025-02-27T00:00:00.000Z&end_datetime=2025-03-23T00:00:00.000Z']);
  expect(await stored(harness)).toEqual([
    ['2025-03-01T00:00:00.000Z', '2025-03-01', 90],
    ['2025-03-20T23:59:59.999Z', '2025-03-20', 60],
    ['2025-03-21T00:00:00.000Z', '2025-03-21', 59],
  ]);
  service.asked.length = 0;
  await read(harness, { from: '2025-01-01', to: '2025-02-28' });
  expect(asked(service).sort()).toEqual([
    '?start_datetime=2024-12-30T00:00:00.000Z&end_datetime=2025-01-29T00:00:00.000Z',
    '?start_datetime=2025-01-25T00:00:00.000Z&end_datetime=2025-02-24T00:00:00.000Z',
    '?start_datetime=2025-02-20T00:00:00.000Z&end_datetime=2025-03-03T00:00:00.000Z',
  ]);
  expect(await harness.read('SELECT count(*) FROM sync.missed_events')).toEqual([[0]]);
});

test('rows that are there again are unchanged, and a row with another level is an update', async () => {
  const { held, harness } = await setUp(FIRST, MIDNIGHT);
  await read(harness);
  expect(await read(harness)).toMatchObject({ state: 'complete', documents: 2, unchanged: 2 });
  held.rows = [FIRST, { ...MIDNIGHT, level: 61 }];
  expect(await read(harness)).toMatchObject({ state: 'complete', documents: 2, unchanged: 1 });
  expect(await stored(harness)).toEqual([
    ['2025-03-01T00:00:00.000Z', '2025-03-01', 90],
    ['2025-03-20T23:59:59.999Z', '2025-03-20', 61],
  ]);
  expect(await findBroken(harness.read)).toEqual([]);
});

test('a row that the service has no more leaves after a second reading minutes later, and none is asked for by itself', async () => {
  const { service, held, harness, clock } = await setUp(FIRST, level('2025-03-09T12:00:00.000Z', 70), MIDNIGHT);
  await read(harness);
  held.rows = [FIRST, MIDNIGHT];
  service.asked.length = 0;
  expect(await read(harness)).toMatchObject({ state: 'failed', removed: 0, requests: 1, failures: [{ kind: 'suspicious' }] });
  clock.ms += 300_000;
  expect(await read(harness)).toMatchObject({ state: 'complete', removed: 1, documents: 2, requests: 2 });
  expect((await stored(harness)).map(([id]) => id)).toEqual(['2025-03-01T00:00:00.000Z', '2025-03-20T23:59:59.999Z']);
  expect(asked(service)).toEqual([
    '?start_datetime=2025-02-27T00:00:00.000Z&end_datetime=2025-03-23T00:00:00.000Z',
    '?start_datetime=2025-02-27T00:00:00.000Z&end_datetime=2025-03-23T00:00:00.000Z',
    // A moment is looked for on its own day alone.
    '?start_datetime=2025-03-09T00:00:00.000Z&end_datetime=2025-03-10T00:00:00.000Z',
  ]);
  expect(await harness.read('SELECT collection, id FROM sync.tombstones')).toEqual([[NAME, '2025-03-09T12:00:00.000Z']]);
});

test.each([
  ['after the others', [level('2025-03-19T00:00:00.000Z', 65), MIDNIGHT]],
  ['before the others', [FIRST, level('2025-03-02T00:00:00.000Z', 85)]],
])('answers with some rows %s alone, as to a range of their own, remove none until somebody says that they are gone', async (_, rows) => {
  const { held, harness, clock } = await setUp(FIRST, level('2025-03-09T12:00:00.000Z', 70), MIDNIGHT);
  await read(harness);
  held.rows = rows;
  for (let reading = 0; reading < 3; reading++) {
    clock.ms += 600_000;
    expect(await read(harness)).toMatchObject({
      ...{ state: 'failed', removed: 0 },
      failures: [
        {
          kind: 'suspicious',
          message: expect.stringContaining(
            'stored rows are missing before the first or after the last of the answer, as from one to a shorter range; nothing was removed',
          ),
        },
      ],
    });
  }
  expect(await stored(harness)).toHaveLength(4);
  expect(await read(harness, { acceptDeletions: true })).toMatchObject({ state: 'complete', removed: 2 });
});

test('an empty answer over stored rows removes none of them', async () => {
  const { held, harness, clock } = await setUp(FIRST, MIDNIGHT);
  await read(harness);
  held.rows = [];
  for (let reading = 0; reading < 2; reading++) {
    clock.ms += 600_000;
    expect(await read(harness)).toMatchObject({ state: 'failed', removed: 0, failures: [{ kind: 'suspicious' }] });
  }
  expect(await stored(harness)).toHaveLength(2);
});

test('a day without rows counts as read, and the day of a row by UTC', async () => {
  const { harness } = await setUp(level('2025-03-03T01:30:00.000+02:00', 80));
  await read(harness, { from: '2025-03-01', to: '2025-03-03' });
  expect(
    await harness.read(
      `SELECT day::VARCHAR, state, documents FROM sync.coverage_between(DATE '2025-03-01', DATE '2025-03-03') WHERE collection = '${NAME}' ORDER BY day`,
    ),
  ).toEqual([
    ['2025-03-01', 'empty', 0],
    ['2025-03-02', 'stored', 1],
    ['2025-03-03', 'empty', 0],
  ]);
});

test('the mirror serves rows as they came, in pages', async () => {
  const rows = [
    level('2025-03-09T23:30:00.000+00:00', 80),
    level('2025-03-10T01:30:00.000+01:00', 79),
    level('2025-03-10T02:00:00.000+00:00', 78),
    level('2025-03-10T02:00:00.000500+00:00', 77),
  ];
  const { harness } = await setUp(...rows);
  await read(harness);
  const service = createService({
    resources: [resourceNamed(NAME)],
    source: warehouseSource(harness.app.warehouse),
    authenticate: () => ({ userId: 'ada', state: 'active' }),
    settings: { heartRatePageSize: 2 },
    clock: () => new Date('2025-03-10T12:00:00Z'),
    tokenKey: randomBytes(32),
  });
  onTestFinished(() => service.close());
  const get = async (query: string) => (await service.inject({ url: `${PATH}?${query}`, headers: { authorization: 'Bearer t' } })).json();
  const first = await get('');
  expect(first.data).toEqual(rows.slice(0, 2));
  expect(await get(`next_token=${first.next_token}`)).toEqual({ data: rows.slice(2), next_token: null });
  expect(await get('latest=true')).toEqual({ data: rows.slice(3), next_token: null });
});
