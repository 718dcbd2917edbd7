import { expect, test } from 'vitest';
import { UsageError } from '../../src/base/errors.ts';
import { errorOf, page, readAll, set, TOKEN } from './setting.ts';

const PLAIN = '/v2/usercollection/heartrate';
const SANDBOX = '/v2/sandbox/usercollection/heartrate';
const WEEK = { token: TOKEN, from: '2025-03-01T00:00:00+01:00', to: '2025-03-08T00:00:00+01:00' };

test('date-times go with %2B, and pages are followed', async () => {
  const { service, client } = await set({ [PLAIN]: [page(['1'], 'T1'), page(['2'])] });
  expect(client.heartRatePath).toBeUndefined();
  expect(await readAll(client.heartRate(WEEK))).toHaveLength(2);
  const range = '?start_datetime=2025-03-01T00%3A00%3A00%2B01%3A00&end_datetime=2025-03-08T00%3A00%3A00%2B01%3A00';
  expect(service.asked.map(({ rawQuery }) => rawQuery)).toEqual([range, `${range}&next_token=T1`]);
  expect(client.heartRatePath).toBe(PLAIN);
});

test('a service that says twice that it has no plain path is read at the sandbox path, which is then known', async () => {
  const { service, client, slept } = await set({ [SANDBOX]: { json: { data: [{ bpm: 60 }] } } });
  expect(await readAll(client.heartRate(WEEK))).toEqual([{ bpm: 60 }]);
  expect(client.heartRatePath).toBe(SANDBOX);
  await readAll(client.heartRate(WEEK));
  expect(service.asked.map(({ path }) => path)).toEqual([PLAIN, PLAIN, SANDBOX, SANDBOX]);
  expect(slept).toEqual([5_000]);
});

test('between the two others have the place of whoever reads', async () => {
  const { service, client, slept } = await set({ [SANDBOX]: { json: { data: [{ bpm: 60 }] } } });
  const asides: { asked: number; slept: number }[] = [];
  const releaseWhile = async (wait: () => Promise<void>) => {
    await wait();
    asides.push({ asked: service.asked.length, slept: slept.length });
  };
  expect(await readAll(client.heartRate({ ...WEEK, releaseWhile }))).toEqual([{ bpm: 60 }]);
  expect(asides).toEqual([{ asked: 1, slept: 1 }]);
  // Where too many wait already it waits in its place.
  expect(await readAll(client.heartRate({ ...WEEK, token: 'berta', releaseWhile: () => undefined }))).toEqual([{ bpm: 60 }]);
  expect(slept).toEqual([5_000, 5_000]);
});

test('another person, and a later hour, ask the plain path again', async () => {
  let time = 0;
  const { service, client } = await set({ [SANDBOX]: page(['generated']) }, { now: () => time });
  await readAll(client.heartRate(WEEK));
  await readAll(client.heartRate({ ...WEEK, token: 'berta' }));
  expect(service.asked.map(({ path }) => path)).toEqual([PLAIN, PLAIN, SANDBOX, PLAIN, PLAIN, SANDBOX]);
  time = 3_600_000;
  service.on(PLAIN, page(['real']));
  expect(await readAll(client.heartRate(WEEK))).toEqual([{ id: 'real' }]);
  expect(await readAll(client.heartRate({ ...WEEK, token: 'berta' }))).toEqual([{ id: 'real' }]);
  expect(client.heartRatePath).toBe(PLAIN);
});

test('a service that ever had the plain path never falls back', async () => {
  const answered = new Set([`GET ${PLAIN}`]);
  const { service, client } = await set(
    { [SANDBOX]: page(['generated']) },
    { routes: { hasAnswered: route => answered.has(route), hasAnsweredAny: () => true, note() {} } },
  );
  expect(client.heartRatePath).toBe(PLAIN);
  expect(await errorOf(readAll(client.heartRate(WEEK)))).toMatchObject({ kind: 'unavailable', route: PLAIN });
  expect(service.asked.map(({ path }) => path)).toEqual([PLAIN]);
});

test('a 404 on a later page does not fall back', async () => {
  const { service, client } = await set({ [PLAIN]: [page(['real'], 'T1'), { status: 404 }], [SANDBOX]: page(['generated']) });
  expect(await errorOf(readAll(client.heartRate(WEEK)))).toMatchObject({ kind: 'unavailable', route: PLAIN });
  expect(service.asked.every(({ path }) => path === PLAIN)).toBe(true);
});

test('a read at the sandbox path is left when the plain path answers somebody else meanwhile', async () => {
  const { service, client } = await set({ [SANDBOX]: [page(['generated'], 'T1'), page(['generated too'])] });
  const seen: unknown[] = [];
  const read = async () => {
    for await (const { documents } of client.heartRate(WEEK)) {
      seen.push(...documents);
      service.on(PLAIN, page(['real']));
      await readAll(client.heartRate({ ...WEEK, token: 'berta' }));
    }
  };
  expect(await errorOf(read())).toMatchObject({ kind: 'unavailable', route: SANDBOX });
  expect(seen).toHaveLength(1);
  expect(await readAll(client.heartRate(WEEK))).toEqual([{ id: 'real' }]);
});

test.each([401, 403, 400, 501])('%i at the plain path does not fall back', async status => {
  const { service, client } = await set({ [PLAIN]: { status }, [SANDBOX]: page(['generated']) });
  expect(await errorOf(readAll(client.heartRate(WEEK)))).toMatchObject({ status });
  expect(service.asked.map(({ path }) => path)).toEqual([PLAIN]);
  expect(client.heartRatePath).toBeUndefined();
});

test('where both are missing, both are asked the next time too, and nothing is known', async () => {
  const { client } = await set();
  expect(await errorOf(readAll(client.heartRate(WEEK)))).toMatchObject({ kind: 'not_found', route: SANDBOX });
  expect(client.heartRatePath).toBeUndefined();
});

test('a given path is used as it is', async () => {
  const { service, client } = await set({ '/custom/hr': page(['a']), [PLAIN]: page(['b']) }, { heartRatePath: '/custom/hr' });
  expect(client.heartRatePath).toBe('/custom/hr');
  expect(await readAll(client.heartRate(WEEK))).toEqual([{ id: 'a' }]);
  service.on('/custom/hr', { status: 404 });
  expect(await errorOf(readAll(client.heartRate(WEEK)))).toMatchObject({ kind: 'unavailable', route: '/custom/hr' });
  expect(service.asked.every(({ path }) => path === '/custom/hr')).toBe(true);
});

test.each(['heartrate', '/a?b', '/a#b', '/a b', ''])('a path %j is wrong usage', async heartRatePath => {
  await expect(set({}, { heartRatePath })).rejects.toThrow(UsageError);
});
