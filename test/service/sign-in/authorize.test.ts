import { expect, test } from 'vitest';
import { CALLBACK, CHALLENGE, startSignIn } from './sign-in-service.ts';

test('the page has the people and the scopes that are asked for, no script, and no referrer', async () => {
  const { ask, client } = await startSignIn();
  const { status, headers, text } = await ask();
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/]+=*'; form-action 'self' http:\/\/127\.0\.0\.1:8976; frame-ancestors 'none'; base-uri 'none'$/,
  );
  expect([headers.get('referrer-policy'), headers.get('cache-control')]).toEqual(['no-referrer', 'no-store']);
  expect(text.match(/<option.*/g)).toEqual([
    '<option value="">choose</option>',
    '<option value="ada">ada</option>',
    '<option value="ben">ben</option>',
    '<option value="cy">cy</option>',
  ]);
  expect(text.match(/<input.*/g)).toEqual([
    `<input type="hidden" name="client_id" value="${client.id}">`,
    `<input type="hidden" name="redirect_uri" value="${CALLBACK}">`,
    '<input type="hidden" name="response_type" value="code">',
    '<input type="hidden" name="state" value="a state">',
    '<input type="hidden" name="scope" value="daily session">',
    '<input type="checkbox" name="grant" value="daily" checked> Sleep, activity, readiness, stress and the other values of a day (<code>daily</code>)</label>',
    '<input type="checkbox" name="grant" value="session" checked> Guided and tracked moments (<code>session</code>)</label>',
  ]);
  expect(text).not.toContain('<script');
});

test('without a scope all are asked for', async () => {
  const { ask } = await startSignIn();
  const { text } = await ask({ scope: undefined });
  expect([...text.matchAll(/name="grant" value="(\w+)"/g)].map(([, scope]) => scope).join(' ')).toBe(
    'email personal daily heartrate workout tag session spo2Daily',
  );
});

test('what a client sends is text on the page', async () => {
  const { ask } = await startSignIn();
  const { text } = await ask({ state: `"><script>alert('x')</script>&` });
  expect(text).toContain('value="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;"');
  expect(text).not.toContain('<script');
});

test('of a client or address that is not known a page says so, and nobody is sent anywhere', async () => {
  const wrong = [
    [{ client_id: 'nobody' }, 'The client is unknown: client_id is not the one that ringneck service shows.'],
    [{ client_id: undefined }, 'client_id is missing.'],
    [{ client_id: ['a', 'b'] }, 'client_id is there more than once.'],
    [{ redirect_uri: undefined }, 'redirect_uri is missing.'],
    [
      { redirect_uri: `${CALLBACK}/` },
      `The address ${CALLBACK}/ is not registered: ringneck service knows ${CALLBACK}, https://study.example.org/back?study=7, to the letter; --redirect-url names others.`,
    ],
  ] as const;
  const { ask, decide } = await startSignIn();
  for (const [change, sentence] of wrong) {
    for (const answer of [await ask(change), await decide(change)]) {
      expect([answer.status, answer.location]).toEqual([400, null]);
      expect(answer.text).toContain(`<p>${sentence}</p>`);
      expect(answer.headers.get('content-security-policy')).toContain("form-action 'none'");
    }
  }
});

test('what else is wrong is told to the client', async () => {
  const wrong = [
    [{ response_type: 'token' }, 'unsupported_response_type', 'response_type should be code.'],
    [{ response_type: undefined }, 'invalid_request', 'response_type is missing.'],
    [
      { scope: 'daily weather' },
      'invalid_scope',
      'scope may hold email, personal, daily, heartrate, workout, tag, session, spo2Daily, separated by blanks.',
    ],
    [{ scope: ['daily', 'session'] }, 'invalid_request', 'scope is there more than once.'],
    [{ code_challenge: CHALLENGE }, 'invalid_request', 'code_challenge_method should be S256.'],
    [{ code_challenge: CHALLENGE, code_challenge_method: 'plain' }, 'invalid_request', 'code_challenge_method should be S256.'],
    [{ code_challenge_method: 'S256' }, 'invalid_request', 'code_challenge is missing.'],
    [
      { code_challenge: 'short', code_challenge_method: 'S256' },
      'invalid_request',
      'code_challenge should be a SHA-256 in base64url, 43 characters.',
    ],
  ] as const;
  const { ask, decide } = await startSignIn();
  for (const [change, error, error_description] of wrong) {
    for (const { status, location } of [await ask(change), await decide(change)]) {
      expect([status, location?.split('?')[0]]).toEqual([303, CALLBACK]);
      expect(Object.fromEntries(new URL(location ?? '').searchParams)).toEqual({ error, error_description, state: 'a state' });
    }
  }
});

