import { expect, test } from 'vitest';
import type { WireDocument } from '../../schema/resource.ts';
import { beat, spo2 } from './documents.ts';
import { type RunningService, startService } from './literal-service.ts';

const PATH = '/v2/usercollection/daily_spo2';
const RANGE = 'start_date=2025-03-01&end_date=2025-03-09';
const week = () => ['2025-03-05', '2025-03-01', '2025-03-04', '2025-03-02', '2025-03-03'].map(day => spo2(day));

const ids = (data: WireDocument[]) => data.map(document => document.id);
const tokenOf = async (get: RunningService['get'], query = RANGE, path = PATH): Promise<string> =>
  (await get(`${path}?${query}`)).body.next_token;

/** Follows tokens to the end; `resend` gives the parameters that go with the token. */
async function readPages(get: RunningService['get'], path: string, query: string, resend: string): Promise<WireDocument[][]> {
  const pages = [];
  let next = query;
  for (;;) {
    const { status, body } = await get(`${path}?${next}`);
    expect(status).toBe(200);
    pages.push(body.data);
    if (body.next_token === null) return pages;
    next = `next_token=${encodeURIComponent(body.next_token)}${resend}`;
  }
}

test.each(['', `&${RANGE}`, '&start_date=2025-03-01', '&end_date=2025-03-09'])(
  'pages are read to the end in ascending order by the token with "%s"',
  async resend => {
    const { get } = await startService({ ada: { documents: { daily_spo2: week() } } }, { pageSize: 2 });
    const pages = await readPages(get, PATH, RANGE, resend);
    expect(pages.map(ids)).toEqual([['spo2-2025-03-01', 'spo2-2025-03-02'], ['spo2-2025-03-03', 'spo2-2025-03-04'], ['spo2-2025-03-05']]);
  },
);

test('a last page that is full has no token', async () => {
  const { get } = await startService({ ada: { documents: { daily_spo2: week() } } }, { pageSize: 5 });
  expect((await get(`${PATH}?${RANGE}`)).body.next_token).toBeNull();
});

test('documents of one day are parted between pages by their id', async () => {
  const sleeps = ['c', 'a', 'b'].map(id => spo2('2025-03-05', id));
  const { get } = await startService({ ada: { documents: { sleep: sleeps } } }, { pageSize: 1 });
  const pages = await readPages(get, '/v2/usercollection/sleep', RANGE, '');
  expect(pages.map(ids)).toEqual([['a'], ['b'], ['c']]);
});

test('undated documents are paged by id', async () => {
  const rings = ['ring-b', 'ring-c', 'ring-a'].map(id => ({ id }));
  const { get } = await startService({ ada: { documents: { ring_configuration: rings } } }, { pageSize: 2 });
  const pages = await readPages(get, '/v2/usercollection/ring_configuration', '', '');
  expect(pages.map(ids)).toEqual([['ring-a', 'ring-b'], ['ring-c']]);
});

test('paging stays stable while documents are inserted and removed', async () => {
  const documents = { daily_spo2: week() };
  const { get } = await startService({ ada: { documents } }, { pageSize: 2 });
  const token = await tokenOf(get);
  documents.daily_spo2 = documents.daily_spo2.filter(document => document.day !== '2025-03-02');
  documents.daily_spo2.push(spo2('2025-03-01', 'before'), spo2('2025-03-03', 'after'));
  const { body } = await get(`${PATH}?next_token=${token}`);
  expect(ids(body.data)).toEqual(['after', 'spo2-2025-03-03']);
  expect(ids((await get(`${PATH}?next_token=${body.next_token}`)).body.data)).toEqual(['spo2-2025-03-04', 'spo2-2025-03-05']);
});

test('a token carries the range that was completed by defaults, also past midnight', async () => {
  let now = new Date('2025-03-05T23:59:59Z');
  const { get } = await startService({ ada: { documents: { daily_spo2: week() } } }, { pageSize: 1 }, { clock: () => now });
  const token = await tokenOf(get, '');
  now = new Date('2025-03-06T00:00:01Z');
  expect(ids((await get(`${PATH}?next_token=${token}`)).body.data)).toEqual(['spo2-2025-03-05']);
});

