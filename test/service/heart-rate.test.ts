import { expect, test } from 'vitest';
import type { WireDocument } from '../../schema/resource.ts';
import { beat } from './documents.ts';
import { startService } from './literal-service.ts';

const PATH = '/v2/sandbox/usercollection/heartrate';
const heartRate = [
  beat('2025-03-09T15:29:59.999Z', 58, 'rest'),
  beat('2025-03-09T15:30:00Z', 59, 'rest'),
  beat('2025-03-10T09:00:00+00:00', 70),
  beat('2025-03-10T12:00:00+02:00', 71, 'workout'),
  beat('2025-03-10T10:00:00Z', 72, 'awake'),
  beat('2025-03-10T15:29:59.999999Z', 73),
  beat('2025-03-10T15:30:00Z', 74),
];
const ada = { documents: {}, heartRate };
const bpm = (body: { data: WireDocument[] }) => body.data.map(row => row.bpm);

test('the range is the last 24 hours when omitted', async () => {
  const { get } = await startService({ ada });
  expect(bpm((await get(PATH)).body)).toEqual([59, 70, 72, 71, 73]);
});

test('the end is now when only the start is given, and the start a day before the end', async () => {
  const { get } = await startService({ ada });
  expect(bpm((await get(`${PATH}?start_datetime=2025-03-10T10:00:00Z`)).body)).toEqual([72, 71, 73]);
  expect(bpm((await get(`${PATH}?end_datetime=2025-03-10T10:00:00Z`)).body)).toEqual([58, 59, 70]);
});

test('the start is counted in and the end left out, by instant whatever the offset', async () => {
  const { get } = await startService({ ada });
  const range = 'start_datetime=2025-03-10T14:45:00%2B05:45&end_datetime=2025-03-10T05:00:00-05:00';
  expect(bpm((await get(`${PATH}?${range}`)).body)).toEqual([70]);
  const instant = '2025-03-10T10:00:00Z';
  expect((await get(`${PATH}?start_datetime=${instant}&end_datetime=${instant}`)).body).toEqual({ data: [], next_token: null });
});

test('microseconds count', async () => {
  const { get } = await startService({ ada });
  const from = (start: string) => get(`${PATH}?start_datetime=${start}&end_datetime=2025-03-10T15:30:00Z`);
  expect(bpm((await from('2025-03-10T15:29:59.999999Z')).body)).toEqual([73]);
});

test('a bare date is its midnight in UTC', async () => {
  const { get } = await startService({ ada });
  expect(bpm((await get(`${PATH}?start_datetime=2025-03-10&end_datetime=2025-03-11`)).body)).toEqual([70, 72, 71, 73, 74]);
});

test('rows are paged by (timestamp, source), stable while rows are inserted', async () => {
  const rows = [...heartRate];
  const { get } = await startService({ ada: { documents: {}, heartRate: rows } }, { heartRatePageSize: 3 });
  const first = (await get(PATH)).body;
  expect(bpm(first)).toEqual([59, 70, 72]);
  rows.push(beat('2025-03-10T08:00:00Z', 1), beat('2025-03-10T10:00:00Z', 2, 'live'));
  const second = (await get(`${PATH}?next_token=${first.next_token}`)).body;
  expect([bpm(second), second.next_token]).toEqual([[2, 71, 73], null]);
});

test('a token works with the original parameters and not with others', async () => {
  const { get } = await startService({ ada }, { heartRatePageSize: 1 });
  const range = 'start_datetime=2025-03-10T09:00:00Z&end_datetime=2025-03-10T12:00:00Z';
  const token = (await get(`${PATH}?${range}&fields=bpm`)).body.next_token;
  const next = (rest: string) => get(`${PATH}?next_token=${token}${rest}`);
  expect((await next(`&${range}&fields=bpm`)).body.data).toEqual([{ timestamp: '2025-03-10T10:00:00Z', bpm: 72 }]);
  expect((await next('')).body.data).toEqual([{ timestamp: '2025-03-10T10:00:00Z', bpm: 72 }]);
  expect((await next('&start_datetime=2025-03-10T10:00:00%2B01:00')).status).toBe(200);
  expect((await next('&start_datetime=2025-03-10T10:00:00Z')).status).toBe(400);
  expect((await next('&fields=source')).status).toBe(400);
});

