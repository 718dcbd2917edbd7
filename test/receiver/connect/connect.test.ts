import { expect, test } from 'vitest';
import { TryLaterError } from '../../../src/base/errors.ts';
import { ANSWER, INVITATION, openConnectPages, seenIn, WITHDRAWAL } from './open-connect.ts';

const titleOf = async (response: Response) => /<h1>(.*)<\/h1>/.exec(await response.text())?.[1];

test('no page is kept, framed, indexed or told of to others, and none may run a script', async () => {
  const { at, answer, done } = await openConnectPages();
  const pages = [
    await at(INVITATION),
    await at('x'.repeat(43)),
    await at(`withdraw/${WITHDRAWAL}`),
    await at(`withdraw/${WITHDRAWAL}`, { method: 'POST' }),
    await at('callback'),
    await answer(ANSWER),
    await answer('error=access_denied&state=sssssssssssssssssssssssssssssssssssssssssss'),
    await at(INVITATION, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } }),
    await at(INVITATION, { method: 'POST', body: 'a'.repeat(5_000) }),
  ];
  expect(pages.map(({ status }) => status)).toEqual([200, 404, 200, 200, 400, 200, 200, 403, 413]);
  for (const page of pages) {
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex, nofollow',
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action ('none'|'self'( https: https:\/\/service\.example)?); frame-ancestors 'none'; base-uri 'none'$/,
      ),
    });
    const html = await page.text();
    expect(html).not.toMatch(/<script|<img|<link|javascript:| on[a-z]+=|style=/i);
  }
  expect(done).toEqual(['withdraw', 'finish abc']);
});

test('the page of an invitation says who asks, for what, and how to withdraw, in the language of the browser', async () => {
  const { at } = await openConnectPages();
  const english = await (await at(INVITATION)).text();
  for (const part of [
    'Night &amp; Day asks you',
    'zoe@example.org',
    'Heart rate around the clock',
    '<li>of-the-future</li>',
    'service.example',
    'We study sleep.',
  ])
    expect(english).toContain(part);
  const german = await at(INVITATION, { headers: { 'accept-language': 'de-AT,de;q=0.9,en;q=0.8' } });
  expect([german.headers.get('content-language'), await german.text()]).toEqual([
    'de',
    expect.stringContaining('Herzfrequenz rund um die Uhr'),
  ]);
});

test('under https the cookie of a sign-in goes back over https alone and to no script, and no host beside this one can set it', async () => {
  const { agree, answer, done } = await openConnectPages();
  const cookie = await agree();
  expect(cookie).toMatch(/^__Host-ringneck_connect=[\w-]+; Max-Age=1800; HttpOnly; SameSite=Lax; Path=\/; Secure$/);
  expect([(await answer(ANSWER, cookie.replace('__Host-', ''))).status, done]).toEqual([400, []]);
  const under = await openConnectPages({ publicUrl: 'https://example.org/ring' });
  expect(await under.agree()).toMatch(
    /^__Secure-ringneck_connect=[\w-]+; Max-Age=1800; HttpOnly; SameSite=Lax; Path=\/ring\/connect; Secure$/,
  );
});

test.each<[string, Parameters<typeof openConnectPages>[0]]>([
  ['other scopes', { scopes: ['daily', 'heartrate', 'tag'] }],
  ['another study', { study: { name: 'Noon', contact: 'zoe@example.org' } }],
  ['another contact', { study: { name: 'Night & Day', contact: 'eve@example.org' } }],
  ['another service', { authorizeUrl: 'https://other.example/oauth/authorize' }],
  ['another text', { readText: () => ({ text: 'We study naps.', hash: 'hash-of-text' }) }],
  ['no text', { readText: () => undefined }],
])('who agreed to a page and comes to one with %s reads it first', async (_, changes) => {
  const [before, after] = [await openConnectPages(), await openConnectPages(changes)];
  const body = new URLSearchParams({ seen: seenIn(await (await before.at(INVITATION)).text()) });
  expect((await before.at(INVITATION, { method: 'POST', body })).status).toBe(303);
  const again = await after.at(INVITATION, { method: 'POST', body });
  const html = await again.text();
  expect([again.status, html.includes('What this page says has changed since you opened it.')]).toEqual([200, true]);
  const agreed = await after.at(INVITATION, { method: 'POST', body: new URLSearchParams({ seen: seenIn(html) }) });
  expect(agreed.status).toBe(303);
});

test('a sign-in that takes longer than half an hour is begun again', async () => {
  const { agree, answer, clock, done } = await openConnectPages();
  const cookie = await agree();
  clock.ms += 30 * 60_000;
  expect((await answer(ANSWER, cookie)).status).toBe(400);
  clock.ms -= 60_000;
  expect((await answer(ANSWER, cookie)).status).toBe(200);
  expect(done).toEqual(['finish abc']);
});

