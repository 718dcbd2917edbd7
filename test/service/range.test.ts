import { expect, test } from 'vitest';
import type { WireDocument } from '../../schema/resource.ts';
import { spo2 } from './documents.ts';
import { startService } from './literal-service.ts';

const DAYS = ['2025-03-07', '2025-03-08', '2025-03-09', '2025-03-10', '2025-03-11'];
const ofDays = () => DAYS.map(day => spo2(day));
const ada = {
  documents: {
    ...{ daily_spo2: ofDays(), daily_activity: ofDays(), sleep: ofDays(), session: ofDays(), daily_readiness: ofDays() },
    ...{ workout: ofDays(), daily_cardiovascular_age: ofDays() },
  },
};
const days = (body: { data: WireDocument[] }) => body.data.map(document => document.day);
const at = (name: string, query: string) => `/v2/usercollection/${name}?${query}`;

test('a range counts its first and its last day in', async () => {
  const { get } = await startService({ ada });
  for (const name of ['daily_spo2', 'daily_readiness', 'daily_cardiovascular_age'])
    expect(days((await get(at(name, 'start_date=2025-03-08&end_date=2025-03-10'))).body)).toEqual([
      '2025-03-08',
      '2025-03-09',
      '2025-03-10',
    ]);
});

test('activity, sleep, session and workout leave the end day out', async () => {
  const { get } = await startService({ ada });
  for (const name of ['daily_activity', 'sleep', 'session', 'workout']) {
    expect(days((await get(at(name, 'start_date=2025-03-08&end_date=2025-03-10'))).body)).toEqual(['2025-03-08', '2025-03-09']);
    expect((await get(at(name, 'start_date=2025-03-08&end_date=2025-03-08'))).body).toEqual({ data: [], next_token: null });
  }
});

test('with inclusiveEnd every collection counts the end day in', async () => {
  const { get } = await startService({ ada }, { inclusiveEnd: true });
  for (const name of ['daily_activity', 'sleep', 'session', 'daily_spo2'])
    expect(days((await get(at(name, 'start_date=2025-03-09&end_date=2025-03-10'))).body)).toEqual(['2025-03-09', '2025-03-10']);
});

test('the end is today (UTC) when omitted, the start the day before the end', async () => {
  const { get } = await startService({ ada });
  expect(days((await get(at('daily_spo2', ''))).body)).toEqual(['2025-03-09', '2025-03-10']);
  expect(days((await get(at('daily_activity', ''))).body)).toEqual(['2025-03-09']);
  expect(days((await get(at('daily_spo2', 'start_date=2025-03-08'))).body)).toEqual(['2025-03-08', '2025-03-09', '2025-03-10']);
  expect(days((await get(at('daily_spo2', 'end_date=2025-03-08'))).body)).toEqual(['2025-03-07', '2025-03-08']);
});

test('documents whose day has another name lie in ranges by it, and it always comes', async () => {
  const tags = DAYS.map(start_day => ({ id: `t-${start_day}`, comment: 'noted', start_day, start_time: `${start_day}T20:00:00+01:00` }));
  const { get } = await startService({ ada: { documents: { enhanced_tag: tags } } }, { pageSize: 1 });
  const first = (await get(at('enhanced_tag', 'start_date=2025-03-08&end_date=2025-03-09&fields=comment'))).body;
  expect(first.data).toEqual([{ id: 't-2025-03-08', comment: 'noted', start_day: '2025-03-08' }]);
  const second = (await get(at('enhanced_tag', `next_token=${first.next_token}`))).body;
  expect(second).toEqual({ data: [{ id: 't-2025-03-09', comment: 'noted', start_day: '2025-03-09' }], next_token: null });
  const evening = await get(at('enhanced_tag', 'start_date=2025-03-08T19:00:00Z&end_date=2025-03-08T19:00:00Z'));
  expect(evening.body.data).toEqual([tags[1]]);
});

const dated = (field: string, ...documents: [day: string, at: string][]) =>
  documents.map(([day, at], i) => ({ id: `${i}`, day, [field]: at }));

