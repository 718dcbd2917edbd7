import { expect, test } from 'vitest';
import type { Answer, Asked } from '../support/fault-service.ts';
import { errorOf, page, RANGE, READINESS, readAll, readiness, set, TOKEN } from './setting.ts';

const ids = (documents: unknown[]) => documents.map(document => (document as { id: string }).id);

test('pages are followed to the end, the token with the parameters it came from, and never `fields`', async () => {
  const { service, client, noted } = await set({ [READINESS]: [page(['a'], 'T/1+'), page(['b', 'c'], 'T2'), page(['d'], null)] });
  expect(ids(await readAll(client.documents(readiness, RANGE)))).toEqual(['a', 'b', 'c', 'd']);
  expect(service.asked.map(({ rawQuery }) => rawQuery)).toEqual([
    '?start_date=2025-01-01&end_date=2025-01-09',
    '?start_date=2025-01-01&end_date=2025-01-09&next_token=T%2F1%2B',
    '?start_date=2025-01-01&end_date=2025-01-09&next_token=T2',
  ]);
  expect(service.asked.every(({ token, method }) => token === TOKEN && method === 'GET')).toBe(true);
  expect(client.requests).toBe(3);
  expect(noted).toEqual(Array(3).fill(`GET ${READINESS} 200`));
});

test.each([
  ['missing', {}],
  ['null', { next_token: null }],
  ['empty', { next_token: '' }],
])('a next_token that is %s ends the read', async (_, rest) => {
  const { service, client } = await set({ [READINESS]: { json: { data: [{ id: 'a' }], ...rest } } });
  expect(await readAll(client.documents(readiness, RANGE))).toHaveLength(1);
  expect(service.asked).toHaveLength(1);
});

/** Two pages; the second only for a request that `accepts`. */
function pickyService(accepts: (asked: Asked) => boolean, status: number) {
  return (asked: Asked): Answer => {
    if (!asked.query.has('next_token')) return page(['a'], 'T1');
    return accepts(asked) ? page(['b'], null) : status === 422 ? { status } : { status, json: { detail: 'Invalid parameters.' } };
  };
}

test.each([400, 422])('a service that wants the token alone (%i otherwise) gets it, and the client remembers', async status => {
  const { service, client } = await set({ [READINESS]: pickyService(({ query }) => !query.has('start_date'), status) });
  expect(ids(await readAll(client.documents(readiness, RANGE)))).toEqual(['a', 'b']);
  expect(service.asked.map(({ rawQuery }) => rawQuery)).toEqual([
    '?start_date=2025-01-01&end_date=2025-01-09',
    '?start_date=2025-01-01&end_date=2025-01-09&next_token=T1',
    '?next_token=T1',
  ]);
  expect(ids(await readAll(client.documents(readiness, RANGE)))).toEqual(['a', 'b']);
  expect(service.asked.slice(3).map(({ rawQuery }) => rawQuery)).toEqual(['?start_date=2025-01-01&end_date=2025-01-09', '?next_token=T1']);
});

test('many reads at once agree on how the token goes', async () => {
  const { service, client } = await set({ [READINESS]: pickyService(({ query }) => !query.has('start_date'), 400) });
  await Promise.all(Array.from({ length: 6 }, () => readAll(client.documents(readiness, RANGE))));
  const before = service.asked.length;
  await readAll(client.documents(readiness, RANGE));
  expect(service.asked).toHaveLength(before + 2);
});

test('a service that wants the parameters with the token works too, after one that did not', async () => {
  const { service, client } = await set({ [READINESS]: pickyService(({ query }) => !query.has('start_date'), 400) });
  await readAll(client.documents(readiness, RANGE));
  service.on(
    READINESS,
    pickyService(({ query }) => query.has('start_date'), 400),
  );
  expect(ids(await readAll(client.documents(readiness, RANGE)))).toEqual(['a', 'b']);
});

test('a token that is refused both ways is one error, with the service’s sentence', async () => {
  const { client, open } = await set({ [READINESS]: pickyService(() => false, 400) });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'invalid_request', status: 400, detail: 'Invalid parameters.' });
  expect(open.size).toBe(0);
});