test('the plain path takes tokens of the sandbox path', async () => {
  const { get } = await startService({ ada }, { heartRatePageSize: 4 });
  const token = (await get(PATH)).body.next_token;
  expect(bpm((await get(`/v2/usercollection/heartrate?next_token=${token}`)).body)).toEqual([73]);
});

test('fields narrows the rows; timestamp always comes, unknown names are ignored', async () => {
  const { get } = await startService({ ada });
  const range = 'start_datetime=2025-03-10T09:00:00Z&end_datetime=2025-03-10T10:00:00Z';
  expect((await get(`${PATH}?${range}&fields=bpm,day,id`)).body.data).toEqual([{ timestamp: '2025-03-10T09:00:00+00:00', bpm: 70 }]);
});

test('more than 30 days are 400, 30 days are not', async () => {
  const { get } = await startService({ ada });
  const read = (end: string) => get(`${PATH}?start_datetime=2025-02-08T00:00:00Z&end_datetime=${end}`);
  expect((await read('2025-03-10T00:00:00Z')).status).toBe(200);
  const answer = await read('2025-03-10T00:00:00.000001Z');
  expect([answer.status, answer.body.detail]).toEqual([
    400,
    'Range from 2025-02-08T00:00:00.000+00:00 to 2025-03-10T00:00:00.000001+00:00 is longer than 30 days.',
  ]);
  expect((await get(`${PATH}?start_datetime=2025-01-01`)).status).toBe(400);
});

test('a reversed range is 400 and names both dates', async () => {
  const { get } = await startService({ ada });
  const answer = await get(`${PATH}?start_datetime=2025-03-10T02:00:00%2B01:00&end_datetime=2025-03-10T00:30:00Z`);
  expect([answer.status, answer.body]).toEqual([
    400,
    { detail: 'Start date 2025-03-10T01:00:00.000+00:00 is after end date 2025-03-10T00:30:00.000+00:00.' },
  ]);
});

test('a raw + in an offset arrives as a blank: 422 with a hint', async () => {
  const { get } = await startService({ ada });
  const { status, body } = await get(`${PATH}?start_datetime=2025-03-10T00:00:00+01:00`);
  expect([status, body]).toEqual([
    422,
    {
      detail: [
        {
          loc: ['query', 'start_datetime'],
          msg: 'Input has a blank where the offset begins: a + in a query must be sent as %2B',
          type: 'datetime_parsing',
          input: '2025-03-10T00:00:00 01:00',
        },
      ],
    },
  ]);
});

test('a date-time without an offset is one of UTC, and a blank may stand for its T', async () => {
  const { get } = await startService({ ada });
  const ask = (start: string, end: string) =>
    get(`${PATH}?start_datetime=${encodeURIComponent(start)}&end_datetime=${encodeURIComponent(end)}`);
  const expected = await ask('2025-03-09T00:00:00Z', '2025-03-10T12:00:00Z');
  expect(expected.status).toBe(200);
  for (const [start, end] of [
    ['2025-03-09T00:00:00', '2025-03-10T12:00:00'],
    ['2025-03-09 00:00:00', '2025-03-10 12:00:00'],
    ['2025-03-09 00:00:00Z', '2025-03-10 14:00:00+02:00'],
  ] as const)
    expect((await ask(start, end)).body).toEqual(expected.body);
});

test.each(['', 'now', '2025-03-10T24:00:00Z', '2025-02-30', '1741593600'])('"%s" is no moment: 422', async text => {
  const { get } = await startService({ ada });
  const { status, body } = await get(`${PATH}?start_datetime=${encodeURIComponent(text)}`);
  expect([status, body.detail[0]]).toMatchObject([422, { loc: ['query', 'start_datetime'], type: 'datetime_parsing', input: text }]);
});

test('a parameter given twice is 422', async () => {
  const { get } = await startService({ ada });
  expect((await get(`${PATH}?start_datetime=2025-03-10&start_datetime=2025-03-10`)).status).toBe(422);
});