test.each([
  ['sleep', 'bedtime_start'],
  ['session', 'start_datetime'],
  ['workout', 'start_datetime'],
  ['daily_activity', 'timestamp'],
  ['daily_sleep', 'timestamp'],
])('a date-time is compared with the instant of each document of %s, its %s, whatever the offsets', async (name, field) => {
  const documents = dated(
    field,
    ['2025-03-08', '2025-03-07T22:59:59.999+01:00'],
    ['2025-03-08', '2025-03-07T23:00:00.000+01:00'],
    ['2025-03-08', '2025-03-08T11:30:00.000+13:00'],
    ['2025-03-09', '2025-03-08T04:00:00.000-08:00'],
    ['2025-03-09', '2025-03-08T04:00:00.001-08:00'],
  );
  const { get } = await startService({ ada: { documents: { [name]: documents } } });
  const ids = async (query: string) => (await get(at(name, query))).body.data.map(({ id }: { id: string }) => id);
  for (const [start, end] of [
    ['2025-03-07T22:00:00Z', '2025-03-08T12:00:00Z'],
    ['2025-03-07T11:00:00-11:00', '2025-03-09T01:00:00%2B13:00'],
    ['2025-03-07T22:00', '2025-03-08 12:00:00'],
  ])
    expect(await ids(`start_date=${start}&end_date=${end}`)).toEqual(['1', '2', '3']);
  expect(await ids('start_date=2025-03-07T22:00:00Z&end_date=2025-03-10')).toEqual(['1', '2', '3', '4']);
  expect(await ids('start_date=2025-03-08&end_date=2025-03-08T12:00:00Z')).toEqual(['0', '1', '2', '3']);
});

test('a document without a moment has the midnight of its day, local where it says how far that is from UTC', async () => {
  const bedtime = (day: string, day_tz: number) => ({ id: day, day, optimal_bedtime: { day_tz, start_offset: 0, end_offset: 0 } });
  const { get } = await startService({
    ada: { documents: { daily_spo2: ofDays(), sleep_time: [bedtime('2025-03-08', 3600), bedtime('2025-03-09', -3600)] } },
  });
  const read = async (name: string, query: string) => days((await get(at(name, query))).body);
  expect(await read('daily_spo2', 'start_date=2025-03-08T00:00:00Z&end_date=2025-03-09T00:00:00Z')).toEqual(['2025-03-08', '2025-03-09']);
  expect(await read('daily_spo2', 'start_date=2025-03-08T00:00:01Z&end_date=2025-03-09T23:59:59Z')).toEqual(['2025-03-09']);
  expect(await read('sleep_time', 'start_date=2025-03-07T23:00:00Z&end_date=2025-03-09T00:59:59Z')).toEqual(['2025-03-08']);
  expect(await read('sleep_time', 'start_date=2025-03-07T23:00:01Z&end_date=2025-03-09T01:00:00Z')).toEqual(['2025-03-09']);
});

test('the start is 24 hours before an end that is a date-time; a range of two moments may be reversed within a day', async () => {
  const documents = dated('bedtime_start', ['2025-03-09', '2025-03-08T22:00:00Z'], ['2025-03-09', '2025-03-09T13:00:00Z']);
  const { get } = await startService({ ada: { documents: { sleep: documents } } });
  const ids = async (query: string) => (await get(at('sleep', query))).body.data.map(({ id }: { id: string }) => id);
  expect(await ids('end_date=2025-03-09T22:00:00Z')).toEqual(['0', '1']);
  expect(await ids('end_date=2025-03-09T22:00:01Z')).toEqual(['1']);
  const reversed = await get(at('sleep', 'start_date=2025-03-09T13:00:01Z&end_date=2025-03-09T14:00:00%2B01:00'));
  expect([reversed.status, reversed.body]).toEqual([
    400,
    { detail: 'Start date 2025-03-09T13:00:01.000+00:00 is after end date 2025-03-09T14:00:00.000+01:00.' },
  ]);
});

test('pages of a range of moments are full, and lose and repeat nothing', async () => {
  const hours = ['01', '03', '05', '07', '09', '11', '13', '15', '17', '19', '21', '23'];
  const documents = dated('start_datetime', ...hours.map((hour): [string, string] => ['2025-03-09', `2025-03-09T${hour}:00:00Z`]));
  const { get } = await startService(
    { ada: { documents: { session: documents.map((one, i) => ({ ...one, id: 'lkjihgfedcba'[i]! })) } } },
    { pageSize: 2 },
  );
  const query = 'start_date=2025-03-09T04:00:00Z&end_date=2025-03-09T14:00:00Z&fields=id';
  const pages: string[][] = [];
  for (let token: string | null = ''; token !== null; ) {
    const { body } = await get(at('session', token ? `${query}&next_token=${token}` : query));
    pages.push(body.data.map(({ id }: { id: string }) => id));
    token = body.next_token;
  }
  expect(pages).toEqual([['f', 'g'], ['h', 'i'], ['j']]);
});

