import { expect, test } from 'vitest';
import type { Answer } from '../support/fault-service.ts';
import { errorOf, page, RANGE, READINESS, readAll, readiness, set, TOKEN } from './setting.ts';

const GOOD = page(['a'], null);
const limited = (headers: Record<string, string>): Answer => ({ status: 429, headers, json: { detail: 'Too many requests.' } });

test.each([
  ['seconds', '7', 7_000],
  ['a fraction', '1.5', 1_500],
  ['zero, which is not a busy loop', '0', 1_000],
  ['negative', '-5', 30_000],
  ['unreadable', 'soon', 30_000],
  ['unreadable with a number', 'seconds 3', 30_000],
  ['empty', '', 30_000],
  ['missing', undefined, 30_000],
])('Retry-After: %s', async (_, value, expected) => {
  const { client, slept, begun } = await set({ [READINESS]: [limited(value === undefined ? {} : { 'retry-after': value }), GOOD] });
  expect(await readAll(client.documents(readiness, RANGE))).toHaveLength(1);
  expect(slept).toEqual([expected]);
  expect(begun()).toBe(2);
});

test.each([
  ['later, by the service’s clock, which is not ours', 'Sun, 06 Nov 1994 08:49:49 GMT', 12_000],
  ['later, as RFC 850 writes it', 'Sunday, 06-Nov-94 08:49:49 GMT', 12_000],
  ['past', 'Sun, 06 Nov 1994 08:49:00 GMT', 30_000],
  ['no date', 'Sun, 99 Nov 1994 08:49:49 GMT', 30_000],
])('Retry-After as a date: %s', async (_, date, expected) => {
  const answer = limited({ 'retry-after': date, date: 'Sun, 06 Nov 1994 08:49:37 GMT' });
  const { client, slept } = await set({ [READINESS]: [answer, GOOD] });
  await readAll(client.documents(readiness, RANGE));
  expect(slept).toEqual([expected]);
});

test('Retry-After as a date, from a service that shows no clock', async () => {
  const now = Date.parse('Sun, 06 Nov 1994 08:49:37 GMT');
  const answer = limited({ 'retry-after': 'Sun, 06 Nov 1994 08:49:40 GMT', date: 'nonsense' });
  const { client, slept } = await set({ [READINESS]: [answer, GOOD] }, { now: () => now });
  await readAll(client.documents(readiness, RANGE));
  expect(slept).toEqual([3_000]);
});

test.each([
  ['61', 61_000],
  ['3600', 3_600_000],
  ['99999999999999', 86_400_000],
])('more than the longest wait (%s s) throws at once, and so does the next request', async (value, retryAfterMs) => {
  const { service, client, slept } = await set({ [READINESS]: limited({ 'retry-after': value }) });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'rate_limited', status: 429, retryAfterMs });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'rate_limited', retryAfterMs });
  expect(service.asked).toHaveLength(1);
  expect(slept).toEqual([]);
});

test('a storm of 429 does not use up the retries, and ends when the longest wait is reached', async () => {
  const storm = [...Array<Answer>(10).fill(limited({ 'retry-after': '5' })), GOOD];
  const { service, client, slept } = await set({ [READINESS]: storm });
  expect(await readAll(client.documents(readiness, RANGE))).toHaveLength(1);
  expect(slept).toEqual(Array(10).fill(5_000));

  service.on(READINESS, limited({ 'retry-after': '25' }));
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'rate_limited', retryAfterMs: 25_000 });
  expect(slept.slice(10)).toEqual([25_000, 25_000]);
});

test('a storm of 429 ends also where sleeping moves no clock', async () => {
  const { client, service } = await set({ [READINESS]: limited({ 'retry-after': '20' }) }, { sleep: async () => {} });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'rate_limited' });
  expect(service.asked).toHaveLength(4);
});

test('503 waits as long as it asks to, if that is short enough', async () => {
  const busy = (seconds: string): Answer => ({ status: 503, headers: { 'retry-after': seconds } });
  const { service, client, slept } = await set({ [READINESS]: [busy('9'), busy('nonsense'), GOOD] });
  await readAll(client.documents(readiness, RANGE));
  expect(slept).toEqual([9_000, 1_000]);
  service.on(READINESS, busy('600'));
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({
    kind: 'unavailable',
    status: 503,
    retryAfterMs: 600_000,
  });
  expect(slept).toHaveLength(2);
});

/** Sleeps that the test ends by hand. */
function heldSleeps() {
  const held: { ms: number; wake: () => void }[] = [];
  const sleep = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      held.push({ ms, wake: resolve });
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  return { held, sleep };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setImmediate(resolve));
}

