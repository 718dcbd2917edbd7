import { expect, test } from 'vitest';
import type { WireDocument } from '../../schema/resource.ts';
import type { Scope } from '../../schema/scopes.ts';
import { startService } from './literal-service.ts';

const PATH = '/v2/usercollection/ring_battery_level';

const row = (timestamp: string, level: number): WireDocument => ({
  timestamp,
  timestamp_unix: Date.parse(timestamp),
  charging: false,
  in_charger: false,
  level,
});

const ring_battery_level = [
  row('2025-02-08T15:30:00.000+00:00', 11),
  row('2025-03-09T15:29:59.999Z', 58),
  row('2025-03-09T15:30:00Z', 57),
  row('2025-03-10T00:00:00+00:00', 50),
  row('2025-03-10T12:00:00+02:00', 45),
  row('2025-03-10T15:29:59.999999Z', 40),
  row('2025-03-10T15:30:00Z', 39),
];
const ada = { documents: { ring_battery_level } };
const levels = (body: { data: WireDocument[] }) => body.data.map(({ level }) => level);

test('rows come as they are, of the last 24 hours when no range is given', async () => {
  const { get } = await startService({ ada });
  const answer = await get(PATH);
  expect(answer.body).toEqual({
    data: [
      { timestamp: '2025-03-09T15:30:00Z', timestamp_unix: 1741534200000, charging: false, in_charger: false, level: 57 },
      { timestamp: '2025-03-10T00:00:00+00:00', timestamp_unix: 1741564800000, charging: false, in_charger: false, level: 50 },
      { timestamp: '2025-03-10T12:00:00+02:00', timestamp_unix: 1741600800000, charging: false, in_charger: false, level: 45 },
      { timestamp: '2025-03-10T15:29:59.999999Z', timestamp_unix: 1741620599999, charging: false, in_charger: false, level: 40 },
    ],
    next_token: null,
  });
  expect((await get('/v2/sandbox/usercollection/ring_battery_level')).body).toEqual(answer.body);
});

test('of a range of rows the start is counted in and the end left out, by instant whatever the offset', async () => {
  const { get } = await startService({ ada });
  const read = async (start: string, end: string) =>
    levels((await get(`${PATH}?start_datetime=${encodeURIComponent(start)}&end_datetime=${encodeURIComponent(end)}`)).body);
  expect(await read('2025-03-10', '2025-03-11')).toEqual([50, 45, 40, 39]);
  expect(await read('2025-03-09', '2025-03-10')).toEqual([58, 57]);
  expect(await read('2025-03-10T05:45:00+05:45', '2025-03-10T05:00:00-05:00')).toEqual([50]);
  expect(await read('2025-03-10T10:00:00Z', '2025-03-10T10:00:00Z')).toEqual([]);
  expect(await read('0001-01-01T00:00:00Z', '0001-01-02T00:00:00Z')).toEqual([]);
  expect(await read('9999-12-31T00:00:00Z', '9999-12-31T23:59:59-23:59')).toEqual([]);
});

test('the newest row alone comes with latest: of the range, or of the last 30 days', async () => {
  const { get } = await startService({ ada }, { heartRatePageSize: 1 });
  const newest = row('2025-03-10T15:29:59.999999Z', 40);
  expect((await get(`${PATH}?latest=true`)).body).toEqual({ data: [newest], next_token: null });
  expect(levels((await get(`${PATH}?latest=1&end_datetime=2025-03-09T15:29:00Z`)).body)).toEqual([11]);
  expect(levels((await get(`${PATH}?latest=true&end_datetime=2025-02-08T15:30:00Z`)).body)).toEqual([]);
  expect(levels((await get(`${PATH}?latest=true&start_datetime=2025-03-09&end_datetime=2025-03-10`)).body)).toEqual([57]);
  expect((await get(`${PATH}?latest=true&fields=level`)).body.data).toEqual([{ timestamp: '2025-03-10T15:29:59.999999Z', level: 40 }]);
  expect(levels((await get(`${PATH}?latest=false`)).body)).toEqual([57]);
  const wrong = await get(`${PATH}?latest=perhaps`);
  expect([wrong.status, wrong.body]).toEqual([
    422,
    { detail: [{ loc: ['query', 'latest'], msg: 'Input should be true or false', type: 'bool_parsing', input: 'perhaps' }] },
  ]);
});

test('rows are paged by their moment, with fields, and a token goes on with no other question', async () => {
  const { get } = await startService({ ada }, { heartRatePageSize: 2 });
  const first = (await get(`${PATH}?fields=level,id,day`)).body;
  expect(first.data).toEqual([
    { timestamp: '2025-03-09T15:30:00Z', level: 57 },
    { timestamp: '2025-03-10T00:00:00+00:00', level: 50 },
  ]);
  const second = (await get(`${PATH}?next_token=${first.next_token}`)).body;
  expect([second.data, second.next_token]).toEqual([
    [
      { timestamp: '2025-03-10T12:00:00+02:00', level: 45 },
      { timestamp: '2025-03-10T15:29:59.999999Z', level: 40 },
    ],
    null,
  ]);
  expect((await get(`${PATH}?next_token=${first.next_token}&latest=true`)).status).toBe(400);
  expect((await get(`/v2/usercollection/sleep?next_token=${first.next_token}`)).status).toBe(400);
});

test('a range of rows that is reversed, longer than 30 days or none is refused', async () => {
  const { get } = await startService({ ada });
  const status = async (start: string, end: string) => (await get(`${PATH}?start_datetime=${start}&end_datetime=${end}`)).status;
  expect(await status('2025-02-08', '2025-03-10')).toBe(200);
  expect(await status('2025-02-07', '2025-03-10')).toBe(400);
  expect(await status('2025-03-10', '2025-03-09')).toBe(400);
  expect(await status('noon', '2025-03-09')).toBe(422);
});

test('battery levels need the scope personal', async () => {
  const allowed = (...scopes: Scope[]) => ({ authenticate: () => ({ userId: 'ada', state: 'active' as const, scopes }) });
  expect((await (await startService({ ada }, {}, allowed('daily', 'heartrate'))).get(PATH)).status).toBe(403);
  expect((await (await startService({ ada }, {}, allowed('personal'))).get(PATH)).status).toBe(200);
});

test('no row has a route of its own, and none is announced', async () => {
  const { get } = await startService({ ada });
  expect((await get(`${PATH}/2025-03-10T15:30:00.000Z`)).body).toEqual({ detail: 'Not Found' });
  const { paths, webhooks, components } = (await get('/openapi.json')).body;
  expect(Object.keys(paths).filter(path => path.includes('battery'))).toEqual([PATH, '/v2/sandbox/usercollection/ring_battery_level']);
  expect(JSON.stringify(webhooks ?? {})).not.toContain('battery');
  expect(paths[PATH].get.parameters.map(({ $ref }: { $ref: string }) => $ref.split('/').at(-1))).toEqual([
    ...['start_datetime', 'end_datetime', 'latest', 'next_token', 'fields'],
  ]);
  expect(components.schemas.RingBatteryLevelItem.required).toEqual(['timestamp']);
  const { get: asSpecified } = await startService({ ada }, { specificationOnly: true });
  expect((await asSpecified(PATH)).status).toBe(404);
});