test('a token carries fields, and takes them again in any order', async () => {
  const documents = { daily_spo2: week().map(document => ({ ...document, breathing_disturbance_index: 3 })) };
  const { get } = await startService({ ada: { documents } }, { pageSize: 1 });
  const token = await tokenOf(get, `${RANGE}&fields=day,breathing_disturbance_index`);
  const narrowed = { id: 'spo2-2025-03-02', day: '2025-03-02', breathing_disturbance_index: 3 };
  expect((await get(`${PATH}?next_token=${token}`)).body.data).toEqual([narrowed]);
  expect((await get(`${PATH}?next_token=${token}&fields=breathing_disturbance_index,%20day`)).body.data).toEqual([narrowed]);
});

test.each([
  'start_date=2025-03-02',
  'end_date=2025-03-08',
  'end_date=2025-03-09T00:00:00Z',
  'fields=day',
  'start_date=2025-03-01&end_date=2025-03-10',
])('a token with the changed parameters %s is 400', async changed => {
  const { get } = await startService({ ada: { documents: { daily_spo2: week() } } }, { pageSize: 2 });
  const { status, body } = await get(`${PATH}?next_token=${await tokenOf(get)}&${changed}`);
  expect([status, body.detail]).toEqual([400, expect.stringContaining('Invalid next_token')]);
});

test('a token of another user or of another collection is 400', async () => {
  const documents = { daily_spo2: week(), daily_stress: week() };
  const heartRate = [beat('2025-03-10T10:00:00Z', 60), beat('2025-03-10T11:00:00Z', 61)];
  const { get } = await startService({ ada: { documents, heartRate }, ben: { documents } }, { pageSize: 2, heartRatePageSize: 1 });
  const token = await tokenOf(get);
  expect((await get(`${PATH}?next_token=${token}`)).status).toBe(200);
  expect((await get(`${PATH}?next_token=${token}`, 'ben-token')).status).toBe(400);
  expect((await get(`/v2/usercollection/daily_stress?next_token=${token}`)).status).toBe(400);
  expect((await get(`/v2/usercollection/heartrate?next_token=${token}`)).status).toBe(400);
  const series = await tokenOf(get, '', '/v2/usercollection/heartrate');
  expect((await get(`${PATH}?next_token=${series}`)).status).toBe(400);
});

test('both prefixes take each other’s tokens, since they serve the same documents', async () => {
  const { get } = await startService({ ada: { documents: { daily_spo2: week() } } }, { pageSize: 4 });
  const answer = await get(`/v2/sandbox/usercollection/daily_spo2?next_token=${await tokenOf(get)}`);
  expect(ids(answer.body.data)).toEqual(['spo2-2025-03-05']);
});

test('garbage, a changed token and one of another key are 400', async () => {
  const holdings = { ada: { documents: { daily_spo2: week() } } };
  const { get } = await startService(holdings, { pageSize: 2 });
  const other = await startService(holdings, { pageSize: 2 }, { tokenKey: new Uint8Array(32).fill(8) });
  const token = await tokenOf(get);
  const [payload = '', signature] = token.split('.');
  const further = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('03-02', '03-04')).toString('base64url');
  const forged = ['garbage', '.', '...', 'null', `${payload}.`, `.${signature}`, `${further}.${signature}`, `${token}AAAA`, '%00', '🦆'];
  for (const text of [...forged, await tokenOf(other.get)]) {
    const { status, body } = await get(`${PATH}?next_token=${encodeURIComponent(text)}`);
    expect([text, status, body.detail]).toEqual([text, 400, expect.stringContaining('Invalid next_token')]);
  }
});

test('an empty token is none', async () => {
  const { get } = await startService({ ada: { documents: { daily_spo2: week() } } });
  expect((await get(`${PATH}?${RANGE}&next_token=`)).body).toEqual((await get(`${PATH}?${RANGE}`)).body);
});

test('a token survives a restart of the service with the same key', async () => {
  const holdings = { ada: { documents: { daily_spo2: week() } } };
  const token = await tokenOf((await startService(holdings, { pageSize: 2 })).get);
  const restarted = await startService(holdings, { pageSize: 2 });
  expect(ids((await restarted.get(`${PATH}?next_token=${token}`)).body.data)).toEqual(['spo2-2025-03-03', 'spo2-2025-03-04']);
});