test('one user’s wait does not block another, and others of the same token wait with the first', async () => {
  const { held, sleep } = heldSleeps();
  let open = false;
  const { service, client } = await set(
    { [READINESS]: ({ token }) => (token === 'anna' && !open ? limited({ 'retry-after': '40' }) : GOOD) },
    { sleep },
  );
  const first = readAll(client.documents(readiness, { token: 'anna' }));
  await until(() => held.length === 1);
  const more = Array.from({ length: 8 }, () => readAll(client.documents(readiness, { token: 'anna' })));
  await until(() => held.length === 9);
  expect(await readAll(client.documents(readiness, { token: 'berta' }))).toHaveLength(1);
  expect(service.asked.filter(({ token }) => token === 'anna')).toHaveLength(1);
  expect(held.every(({ ms }) => ms > 39_000 && ms <= 40_000)).toBe(true);
  open = true;
  for (const { wake } of held) wake();
  await Promise.all([first, ...more]);
  expect(service.mostInFlight).toBeLessThanOrEqual(4);
});

test.each(['application', 'App'])('X-RateLimit-Tier: %s makes everybody wait', async tier => {
  const { held, sleep } = heldSleeps();
  const answers = [limited({ 'retry-after': '40', 'x-ratelimit-tier': tier }), GOOD];
  const { service, client } = await set({ [READINESS]: answers }, { sleep });
  const anna = readAll(client.documents(readiness, { token: 'anna' }));
  await until(() => held.length === 1);
  const berta = readAll(client.documents(readiness, { token: 'berta' }));
  await until(() => held.length === 2);
  expect(service.asked).toHaveLength(1);
  for (const { wake } of held) wake();
  expect(await Promise.all([anna, berta])).toHaveLength(2);
});

test.each([undefined, 2])('at most so many requests of one token are under way (%s)', async requestsPerToken => {
  let release = () => {};
  const after = new Promise<void>(resolve => {
    release = resolve;
  });
  const most = requestsPerToken ?? 4;
  const { service, client, begun } = await set({ [READINESS]: { ...GOOD, after } }, { ...(requestsPerToken && { requestsPerToken }) });
  const reads = ['anna', 'berta'].flatMap(token => Array.from({ length: 10 }, () => readAll(client.documents(readiness, { token }))));
  await until(() => service.asked.length === 2 * most);
  for (let i = 0; i < 20; i++) await new Promise(resolve => setImmediate(resolve));
  expect(service.asked).toHaveLength(2 * most);
  expect(begun()).toBe(2 * most);
  release();
  await Promise.all(reads);
  expect(service.asked).toHaveLength(20);
  expect(service.mostInFlight).toBe(2 * most);
});

test('waits are told', async () => {
  const waits: number[] = [];
  let sent = 0;
  const { client } = await set(
    { [READINESS]: [limited({ 'retry-after': '3' }), { status: 500 }, GOOD] },
    { onWait: ms => waits.push(ms), onRequest: () => sent++ },
  );
  await readAll(client.documents(readiness, RANGE));
  expect(waits).toEqual([3_000, 500]);
  expect(sent).toBe(3);
});

test('a stop interrupts a wait at a limit, a backoff, a place in the row and a request under way', async () => {
  const { held, sleep } = heldSleeps();
  for (const answer of [limited({}), { status: 500 }, { fault: 'hang' }, { fault: 'drip' }] satisfies Answer[]) {
    const { service, client, open } = await set({ [READINESS]: answer }, { sleep });
    const stop = new AbortController();
    const reads = Array.from({ length: 6 }, () => errorOf(readAll(client.documents(readiness, { token: TOKEN, signal: stop.signal }))));
    held.length = 0;
    await until(() => (answer.fault ? service.asked.length === 4 : held.length === 4));
    stop.abort();
    for (const error of await Promise.all(reads)) expect(error).toMatchObject({ kind: 'stopped', route: READINESS });
    expect(open.size).toBe(0);
    // The places are free again.
    service.on(READINESS, GOOD);
    if (answer.status !== 429) expect(await readAll(client.documents(readiness, { token: TOKEN }))).toHaveLength(1);
  }
});

test('a stop between two pages, and one before the first', async () => {
  const { service, client } = await set({ [READINESS]: [page(['a'], 'T1'), page(['b'])] });
  const stop = new AbortController();
  const read = async () => {
    for await (const _ of client.documents(readiness, { ...RANGE, signal: stop.signal })) stop.abort();
  };
  expect(await errorOf(read())).toMatchObject({ kind: 'stopped' });
  expect(await errorOf(read())).toMatchObject({ kind: 'stopped' });
  expect(service.asked).toHaveLength(1);
});

test('close stops what is under way', async () => {
  const { service, client } = await set({ [READINESS]: { fault: 'hang' } });
  const read = errorOf(readAll(client.documents(readiness, RANGE)));
  await until(() => service.asked.length === 1);
  await client.close();
  expect(await read).toMatchObject({ kind: 'stopped' });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'stopped' });
});

test('one signal may stop many reads without a warning of Node', async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on('warning', listen);
  const { service, client } = await set({ [READINESS]: { fault: 'hang' } }, { requestsPerToken: 50 });
  const stop = new AbortController();
  const reads = Array.from({ length: 30 }, () => errorOf(readAll(client.documents(readiness, { token: TOKEN, signal: stop.signal }))));
  await until(() => service.asked.length === 30);
  stop.abort();
  await Promise.all(reads);
  await new Promise(resolve => setImmediate(resolve));
  process.off('warning', listen);
  expect(warnings).toEqual([]);
});