test.each([
  ['error=access_denied', 'Nothing was shared'],
  ['error=server_error&code=abc', 'You were not let in'],
  ['error=access_denied&error_description=full', 'You were not let in'],
  ['', 'The sign-in was not completed'],
  [`code=${'c'.repeat(3_000)}`, 'The sign-in was not completed'],
])('an answer of the service with %.30s stores nothing, and leads back to the invitation', async (query, title) => {
  const { answer, done } = await openConnectPages();
  const page = await answer(`${query}&state=${'s'.repeat(43)}`);
  const html = await page.clone().text();
  expect([await titleOf(page), html.includes(`href="/connect/${INVITATION}"`), done]).toEqual([title, true, []]);
});

test('a service that takes its time is waited for by a page that looks again by itself, and the code is used once', async () => {
  let end = () => {};
  const codes: string[] = [];
  const { agree, answer } = await openConnectPages({
    answerMs: 1,
    finish: ({ code }) => {
      codes.push(code);
      return new Promise(resolve => {
        end = () =>
          resolve({ kind: 'connected', scopes: [], areScopesTold: true, withdrawUrl: 'https://ring.example.org/connect/withdraw/w' });
      });
    },
  });
  const cookie = await agree();
  const waiting = await answer(ANSWER, cookie);
  expect([waiting.status, waiting.headers.get('refresh'), await titleOf(waiting)]).toEqual([202, '3', 'One moment']);
  end();
  expect([await titleOf(await answer(ANSWER, cookie)), codes]).toEqual(['Thank you', ['abc']]);
});

test('while the folder is closed for a while the person is asked to try again', async () => {
  const { at, lines } = await openConnectPages({
    isOpen: async () => {
      throw new TryLaterError('an account is being erased');
    },
  });
  const page = await at(INVITATION);
  expect([page.status, page.headers.get('retry-after'), await titleOf(page), lines]).toEqual([503, '5', 'That did not work', []]);
});

test('an answer that comes while the folder is closed is taken when its page is loaded again', async () => {
  let isClosed = true;
  const { agree, answer } = await openConnectPages({
    finish: async () => {
      if (isClosed) throw new TryLaterError('an account is being erased');
      return { kind: 'connected', scopes: [], areScopesTold: true, withdrawUrl: 'https://ring.example.org/connect/withdraw/w' };
    },
  });
  const cookie = await agree();
  expect((await answer(ANSWER, cookie)).status).toBe(503);
  isClosed = false;
  expect(await titleOf(await answer(ANSWER, cookie))).toBe('Thank you');
});

test('what fails is logged by its kind alone', async () => {
  const { at, lines } = await openConnectPages({
    isOpen: async secret => {
      throw new TypeError(`no ${secret}`);
    },
  });
  const page = await at(INVITATION);
  expect([page.status, lines.length, lines.join('').includes(INVITATION)]).toEqual([500, 1, false]);
  expect(lines[0]).toContain('"error":"TypeError","msg":"a page of an invitation failed"');
});

test('one address is answered so many times a minute, and others go on', async () => {
  const { at } = await openConnectPages({ requestsPerMinute: 5 });
  // A proxy on this machine says for whom it asks.
  const ask = async (address: string, path: string) => (await at(path, { headers: { 'x-forwarded-for': address } })).status;
  const asked: number[] = [];
  for (const path of [INVITATION, 'x'.repeat(43), `withdraw/${WITHDRAWAL}`, 'callback', INVITATION, INVITATION, 'callback'])
    asked.push(await ask('203.0.113.7', path));
  expect(asked).toEqual([200, 404, 200, 400, 200, 429, 429]);
  expect(await ask('203.0.113.8', INVITATION)).toBe(200);
  const page = await at(INVITATION, { headers: { 'x-forwarded-for': '203.0.113.7' } });
  expect([page.headers.get('retry-after'), await titleOf(page)]).toEqual([expect.stringMatching(/^\d+$/), 'Please wait']);
});

test('there is no list, and no other way to ask', async () => {
  const { receiver, at } = await openConnectPages();
  const asked = [
    fetch(`${receiver.url}/connect`),
    at(''),
    at('withdraw'),
    at('withdraw/'),
    at(INVITATION, { method: 'PUT' }),
    at('callback', { method: 'HEAD' }),
    at(`${INVITATION}/`),
    at(`${INVITATION}x`),
  ];
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 404));
  for (const path of ['i'.repeat(5_000), '%zz']) expect(await (await at(path)).json()).toEqual({ detail: 'Bad Request' });
});

test('a link with a character more, or asked for in another way, is neither kept nor told of to others', async () => {
  const { receiver, at } = await openConnectPages();
  const answers = await Promise.all([
    at(`${INVITATION}/`),
    at(`withdraw/${WITHDRAWAL}/`),
    fetch(`${receiver.url}/Connect/${INVITATION}`),
    at(INVITATION, { method: 'PUT' }),
    at(INVITATION, { method: 'OPTIONS' }),
    at(`${INVITATION}%zz`),
  ]);
  const told = answers.map(({ status, headers }) => [status, headers.get('cache-control'), headers.get('referrer-policy')]);
  expect(told).toEqual([
    [404, 'no-store', 'no-referrer'],
    [404, 'no-store', 'no-referrer'],
    [404, 'no-store', 'no-referrer'],
    [404, 'no-store', 'no-referrer'],
    [404, 'no-store', 'no-referrer'],
    [400, 'no-store', 'no-referrer'],
  ]);
});
