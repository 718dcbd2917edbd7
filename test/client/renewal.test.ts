import { expect, test } from 'vitest';
import type { TokenRenewal } from '../../src/client/client.ts';
import type { Answer, Asked } from '../support/fault-service.ts';
import { errorOf, page, RANGE, READINESS, readAll, readiness, set, TOKEN } from './setting.ts';

/** What becomes of TOKEN: each refusal makes the next one. */
function renewals(change: Partial<TokenRenewal> = {}) {
  const calls: string[] = [];
  let count = 0;
  const renewal: TokenRenewal = {
    current: async token => (count ? `${token}-${count}` : token),
    accepted: token => void calls.push(`accepted ${token}`),
    renewRefused: async token => {
      calls.push(`refused ${token}`);
      count++;
      return true;
    },
    ...change,
  };
  return { renewal, calls };
}

const unlessNew =
  (refusal: Answer) =>
  ({ token }: Asked): Answer =>
    token === TOKEN ? refusal : page(['a']);

test.each<[string, Answer]>([
  ['its sentence', { status: 401, json: { detail: 'Access token has expired.' } }],
  [
    'its header',
    { status: 401, text: '', headers: { 'www-authenticate': 'Bearer error="invalid_token", error_description="The token expired"' } },
  ],
])('a 401 that names expiry in %s is asked again with the token that has come of it', async (_, refusal) => {
  const { renewal, calls } = renewals();
  const { client, service } = await set({ [READINESS]: unlessNew(refusal) }, { renewal });
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'a' }]);
  expect(service.asked.map(({ token }) => token)).toEqual([TOKEN, `${TOKEN}-1`]);
  expect(calls).toEqual([`refused ${TOKEN}`, `accepted ${TOKEN}-1`]);
});

test('a 401 that names no expiry, and a second one that does, are the service’s word', async () => {
  const [first, second] = [renewals(), renewals()];
  const unauthorized = await set({ [READINESS]: { status: 401, json: { detail: 'Unauthorized' } } }, { renewal: first.renewal });
  expect(await errorOf(readAll(unauthorized.client.documents(readiness, RANGE)))).toMatchObject({ kind: 'unauthorized' });
  expect([unauthorized.client.requests, first.calls]).toEqual([1, []]);
  const expired = await set({ [READINESS]: { status: 401, json: { detail: 'expired' } } }, { renewal: second.renewal });
  expect(await errorOf(readAll(expired.client.documents(readiness, RANGE)))).toMatchObject({ kind: 'unauthorized', expired: true });
  expect([expired.client.requests, second.calls]).toEqual([2, [`refused ${TOKEN}`]]);
});

test('pages after a renewal are asked for with the new token', async () => {
  const { renewal } = renewals();
  const refusal = { status: 401, json: { detail: 'Access token has expired.' } };
  const { client, service } = await set(
    { [READINESS]: asked => (asked.token === TOKEN ? refusal : asked.query.has('next_token') ? page(['b']) : page(['a'], 'x')) },
    { renewal },
  );
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'a' }, { id: 'b' }]);
  expect(service.asked.map(({ token }) => token)).toEqual([TOKEN, `${TOKEN}-1`, `${TOKEN}-1`]);
});

test('where a token cannot be renewed for now nothing is known of it: it is unavailable, and why is said', async () => {
  const away = async () => {
    throw new Error('https://service.example/oauth/token answered 503');
  };
  const unasked = await set({ [READINESS]: page(['a']) }, { renewal: renewals({ current: away }).renewal });
  expect(await errorOf(readAll(unasked.client.documents(readiness, RANGE)))).toMatchObject({
    kind: 'unavailable',
    message: `GET ${READINESS}: https://service.example/oauth/token answered 503`,
  });
  expect(unasked.client.requests).toBe(0);
  const refused = await set(
    { [READINESS]: { status: 401, json: { detail: 'expired' } } },
    { renewal: renewals({ renewRefused: away }).renewal },
  );
  expect(await errorOf(readAll(refused.client.documents(readiness, RANGE)))).toMatchObject({
    kind: 'unavailable',
    message: `GET ${READINESS}: answered 401, and https://service.example/oauth/token answered 503`,
  });
});

test('a refusal that is no 401 shows that the token is taken, a fault does not', async () => {
  const { renewal, calls } = renewals();
  const { client } = await set({ [READINESS]: [{ status: 403, json: { detail: 'No.' } }, { status: 500 }] }, { renewal, retries: 0 });
  for (let times = 0; times < 2; times++) await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(calls).toEqual([`accepted ${TOKEN}`]);
});