test('a repeated token ends as endless, after its page was handed over', async () => {
  const { service, client } = await set({ [READINESS]: [page(['a'], 'T1'), page(['b'], 'T1')] });
  const seen: string[] = [];
  const read = async () => {
    for await (const { documents } of client.documents(readiness, RANGE)) seen.push(...ids(documents));
  };
  expect(await errorOf(read())).toMatchObject({ kind: 'endless' });
  expect(seen).toEqual(['a', 'b']);
  expect(service.asked).toHaveLength(2);
});

test('a cycle of two tokens ends as endless', async () => {
  const { service, client } = await set({ [READINESS]: (_, nth) => page([`${nth}`], nth % 2 ? 'odd' : 'even') });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'endless' });
  expect(service.asked).toHaveLength(3);
});

test('tokens that never end, and empty pages that never end, do', async () => {
  const { service, client } = await set({ [READINESS]: (_, nth) => page(['x'], `T${nth}`) }, { maxPages: 20, maxEmptyPages: 5 });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'endless' });
  expect(service.asked).toHaveLength(20);
  service.on(READINESS, (_, nth) => page([], `T${nth}`));
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'endless' });
  expect(service.asked).toHaveLength(25);
});

test('an empty page with a token goes on', async () => {
  const { client } = await set({ [READINESS]: [page(['a'], 'T1'), page([], 'T2'), page(['b'])] });
  expect(ids(await readAll(client.documents(readiness, RANGE)))).toEqual(['a', 'b']);
});

test('a page that fails after others fails the read; what came before was handed over', async () => {
  const { client } = await set({ [READINESS]: [page(['a'], 'T1'), page(['b'], 'T2'), { status: 500, text: 'oops' }] });
  const seen: string[] = [];
  const read = async () => {
    for await (const { documents } of client.documents(readiness, RANGE)) seen.push(...ids(documents));
  };
  expect(await errorOf(read())).toMatchObject({ kind: 'unavailable', status: 500 });
  expect(seen).toEqual(['a', 'b']);
});

test.each([
  ['an array', [{ id: 'a' }]],
  ['data that is no array', { data: {} }],
  ['no data', { detail: 'maintenance' }],
  ['null', null],
  ['a token that is no text', { data: [], next_token: 7 }],
])('%s is no page', async (_, json) => {
  const { service, client, noted } = await set({ [READINESS]: { json } });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'malformed' });
  expect(service.asked).toHaveLength(4);
  expect(noted).toEqual([]);
});

test('a moment lasts until the next page is asked for, or the consumer leaves', async () => {
  const { client, open } = await set({ [READINESS]: [page(['a'], 'T1'), page(['b'], 'T2'), page(['c'])] });
  for await (const { requestedAt } of client.documents(readiness, RANGE)) {
    expect([...open]).toEqual([requestedAt]);
    if (requestedAt === 2) break;
  }
  expect(open.size).toBe(0);
  const failing = async () => {
    for await (const _ of client.documents(readiness, RANGE)) throw new Error('of the consumer');
  };
  await expect(failing()).rejects.toThrow('of the consumer');
  expect(open.size).toBe(0);
});

test('a resource without dates is asked without parameters', async () => {
  const { service, client } = await set({ '/v2/usercollection/ring_configuration': [page(['a'], 'T1'), page(['b'])] });
  await readAll(client.documents({ path: 'ring_configuration' }, { token: TOKEN }));
  expect(service.asked.map(({ rawQuery }) => rawQuery)).toEqual(['', '?next_token=T1']);
});

test('a 404 is the service’s word about a collection only to the first page, and only while that has never answered', async () => {
  const { service, client } = await set({ [READINESS]: [{ status: 404 }, page(['a'], 'T1'), { status: 404 }] });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'not_found', status: 404 });
  const later = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(later).toMatchObject({ kind: 'unavailable', status: 404 });
  expect(later.message).toBe(`GET ${READINESS}: answered 404 after its first page`);
  service.on(READINESS, { status: 404 });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'unavailable', status: 404 });
  expect(error.message).toBe(`GET ${READINESS}: answered 404 where it has answered before`);
});