test.each(['0001-01-01T00:00:00%2B14:00', '9999-12-31T23:59:59-14:00'])(
  'the moment %s, at the edge of what can be written, is answered',
  async text => {
    const { get } = await startService({ ada });
    for (const query of [
      `start_date=${text}&end_date=${text}`,
      `start_date=0001-01-01&end_date=${text}`,
      `end_date=${text}`,
      `start_date=${text}`,
    ])
      expect([200, 400]).toContain((await get(at('daily_spo2', query))).status);
  },
);

test('no span is too long for a collection', async () => {
  const { get } = await startService({ ada });
  expect(days((await get(at('daily_spo2', 'start_date=0001-01-01&end_date=9999-12-31'))).body)).toEqual(DAYS);
});

test('a reversed range is 400 and names both dates', async () => {
  const { get } = await startService({ ada });
  const answer = await get(at('daily_spo2', 'start_date=2025-03-10&end_date=2025-03-09'));
  expect([answer.status, answer.body]).toEqual([400, { detail: 'Start date 2025-03-10 is after end date 2025-03-09.' }]);
  expect((await get(at('daily_spo2', 'start_date=2025-03-11'))).status).toBe(400);
});

test.each(['yesterday', '2025-02-29', '2025-13-01', '2025-3-1', '20250301', '', '2025-03-01T25:00:00Z', '1741593600', ' 2025-03-01'])(
  'the start date "%s" is 422 with the body of section 7',
  async text => {
    const { get } = await startService({ ada });
    const answer = await get(at('daily_spo2', `start_date=${encodeURIComponent(text)}`));
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        {
          loc: ['query', 'start_date'],
          msg: 'Input should be a date, YYYY-MM-DD, or an ISO 8601 date-time',
          type: 'date_parsing',
          input: text,
        },
      ],
    });
  },
);

test('every wrong parameter is named at once', async () => {
  const { get } = await startService({ ada });
  const { status, body } = await get(at('daily_spo2', 'start_date=a&end_date=b'));
  expect([status, body.detail.map((issue: { loc: string[] }) => issue.loc)]).toEqual([
    422,
    [
      ['query', 'start_date'],
      ['query', 'end_date'],
    ],
  ]);
});

test('a raw + arrives as a blank and is 422 with a hint', async () => {
  const { get } = await startService({ ada });
  const { status, body } = await get(at('daily_spo2', 'end_date=2025-03-09T00:00:00+01:00'));
  expect(status).toBe(422);
  expect(body.detail[0]).toMatchObject({ loc: ['query', 'end_date'], input: '2025-03-09T00:00:00 01:00' });
  expect(body.detail[0].msg).toContain('%2B');
});

test.each(['start_date', 'end_date', 'fields', 'next_token'])('%s given twice is 422', async name => {
  const { get } = await startService({ ada });
  const { status, body } = await get(at('daily_spo2', `${name}=2025-03-09&${name}=2025-03-09`));
  expect(status).toBe(422);
  expect(body.detail).toEqual([
    { loc: ['query', name], msg: 'Input should be given once', type: 'string_type', input: ['2025-03-09', '2025-03-09'] },
  ]);
});

test('ring_configuration has no dates and ignores them, as unknown parameters are', async () => {
  const rings = [{ id: 'ring-b' }, { id: 'ring-a', size: 9 }];
  const { get } = await startService({ ada: { documents: { ring_configuration: rings } } });
  const answer = await get(at('ring_configuration', 'start_date=nonsense&end_date=1900-01-01&colour=red&__proto__=1'));
  expect([answer.status, answer.body]).toEqual([200, { data: [{ id: 'ring-a', size: 9 }, { id: 'ring-b' }], next_token: null }]);
});

test('fields narrows a collection; id and day always come, unknown names are ignored', async () => {
  const document = { id: 'one', day: '2025-03-09', score: 77, contributors: { sleep_balance: 5 }, temperature_deviation: null };
  const { get } = await startService({ ada: { documents: { daily_readiness: [document] } } });
  const read = async (fields: string) => (await get(at('daily_readiness', `fields=${fields}`))).body.data[0];
  expect(await read('score')).toEqual({ id: 'one', day: '2025-03-09', score: 77 });
  expect(await read('%20temperature_deviation%20,contributors')).toEqual({
    id: 'one',
    day: '2025-03-09',
    contributors: { sleep_balance: 5 },
    temperature_deviation: null,
  });
  expect(await read('nothing,constructor,__proto__')).toEqual({ id: 'one', day: '2025-03-09' });
  expect(await read('')).toEqual(document);
});

test('fields says nothing to a single document', async () => {
  const document = { id: 'one', day: '2025-03-09', score: 77 };
  const { get } = await startService({ ada: { documents: { daily_readiness: [document] } } });
  expect((await get('/v2/usercollection/daily_readiness/one?fields=day')).body).toEqual(document);
});