test('a state that is there twice is no state', async () => {
  const { ask } = await startSignIn();
  const { location } = await ask({ state: ['a', 'b'] });
  expect(Object.fromEntries(new URL(location ?? '').searchParams)).toEqual({
    error: 'invalid_request',
    error_description: 'state is there more than once.',
  });
});

test('who allows is sent back with a code, what was granted, and the state', async () => {
  const { decide } = await startSignIn();
  const { status, headers, location } = await decide({ grant: ['session', 'heartrate'] });
  expect([status, headers.get('referrer-policy'), headers.get('cache-control')]).toEqual([303, 'no-referrer', 'no-store']);
  expect(location).toMatch(/^http:\/\/127\.0\.0\.1:8976\/callback\?code=rg_[\w-]{43}&scope=session&state=a\+state$/);
});

test('an address with a query keeps it', async () => {
  const { decide } = await startSignIn();
  const { location } = await decide({ redirect_uri: 'https://study.example.org/back?study=7', state: undefined });
  expect(location).toMatch(/^https:\/\/study\.example\.org\/back\?study=7&code=rg_[\w-]{43}&scope=daily\+session$/);
});

test('who refuses, grants nothing, or only what was not asked for, is sent back with access_denied', async () => {
  const { signIn } = await startSignIn();
  const refused = { error: 'access_denied', state: 'a state' };
  expect(await signIn({ decision: 'refuse', person: '' })).toEqual(refused);
  expect(await signIn({ grant: [] })).toEqual(refused);
  expect(await signIn({ grant: ['heartrate'] })).toEqual(refused);
});

test('who allows without choosing a person is asked to', async () => {
  const { decide } = await startSignIn();
  for (const person of ['', 'nobody']) {
    const { status, text, location } = await decide({ person });
    expect([status, location]).toEqual([400, null]);
    expect(text).toContain('<p>No person was chosen: go back and choose one.</p>');
  }
});

test('a form that another site sends is refused', async () => {
  const { decide } = await startSignIn();
  const { status, text, location } = await decide({}, { 'sec-fetch-site': 'cross-site' });
  expect([status, location]).toEqual([403, null]);
  expect(text).toContain('<p>The form was sent from another site: start the sign-in again.</p>');
  expect((await decide({}, { 'sec-fetch-site': 'same-origin' })).status).toBe(303);
});

test('one person more than the client may have is told to it; who is there may sign in again, and whose access was revoked makes room', async () => {
  const { signIn, obtain, grants } = await startSignIn({ peopleLimit: 2 });
  const { access_token } = await obtain();
  expect(await signIn({ person: 'ben' })).toHaveProperty('code');
  const refused = {
    error: 'access_denied',
    error_description: 'The client has reached its limit of people, 2: revoke the access of one of them first.',
    state: 'a state',
  };
  expect(await signIn({ person: 'cy' })).toEqual(refused);
  expect(await signIn({ person: 'ben' })).toHaveProperty('code');
  grants.revoke(access_token);
  expect(await signIn({ person: 'cy' })).toHaveProperty('code');
  expect(await signIn({ person: 'ada' })).toEqual(refused);
});

test('a code that nobody has used in time takes the place of nobody', async () => {
  const { signIn, pass } = await startSignIn({ peopleLimit: 1 });
  expect(await signIn()).toHaveProperty('code');
  expect(await signIn({ person: 'ben' })).toHaveProperty('error', 'access_denied');
  pass(60);
  expect(await signIn({ person: 'ben' })).toHaveProperty('code');
});

test('with specificationOnly nobody can sign in', async () => {
  const { ask, token } = await startSignIn({}, true);
  for (const { status, text } of [await ask(), await token({}), await ask({}, '/oauth/revoke')])
    expect([status, text]).toEqual([404, '{"detail":"Not Found"}']);
});

test('other methods are refused', async () => {
  const { url } = await startSignIn();
  const answer = await fetch(`${url}/oauth/token`);
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
});
