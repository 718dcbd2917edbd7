import { createServer, request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../src/app/free-port.ts';
import { Interrupted } from '../../src/base/interrupt.ts';
import { askToSignIn, type LoginOptions } from '../../src/sign-in/login.ts';

const again = 'ringneck account login ada';

/** @param browse what the browser does with the address: it gives the answer's query */
async function login(browse: (url: URL, redirectUrl: string) => Promise<unknown>, more: Partial<LoginOptions> = {}) {
  const redirectUrl = `http://127.0.0.1:${await findFreePort()}/callback`;
  const options: LoginOptions = {
    settings: { authorizeUrl: 'https://service.example/oauth/authorize', redirectUrl, scopes: ['personal', 'daily'], clientId: 'ringneck' },
    again,
    open: async url => void browse(new URL(url), redirectUrl).catch(() => undefined),
    listens: false,
    paste: async () => '',
    timeoutMs: 5_000,
    signal: new AbortController().signal,
    ...more,
  };
  return askToSignIn(options);
}

const answerWith = (parameters: (url: URL) => Record<string, string>) => (url: URL, redirectUrl: string) =>
  fetch(`${redirectUrl}?${new URLSearchParams(parameters(url))}`);
const stateOf = (url: URL) => url.searchParams.get('state') ?? '';

test('the browser is sent with state and PKCE, and its answer is the code', async () => {
  let sent: Record<string, string> = {};
  let page: Promise<string> | undefined;
  const { code, verifier, scope } = await login(async (url, redirectUrl) => {
    sent = Object.fromEntries(url.searchParams);
    // What else asks at the address is no answer.
    expect((await fetch(new URL('/favicon.ico', redirectUrl))).status).toBe(404);
    expect((await fetch(redirectUrl)).status).toBe(404);
    expect((await fetch(`${redirectUrl}?code=x`, { method: 'POST' })).status).toBe(404);
    page = fetch(`${redirectUrl}?code=the-code&scope=personal+daily&state=${stateOf(url)}`).then(response => response.text());
  });
  expect([code, scope]).toEqual(['the-code', 'personal daily']);
  expect(verifier).toMatch(/^[\w-]{43}$/);
  expect(sent).toEqual({
    response_type: 'code',
    client_id: 'ringneck',
    redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
    scope: 'personal daily',
    state: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
  });
  expect(await page).toBe('Ringneck has the answer. Its terminal says whether the sign-in is complete; this window can be closed.\n');
});

test.each([
  [
    'a refusal',
    (url: URL) => ({ error: 'access_denied', state: stateOf(url) }),
    `the person did not allow it, and nothing was stored: ${again}`,
  ],
  [
    'a refusal of the service',
    (url: URL) => ({ error: 'access_denied', error_description: 'The client has reached its limit of people.', state: stateOf(url) }),
    `the service did not let the person sign in (it says: access_denied: The client has reached its limit of people.), and nothing was stored: ${again}`,
  ],
  [
    'an error',
    (url: URL) => ({ error: 'invalid_scope', error_description: 'no such\u001b[31m scope', state: stateOf(url) }),
    `the service did not let the person sign in (it says: invalid_scope: no such\\u001b[31m scope), and nothing was stored: ${again}`,
  ],
  ['no code', (url: URL) => ({ state: stateOf(url) }), `there is no code in the answer, and nothing was stored: ${again}`],
])('an answer with %s is one line', async (_, parameters, line) => {
  await expect(login(answerWith(parameters as (url: URL) => Record<string, string>))).rejects.toMatchObject({ message: line, exitCode: 1 });
});

test('what others ask for at the address is nothing there, whatever it is, and the answer is still taken', async () => {
  const answers: string[] = [];
  const ask = ({ hostname, port }: URL, path: string) =>
    new Promise<void>((resolve, reject) => {
      const asked = request({ hostname, port, path }, response => {
        answers.push(`${path} ${response.statusCode}`);
        response.resume().on('end', resolve);
      });
      asked.on('error', reject).end();
    });
  const { code } = await login(async (url, redirectUrl) => {
    for (const path of ['//', 'http://[', '/callback', '/callback//?code=x']) await ask(new URL(redirectUrl), path);
    await answerWith(() => ({ code: 'the-code', state: stateOf(url) }))(url, redirectUrl);
  });
  expect([code, answers]).toEqual(['the-code', ['// 404', 'http://[ 404', '/callback 404', '/callback//?code=x 404']]);
});

test('an answer that is not to this sign-in is told so and stores nothing, and the right one is still waited for', async () => {
  const told: string[] = [];
  let strays = 0;
  const stray = (redirectUrl: string, query: string) =>
    fetch(`${redirectUrl}?${query}`).then(async response => void told.push(`${response.status} ${await response.text()}`));
  const browse = async (url: URL, redirectUrl: string) => {
    for (const query of ['code=x&state=of-somebody-else', 'code=x', 'error=access_denied&state=']) await stray(redirectUrl, query);
    await answerWith(() => ({ code: 'the-code', state: stateOf(url) }))(url, redirectUrl);
  };
  const onStray = () => void strays++;
  expect(await login(browse, { onStray })).toMatchObject({ code: 'the-code' });
  const line =
    '400 This is not the answer to the sign-in that Ringneck waits for, and nothing was stored. Open the address that its terminal shows.\n';
  expect([told, strays]).toEqual([[line, line, line], 1]);
  await expect(login(url => fetch(`${url.searchParams.get('redirect_uri')}?code=x&state=y`), { timeoutMs: 200 })).rejects.toThrow(
    `nobody signed in within 0.2 s: ${again}`,
  );
});

test('a person who does not answer in time, and one who interrupts, are one line', async () => {
  await expect(login(async () => {}, { timeoutMs: 20 })).rejects.toThrow(`nobody signed in within 0.02 s: ${again}`);
  const controller = new AbortController();
  await expect(login(async () => controller.abort(new Interrupted()), { signal: controller.signal })).rejects.toThrow(Interrupted);
});

test('a port that is in use is named, with what to do', async () => {
  const other = createServer();
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  const address = other.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const settings = {
    authorizeUrl: 'https://service.example/',
    redirectUrl: `http://127.0.0.1:${port}/callback`,
    scopes: [],
    clientId: 'r',
  };
  await expect(login(async () => {}, { settings })).rejects.toThrow(
    `port ${port} of RINGNECK_REDIRECT_URL is in use: free it, register another RINGNECK_REDIRECT_URL, or paste the answer: ${again} --no-browser`,
  );
});

test('without a browser the address, the query or the code alone is pasted', async () => {
  const paste = (pasted: (state: string) => string) =>
    login(async () => {}, { open: undefined, paste: async url => pasted(stateOf(new URL(url))) });
  for (const pasted of [
    (state: string) => ` http://127.0.0.1:8976/callback?code=the-code&state=${state}#_=_\n`,
    (state: string) => `?code=the-code&state=${state}`,
    (state: string) => `state=${state}&code=the-code`,
    () => 'the-code\n',
  ])
    expect(await paste(pasted)).toMatchObject({ code: 'the-code' });
  await expect(paste(() => 'ringneck sql "SELECT 1"')).rejects.toThrow(
    `what was typed is neither the address to which the browser was sent nor the code in it, and nothing was stored: ${again}`,
  );
  await expect(paste(() => '  \n')).rejects.toThrow(`there is no code in the answer, and nothing was stored: ${again}`);
  await expect(paste(() => 'http://127.0.0.1:8976/callback?code=x&state=y')).rejects.toThrow('its state is another one');
  await expect(paste(state => `http://127.0.0.1:8976/callback?error=access_denied&state=${state}`)).rejects.toThrow('did not allow it');
});

test('where no browser can be opened, the answer comes to the address or is pasted, whichever is first', async () => {
  const asked: (string | undefined)[] = [];
  const either = (paste: LoginOptions['paste'], more: Partial<LoginOptions> = {}) =>
    login(async () => {}, {
      open: undefined,
      listens: true,
      paste: (url, options) => {
        asked.push(options.listensAt);
        return paste(url, options);
      },
      ...more,
    });
  const untilOver = (signal: AbortSignal) => new Promise<undefined>(resolve => signal.addEventListener('abort', () => resolve(undefined)));
  const browse = (url: string, at: string | undefined) => fetch(`${at}?code=by-browser&state=${stateOf(new URL(url))}`);
  const byBrowser: LoginOptions['paste'] = async (url, { listensAt, signal }) => {
    void browse(url, listensAt);
    return untilOver(signal);
  };
  expect(await either(byBrowser)).toMatchObject({ code: 'by-browser' });
  expect(await either(async () => 'by-hand\n')).toMatchObject({ code: 'by-hand' });
  // Nobody is there to paste: that ends nothing.
  const atEnd: LoginOptions['paste'] = async (url, { listensAt }) => {
    void browse(url, listensAt);
    return undefined;
  };
  expect(await either(atEnd)).toMatchObject({ code: 'by-browser' });
  expect(asked).toEqual(Array.from({ length: 3 }, () => expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)));
  for (const address of asked) await expect(fetch(address ?? '')).rejects.toThrow('fetch failed');
});

test('where no browser can be opened and the port is in use, the answer is pasted', async () => {
  const other = createServer();
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  const address = other.address();
  const redirectUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/callback`;
  const settings = { authorizeUrl: 'https://service.example/', redirectUrl, scopes: [], clientId: 'r' };
  const paste: LoginOptions['paste'] = async (_, { listensAt }) => `code-${listensAt}`;
  expect(await login(async () => {}, { open: undefined, listens: true, paste, settings })).toMatchObject({ code: 'code-undefined' });
});
