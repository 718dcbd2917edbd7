import fs, { readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DataFolder } from '../../src/app/data-folder.ts';
import { RingneckError } from '../../src/base/errors.ts';
import { createLog } from '../../src/base/log.ts';
import { windowEntry } from '../../src/ledger/windows.ts';
import { createAuthorizeRequest, OAuthClient } from '../../src/sign-in/oauth.ts';
import { openSignedInHarness, type SignedInHarness } from '../sign-in/signed-in-harness.ts';
import { useClocks } from '../support/clocks.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const PERSON = '/v2/usercollection/personal_info';
const DAYS = { from: '2025-01-01', to: '2025-01-02', collections: ['sleep_time'] };

const advance = useClocks(Date.parse('2025-03-01T12:00:00Z'));

const accounts = (harness: Harness) => harness.read('SELECT user_id, service_user_id, state, reason FROM sync.accounts ORDER BY ALL');

test('who signs in is an account of that person, and is read with what came of it', async () => {
  const setting = await openSignedInHarness(folder, 'new');
  const { harness, service } = setting;
  expect(await setting.login('ada')).toMatchObject({
    user_id: 'ada',
    service_user_id: 'ada-1',
    state: 'active',
    reason: null,
    warning: null,
  });
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [] });
  expect(service.asked.at(-1)?.token).toBe(harness.app.secrets.find('ada'));
});

test('another person is refused and named, and nothing is stored', async () => {
  const setting = await openSignedInHarness(folder, 'another');
  const { harness, server } = setting;
  await setting.login('ada');
  const token = harness.app.secrets.find('ada');
  const before = await accounts(harness);
  server.person = { id: 'ben-1' };
  await expect(setting.login('ada')).rejects.toThrow(
    'the person who signed in is somebody else (ben-1 at the service), not ada, and nothing was stored: sign out there, then ringneck account login ada',
  );
  expect([harness.app.secrets.find('ada'), await accounts(harness)]).toEqual([token, before]);
  await setting.login('ben');
  await expect(setting.login('ada')).rejects.toThrow('the person who signed in is ben, not ada, and nothing was stored');
  server.person = { id: 'ada-1' };
  await expect(setting.login('cleo')).rejects.toThrow(
    'the person who signed in is already the account ada, and nothing was stored: ringneck account login ada',
  );
  expect(harness.app.secrets.names()).toEqual(['ada', 'ben']);
});

test('a code that is worth nothing stores nothing', async () => {
  const { harness } = await openSignedInHarness(folder, 'no-code');
  const answer = { name: 'ada', code: 'made-up', verifier: 'v'.repeat(43), redirectUrl: 'http://127.0.0.1:8976/callback' };
  await expect(harness.commands.finishLogin(answer)).rejects.toThrow(
    'the service does not take the code, which works once and not for long: ringneck account login ada',
  );
  expect([harness.app.secrets.names(), await accounts(harness)]).toEqual([[], []]);
});

test('while tokens are renewed twenty times reading goes on, and nothing fails', async () => {
  const setting = await openSignedInHarness(folder, 'twenty');
  const { harness, server, service } = setting;
  await setting.login('ada');
  const signIns = await harness.app.signIns();
  const seen = new Set<string | undefined>();
  for (let times = 0; times < 20; times++) {
    // At half of its life each second time; else when it is found to have ended.
    advance(times % 2 ? 75 : 130);
    if (times % 2) await signIns.renewDue();
    expect(await harness.backfill({ ...DAYS, refresh: true })).toMatchObject({ state: 'complete', failures: [] });
    seen.add(harness.app.secrets.find('ada'));
  }
  expect([seen.size, server.asked.length]).toEqual([20, 21]);
  // Whose they are is asked once each; twice when ada signed in.
  expect(service.asked.filter(({ path }) => path === PERSON)).toHaveLength(22);
  expect(harness.app.secrets.findSignIn('ada')?.previous).toBeNull();
  expect(await accounts(harness)).toEqual([['ada', 'ada-1', 'active', null]]);
});

test('an answer is stored although the token that it was asked with was renewed meanwhile', async () => {
  const setting = await openSignedInHarness(folder, 'meanwhile');
  const { harness, answer } = setting;
  await setting.login('ada');
  let open = () => {};
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  let asked = 0;
  answer.now = async ({ path }) => {
    if (!path.endsWith('/sleep_time')) return { json: { data: [], next_token: null } };
    asked++;
    await opened;
    return { json: { data: [{ id: 'night', day: '2025-01-01' }], next_token: null } };
  };
  const run = harness.backfill(DAYS);
  await until('the night is asked for', () => asked > 0);
  advance(75);
  const before = harness.app.secrets.find('ada');
  await (await harness.app.signIns()).renewDue();
  expect(harness.app.secrets.find('ada')).not.toBe(before);
  open();
  expect(await run).toMatchObject({ state: 'complete', documents: 1, requests: 1 });
  expect(asked).toBe(1);
});

test('a sign-in that the service has ended parks its account alone, says what to do, and a new one goes on', async () => {
  const setting = await openSignedInHarness(folder, 'ended');
  const { harness, server } = setting;
  await setting.login('ada');
  server.person = { id: 'ben-1' };
  await setting.login('ben');
  await server.end(harness.app.secrets.find('ada') ?? '');
  const told = vi.spyOn(harness.app, 'onFailure').mockImplementation(() => {});
  const run = await harness.backfill(DAYS);
  expect(run.failures).toMatchObject([{ user_id: 'ada', kind: 'unauthorized' }]);
  expect(told.mock.calls).toContainEqual([{ reason: 'account_parked', user: 'ada', message: 'sign in again: ringneck account login ada' }]);
  told.mockRestore();
  const parked = ['ada', 'ada-1', 'parked', 'sign in again: ringneck account login ada'];
  expect(await accounts(harness)).toEqual([parked, ['ben', 'ben-1', 'active', null]]);
  // The next look asks nobody for it again.
  const { length } = server.asked;
  advance(130);
  await (await harness.app.signIns()).renewDue();
  expect(server.asked.length).toBe(length + 1);
  server.person = { id: 'ada-1' };
  expect(await setting.login('ada')).toMatchObject({ state: 'active', reason: null });
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [] });
});

test('a sign-in that its service took for ended by mistake is renewed once its account is resumed', async () => {
  const setting = await openSignedInHarness(folder, 'mistaken');
  const { harness, server } = setting;
  await setting.login('ada');
  server.fault = { status: 400, body: '{"error":"invalid_grant"}' };
  advance(130);
  await harness.backfill(DAYS);
  expect((await accounts(harness))[0]?.slice(2)).toEqual(['parked', 'sign in again: ringneck account login ada']);
  server.fault = undefined;
  expect(await harness.commands.resumeAccounts({ parked: true })).toMatchObject([{ user_id: 'ada', state: 'active' }]);
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [] });
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
});

test('a token that is dead without its service’s saying that it expired is renewed before its account is parked', async () => {
  const setting = await openSignedInHarness(folder, 'silent');
  const { harness, server, answer } = setting;
  await setting.login('ada');
  const first = harness.app.secrets.find('ada');
  answer.now = ({ token }) =>
    token === first ? { status: 401, json: { detail: 'Unauthorized' } } : { json: { data: [], next_token: null } };
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [] });
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
  // One that is refused when it is new says that the cause is another.
  answer.now = () => ({ status: 401, json: { detail: 'Unauthorized' } });
  await harness.backfill({ ...DAYS, refresh: true });
  expect((await accounts(harness))[0]?.slice(2)).toEqual(['parked', 'sign in again: ringneck account login ada']);
});

test('while the token address is away an ended token fails its windows with the reason, and parks nobody', async () => {
  const setting = await openSignedInHarness(folder, 'away');
  const { harness, server } = setting;
  await setting.login('ada');
  server.fault = { status: 503, body: '' };
  advance(130);
  const { failures } = await harness.backfill(DAYS);
  expect(failures).toMatchObject([{ kind: 'unavailable', message: expect.stringContaining(`${server.settings.tokenUrl} answered 503`) }]);
  expect(await accounts(harness)).toEqual([['ada', 'ada-1', 'active', null]]);
  server.fault = undefined;
  advance(3_600);
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [] });
});

test('a sign-in is taken back at the service when its account is removed, which a service that is away does not hold up', async () => {
  const setting = await openSignedInHarness(folder, 'removed');
  const { harness, server } = setting;
  for (const fault of [undefined, { status: 503, body: '' }]) {
    await setting.login('ada');
    const token = harness.app.secrets.find('ada') ?? '';
    server.fault = fault;
    expect(await harness.commands.removeAccount({ name: 'ada' })).toMatchObject({ state: 'removed' });
    expect(await server.findPerson(token)).toBe(fault ? 'ada-1' : undefined);
    expect(harness.app.secrets.names()).toEqual([]);
  }
});

test('who is erased is searched for by every token of the sign-in, which is taken back too', async () => {
  const setting = await openSignedInHarness(folder, 'erased');
  const { harness, server } = setting;
  await setting.login('ada');
  const [token = '', ...others] = harness.app.secrets.listOfAny('ada');
  expect(others).toHaveLength(1);
  expect(await harness.commands.eraseAccount({ name: 'ada' })).toMatchObject({
    user_id: 'ada',
    searched_for: ['name', 'service id', 'token'],
    found: [],
  });
  expect(await server.findPerson(token)).toBeUndefined();
});

test('the token of a sign-in is not kept for another address, nor as a token alone', async () => {
  const setting = await openSignedInHarness(folder, 'keep');
  await setting.login('ada');
  await expect(setting.harness.commands.addAccount({ name: 'ada' })).rejects.toThrow(
    'ada has signed in, which holds for one address: ringneck account login ada',
  );
});

test('where no client is set it is said before anybody is sent anywhere', async () => {
  const harness = await openHarness(join(folder, 'unset'), 'http://127.0.0.1:1');
  await expect(harness.commands.beginLogin({ name: 'ada' })).rejects.toThrow(
    'nobody can sign in: set RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET, which the service gives to a registered application',
  );
});

test('a key or a file that cannot be used is told before anybody is sent anywhere', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'no-key');
  await login('ada');
  const { data } = harness.app.settings;
  const begin = () => harness.commands.beginLogin({ name: 'ben' });
  const [key, file] = [join(data, 'secret.key'), join(data, 'accounts.secret')];
  const [kept, sealed] = [readFileSync(key), readFileSync(file)];
  writeFileSync(key, 'short');
  await expect(begin()).rejects.toThrow(`${key} is damaged (fewer than 16 characters)`);
  writeFileSync(key, kept);
  writeFileSync(file, '{');
  await expect(begin()).rejects.toThrow(`${file} cannot be read`);
  writeFileSync(file, sealed);
  expect([await begin(), server.asked]).toMatchObject([{ clientId: server.settings.clientId }, ['authorization_code']]);
});

test('where the disk does not take a sign-in the file is named, with what to do, and the access is taken back', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'no-disk');
  await login('ada');
  const { renameSync } = fs;
  const given = vi.spyOn(OAuthClient.prototype, 'exchange');
  vi.spyOn(fs, 'renameSync').mockImplementation((from, to) => {
    if (String(to).endsWith('accounts.secret'))
      throw Object.assign(new Error(`EPERM: operation not permitted, rename '${from}' -> '${to}'`), { code: 'EPERM', syscall: 'rename' });
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  server.person = { id: 'ben-1' };
  const path = join(harness.app.settings.data, 'accounts.secret');
  const failed = await login('ben').catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(RingneckError);
  expect(String(failed)).toContain(`${path} cannot be written (EPERM: operation not permitted, rename `);
  expect(String(failed)).toMatch(
    /: have it and its folder writable for the user who runs ringneck, with room on the disk, and try again\.$/,
  );
  const tokens = await given.mock.results[0]?.value;
  expect([tokens.refreshToken, await server.findPerson(tokens.accessToken)]).toEqual([expect.any(String), undefined]);
});

test('nobody is moved or erased while a renewed sign-in of anybody is on no disk, for the folder is closed for that', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'unwritten');
  await login('ada');
  server.person = { id: 'ben-1' };
  await login('ben');
  const token = harness.app.secrets.find('ada') ?? '';
  const { renameSync } = fs;
  let written = 0;
  const disk = vi.spyOn(fs, 'renameSync').mockImplementation((from, to) => {
    // There is room when it is tried.
    if (String(to).endsWith('accounts.secret') && written++) throw Object.assign(new Error('EPERM'), { code: 'EPERM' });
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  const putRight = () => {
    disk.mockRestore();
    syncBuiltinESMExports();
  };
  onTestFinished(putRight);
  advance(130);
  const signIns = await harness.app.signIns();
  const unwritten = 'the renewed tokens of ada cannot be written: ';
  await expect(signIns.current(token)).rejects.toThrow(unwritten);
  await expect(harness.commands.moveAccount({ from: 'ben', to: 'bea' })).rejects.toThrow(unwritten);
  await expect(harness.commands.eraseAccount({ name: 'ben' })).rejects.toThrow(unwritten);
  putRight();
  await harness.app.ensureSignInsWritten();
  expect(await server.findPerson(await signIns.current(token))).toBe('ada-1');
});

test('a renewal that comes as the folder closes for a move, and that the disk does not take, outlives that, and nobody is moved', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'closing');
  await login('ada');
  server.person = { id: 'ben-1' };
  await login('ben');
  const { settings } = harness.app;
  await harness.close();
  const { renameSync } = fs;
  let isFull = false;
  vi.spyOn(fs, 'renameSync').mockImplementation((from, to) => {
    if (isFull && String(to).endsWith('accounts.secret')) throw Object.assign(new Error('EPERM'), { code: 'EPERM' });
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const { refresh } = OAuthClient.prototype;
  const asked = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async function (this: OAuthClient, token) {
    await answered;
    return refresh.call(this, token);
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  const write = (line: string) => {
    if (!line.includes('which is waited for')) return;
    isFull = true;
    answer();
  };
  const data = await DataFolder.open({ settings, log: createLog({ level: 'warn', pretty: false, stream: { write } }) });
  onTestFinished(() => data.close());
  advance(130);
  await data.app.signIns();
  await until('both are asked for', () => asked.mock.calls.length === 2);
  await expect(data.commands.moveAccount({ from: 'ben', to: 'bea' })).rejects.toThrow(
    'the renewed tokens of ada, ben cannot be written, and nothing was done: the log says why; put it right and try again',
  );
  isFull = false;
  await (await data.app.signIns()).ensureWritten();
  const alive = ['ada', 'ben'].map(name => server.findPerson(data.app.secrets.find(name) ?? ''));
  expect([await Promise.all(alive), asked.mock.calls.length]).toEqual([['ada-1', 'ben-1'], 2]);
  expect(await data.commands.moveAccount({ from: 'ben', to: 'bea' })).toMatchObject({ user_id: 'bea' });
});

/** Tokens of ben, who has signed in elsewhere. */
async function signInElsewhere({ server }: SignedInHarness) {
  server.person = { id: 'ben-1' };
  const { url, verifier } = await createAuthorizeRequest(server.settings);
  const code = new URL(await server.visit(url)).searchParams.get('code') ?? '';
  return new OAuthClient(server.settings).exchange({ code, verifier, redirectUrl: server.settings.redirectUrl });
}

/** The token address answers the next renewal with what it has given ben. */
async function mixUp(setting: SignedInHarness) {
  advance(75);
  const { accessToken, refreshToken } = await signInElsewhere(setting);
  const body = { access_token: accessToken, refresh_token: refreshToken, token_type: 'bearer', expires_in: 120 };
  setting.server.fault = { status: 200, body: JSON.stringify(body) };
  await (await setting.harness.app.signIns()).renewDue();
  setting.server.fault = undefined;
}

const nightsOf = ({ server, answer }: SignedInHarness) => {
  answer.now = async ({ path, token }) => {
    const data = path.endsWith('/sleep_time') ? [{ id: `night of ${await server.findPerson(token ?? '')}`, day: '2025-01-01' }] : [];
    return { json: { data, next_token: null } };
  };
};

test('a renewal that brings the tokens of another person parks the account before anything is read with them', async () => {
  const setting = await openSignedInHarness(folder, 'mixed');
  const { harness, server } = setting;
  await setting.login('ada');
  nightsOf(setting);
  await harness.backfill(DAYS);
  const told = vi.spyOn(harness.app, 'onFailure').mockImplementation(() => {});
  await mixUp(setting);
  expect(await accounts(harness)).toEqual([['ada', 'ada-1', 'parked', 'the token is that of another person']]);
  expect(told.mock.calls).toMatchObject([[{ reason: 'account_parked', user: 'ada' }]]);
  await expect(harness.backfill({ ...DAYS, refresh: true })).rejects.toThrow('ada is parked');
  // Nobody keeps the sign-in of somebody else alive.
  const { length } = server.asked;
  advance(75);
  await (await harness.app.signIns()).renewDue();
  expect(server.asked.length).toBe(length);
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([['night of ada-1']]);
  // Whoever resumes it by its name has the last word.
  await harness.commands.resumeAccounts({ names: ['ada'] });
  expect(await harness.backfill({ ...DAYS, refresh: true, acceptDeletions: true })).toMatchObject({ state: 'complete' });
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([['night of ben-1']]);
});

test('renewed tokens are not read with while nobody says whose they are, for a day at most', async () => {
  const setting = await openSignedInHarness(folder, 'unclear');
  const { harness, service, server } = setting;
  await setting.login('ada');
  nightsOf(setting);
  service.on(PERSON, { status: 500 });
  advance(75);
  await (await harness.app.signIns()).renewDue();
  const before = service.asked.length;
  const read = () => harness.backfill({ ...DAYS, refresh: true });
  expect((await read()).failures).toMatchObject([
    { kind: 'unavailable', message: expect.stringContaining('does not say whose the renewed token is') },
  ]);
  expect(service.asked.length).toBe(before);
  service.on(PERSON, async ({ token }) => ({ json: { id: await server.findPerson(token ?? '') } }));
  advance(10);
  expect(await read()).toMatchObject({ state: 'complete', failures: [] });
  // A day of it must not end all reading.
  service.on(PERSON, { status: 500 });
  advance(75);
  await (await harness.app.signIns()).renewDue();
  expect((await read()).failures).toHaveLength(1);
  advance(86_400);
  for (let times = 0; times < 8; times++) {
    await (await harness.app.signIns()).renewDue();
    expect((await read()).failures).toHaveLength(1);
    advance(900);
  }
  expect(await read()).toMatchObject({ state: 'complete', failures: [] });
});

test('another person who signs in while the service does not say so replaces nothing, and is signed out', async () => {
  const setting = await openSignedInHarness(folder, 'late-other');
  const { harness, server, service } = setting;
  await setting.login('ada');
  const [token, before] = [harness.app.secrets.find('ada'), await accounts(harness)];
  server.person = { id: 'ben-1' };
  let given: string | undefined;
  service.on(PERSON, async ({ token }, nth) => {
    given = token;
    return nth === 1 ? { status: 400, json: { detail: 'no' } } : { json: { id: await server.findPerson(token ?? '') } };
  });
  await expect(setting.login('ada')).rejects.toThrow(
    'the person who signed in is somebody else (ben-1 at the service), not ada, and nothing was stored',
  );
  expect(await server.findPerson(given ?? '')).toBeUndefined();
  // Nor does one of whom nobody knows who it is.
  service.on(PERSON, { status: 500 });
  await expect(setting.login('ada')).rejects.toThrow('and ada has a sign-in that is good: nothing was stored');
  await expect(harness.commands.addAccount({ name: 'ada', token: 'token-of-nobody' })).rejects.toThrow('nothing was stored');
  expect([harness.app.secrets.find('ada'), await accounts(harness)]).toEqual([token, before]);
});

test('who signs in again has the sign-in before taken back at the service, once the new one has worked; where that fails it is said', async () => {
  const setting = await openSignedInHarness(folder, 'again');
  const { harness, server } = setting;
  await setting.login('ada');
  const first = harness.app.secrets.findSignIn('ada');
  expect(await setting.login('ada')).toMatchObject({ state: 'active', warning: null });
  expect(await server.findPerson(first?.accessToken ?? '')).toBeUndefined();
  await expect(new OAuthClient(server.settings).refresh(first?.refreshToken ?? '')).rejects.toMatchObject({ kind: 'invalid_grant' });
  expect(await server.findPerson(harness.app.secrets.find('ada') ?? '')).toBe('ada-1');
  vi.spyOn(OAuthClient.prototype, 'revoke').mockRejectedValueOnce(new Error('away'));
  expect(await setting.login('ada')).toMatchObject({
    state: 'active',
    warning:
      'the sign-in before could not be taken back at the service: ringneck up tries it each day for 30 days, and its person can do that there',
  });
});

test('a collection that always calls its token expired has it renewed once a minute, and no other collection waits for it', async () => {
  const setting = await openSignedInHarness(folder, 'always-expired');
  const { harness, server, answer } = setting;
  await setting.login('ada');
  answer.now = ({ path }) =>
    path.endsWith('/sleep_time')
      ? { status: 401, json: { detail: 'Access token has expired.' } }
      : { json: { data: [], next_token: null } };
  await harness.backfill({ from: '2024-01-01', to: '2025-02-27', collections: ['sleep_time', 'daily_sleep', 'sleep'] });
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
  expect(await accounts(harness)).toEqual([['ada', 'ada-1', 'active', null]]);
});

test('a sign-in or renewal that is answered with the tokens of another account is not kept, and theirs live on', async () => {
  const { harness, server, login } = await openSignedInHarness(folder, 'mixed-up');
  const { secrets } = harness.app;
  const SOME = ['daily', 'session'];
  server.person = { id: 'ada-1', scopes: SOME };
  await login('ada');
  const adas = secrets.findSignIn('ada')!;
  const answer = {
    accessToken: adas.accessToken,
    refreshToken: adas.refreshToken ?? undefined,
    expiresIn: 120,
    scopes: SOME,
  };
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange').mockResolvedValueOnce(answer);
  const refresh = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async () => answer);
  onTestFinished(() => void [exchange, refresh].map(spy => spy.mockRestore()));
  await expect(login('ben')).rejects.toThrow(
    'the service answered with the tokens of ada, and nothing was stored: is there a cache before RINGNECK_TOKEN_URL? Then ringneck account login ben',
  );
  expect([secrets.names(), secrets.listEnded(), await server.findPerson(adas.accessToken)]).toEqual([['ada'], [], 'ada-1']);

  server.person = { id: 'ben-1', scopes: SOME };
  await login('ben');
  const { tokenUrl: _, ...bens } = secrets.findSignIn('ben')!;
  const signIns = await harness.app.signIns();
  expect(await signIns.renewRefused(bens.accessToken).catch(error => error.message)).toBe(
    'the service answered with the tokens of ada, which are not kept for ben: is there a cache before RINGNECK_TOKEN_URL? If it stays so: ringneck account login ben',
  );
  expect([secrets.findSignIn('ben'), signIns.findTrouble('ben')]).toMatchObject([bens, expect.stringContaining('the tokens of ada')]);
  refresh.mockRestore();
  advance(20);
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000);
  expect(await signIns.renewRefused(bens.accessToken)).toBe(true);
  vi.mocked(performance.now).mockRestore();
  expect(await server.findPerson(secrets.find('ben')!)).toBe('ben-1');
});

test('a renewal that is answered with what an account had before is not kept, and both sign-ins live on', async () => {
  const { harness, server, login } = await openSignedInHarness(folder, 'older-answers');
  const { secrets } = harness.app;
  const signIns = await harness.app.signIns();
  const token = (name: string) => secrets.findSignIn(name)?.accessToken ?? '';
  const clock = vi.spyOn(performance, 'now');
  onTestFinished(() => clock.mockRestore());
  const later = () => clock.mockReturnValue(performance.now() + 60_000);
  await login('ada');
  const { accessToken, refreshToken } = secrets.findSignIn('ada')!;
  expect(await signIns.renewRefused(accessToken)).toBe(true);
  server.person = { id: 'ben-1' };
  await login('ben');
  const answer = { accessToken, refreshToken: refreshToken ?? undefined, expiresIn: 120, scopes: undefined };
  const refresh = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async () => answer);
  later();
  expect(await signIns.renewRefused(token('ben')).catch(error => error.message)).toBe(
    'the service answered with the tokens of ada, which are not kept for ben: is there a cache before RINGNECK_TOKEN_URL? If it stays so: ringneck account login ben',
  );
  expect(await signIns.renewRefused(token('ada')).catch(error => error.message)).toBe(
    'the service answered with tokens that ada had before: is there a cache before RINGNECK_TOKEN_URL? If it stays so: ringneck account login ada',
  );
  refresh.mockRestore();
  later();
  expect([await signIns.renewRefused(token('ben')), await signIns.renewRefused(token('ada'))]).toEqual([true, true]);
  expect([await server.findPerson(token('ben')), await server.findPerson(token('ada'))]).toEqual(['ben-1', 'ada-1']);
});

test('a renewal that brings the same tokens once more parks nobody, and the next one that brings others is taken', async () => {
  const { harness, server, login } = await openSignedInHarness(folder, 'same-again');
  const { secrets } = harness.app;
  await login('ada');
  const { accessToken, refreshToken } = secrets.findSignIn('ada')!;
  const answer = { accessToken, refreshToken: refreshToken ?? undefined, expiresIn: 120, scopes: undefined };
  const refresh = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async () => answer);
  advance(75);
  await (await harness.app.signIns()).renewDue();
  advance(50);
  const range = { from: '2025-02-01', to: '2025-02-02', collections: ['daily_sleep'] };
  expect(await harness.backfill(range)).toMatchObject({ state: 'failed' });
  advance(61);
  expect(await harness.backfill(range)).toMatchObject({ state: 'failed' });
  expect(await accounts(harness)).toEqual([['ada', 'ada-1', 'active', null]]);
  refresh.mockRestore();
  advance(61);
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete' });
  expect(await server.findPerson(secrets.find('ada') ?? '')).toBe('ada-1');
});

test('a code that is answered with what another account had before takes nothing of theirs back', async () => {
  const { harness, server, login } = await openSignedInHarness(folder, 'older-code');
  const { secrets } = harness.app;
  await login('ada');
  const { accessToken, refreshToken } = secrets.findSignIn('ada')!;
  expect(await (await harness.app.signIns()).renewRefused(accessToken)).toBe(true);
  const answer = { accessToken, refreshToken: refreshToken ?? undefined, expiresIn: 120, scopes: undefined };
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange').mockResolvedValueOnce(answer);
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke');
  onTestFinished(() => void [exchange, revoke].map(spy => spy.mockRestore()));
  await expect(login('ben')).rejects.toThrow('nothing was stored');
  expect([secrets.names(), secrets.listEnded(), revoke.mock.calls]).toEqual([['ada'], [], []]);
  expect(await server.findPerson(secrets.findSignIn('ada')?.accessToken ?? '')).toBe('ada-1');
});

test('a token that a service gives again to who signs in again is renewed where it is refused', async () => {
  const { harness, server, login } = await openSignedInHarness(folder, 'given-again');
  const { secrets } = harness.app;
  await login('ada');
  const { accessToken, refreshToken } = secrets.findSignIn('ada')!;
  const answer = { accessToken, refreshToken: refreshToken ?? undefined, expiresIn: 120, scopes: undefined };
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange').mockImplementation(async () => answer);
  onTestFinished(() => exchange.mockRestore());
  await login('ada');
  expect(await (await harness.app.signIns()).renewRefused(accessToken)).toBe(true);
  expect(secrets.find('ada')).not.toBe(accessToken);
  expect(await server.findPerson(secrets.find('ada')!)).toBe('ada-1');
});

test('a sign-in that is damaged fails the windows of its own account, and everybody else is read', async () => {
  const { harness, server, service, login } = await openSignedInHarness(folder, 'damaged');
  await login('ada');
  server.person = { id: 'ben-1' };
  await login('ben');
  const refused = { userId: 'ada', collection: 'session', runId: 'before', startAt: 0, endAt: 1 };
  const committedAt = harness.app.warehouse.clock.next();
  await harness.app.warehouse.record([windowEntry(refused, { outcome: 'not_authorised', reason: 'forbidden', committedAt })]);
  await harness.close();
  const path = join(folder, 'damaged', 'accounts.secret');
  const [, sealed = ''] = /"ada",\s*"([^"]+)"/.exec(readFileSync(path, 'utf8')) ?? [];
  writeFileSync(path, readFileSync(path, 'utf8').replace(sealed, `${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`));
  const again = await openHarness(join(folder, 'damaged'), service.url, { settings: { signIn: server.settings } });
  for (const run of [await again.backfill({ last: 2, collections: ['sleep_time'] }), await again.nightly(1)]) {
    expect([run.state, run.windows.done > 0, new Set(run.failures.map(({ user_id }) => user_id))]).toEqual([
      'failed',
      true,
      new Set(['ada']),
    ]);
    expect(JSON.stringify(run.failures)).toContain('the sign-in of ada cannot be read. Give it again: ringneck account login ada');
  }
});

/** Ada has been renewed and read, and ben signed in; the data folder is opened again, and `answer` is what ada had at first. */
async function openAfterRenewal(name: string, scopes?: readonly string[]) {
  const { harness, server, service, login, loginAt } = await openSignedInHarness(folder, name);
  const person = (id: string) => ({ id, ...(scopes ? { scopes } : {}) });
  server.person = person('ada-1');
  await login('ada');
  const { accessToken, refreshToken } = harness.app.secrets.findSignIn('ada')!;
  expect(await (await harness.app.signIns()).renewRefused(accessToken)).toBe(true);
  await harness.backfill(DAYS);
  expect(harness.app.secrets.findSignIn('ada')?.previous).toBeNull();
  server.person = person('ben-1');
  await login('ben');
  await harness.close();
  const again = await openHarness(join(folder, name), service.url, { settings: { signIn: server.settings } });
  const { secrets } = again.app;
  const answer = { accessToken, refreshToken: refreshToken ?? undefined, expiresIn: 120, scopes: undefined };
  const refresh = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async () => answer);
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange').mockImplementation(async () => answer);
  onTestFinished(() => void [refresh, exchange].map(spy => spy.mockRestore()));
  const renew = async (account: string) => (await again.app.signIns()).renewRefused(secrets.find(account)!).catch(error => error.message);
  return { again, server, secrets, refresh, renew, login: (account: string) => loginAt(again, account) };
}

test('what was replaced before a restart is known as such after it: nobody is read with it, and no sign-in is lost', async () => {
  const { server, secrets, refresh, renew } = await openAfterRenewal('older-after-restart', ['daily', 'session']);
  expect(await renew('ben')).toContain('the service answered with the tokens of ada, which are not kept for ben');
  expect(await renew('ada')).toContain('the service answered with tokens that ada had before');
  refresh.mockRestore();
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000);
  expect([await renew('ben'), await renew('ada')]).toEqual([true, true]);
  vi.mocked(performance.now).mockRestore();
  expect([await server.findPerson(secrets.find('ben')!), await server.findPerson(secrets.find('ada')!)]).toEqual(['ben-1', 'ada-1']);
});

test('a code that is answered with what was replaced before a restart ends nobody’s sign-in', async () => {
  const { server, secrets, login } = await openAfterRenewal('older-code-after-restart');
  await expect(login('cleo')).rejects.toThrow('the person who signed in is already the account ada, and nothing was stored');
  await expect(login('ada')).rejects.toThrow('the service answered with tokens that ada had before, and nothing was stored');
  expect([await server.findPerson(secrets.find('ada')!), secrets.listEnded(), secrets.names()]).toEqual(['ada-1', [], ['ada', 'ben']]);
});

/** Has the next call of a method of the client wait; `open` lets it go on. */
function holdNext(method: 'exchange' | 'refresh' | 'revoke'): { isAsked: () => boolean; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  const original: (...given: never[]) => Promise<never> = OAuthClient.prototype[method] as never;
  const spy = vi.spyOn(OAuthClient.prototype, method).mockImplementationOnce(async function (this: OAuthClient, ...given: never[]) {
    await opened;
    return original.apply(this, given);
  } as never);
  onTestFinished(() => spy.mockRestore());
  return { isAsked: () => spy.mock.calls.length > 0, open };
}

test('who ends while a code is exchanged waits for that, and stores what comes of it', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'ends-exchanging');
  const held = holdNext('exchange');
  const signingIn = login('ada');
  await until('the code is exchanged', held.isAsked);
  const closing = harness.close();
  await expect(login('ben')).rejects.toThrow('ringneck is ending; try again in a moment');
  held.open();
  expect((await signingIn).user_id).toBe('ada');
  await closing;
  const token = harness.app.secrets.findSignIn('ada')?.accessToken ?? '';
  expect([await server.findPerson(token), server.asked]).toEqual(['ada-1', ['authorization_code']]);
});

test('who ends while a sign-in is renewed to be taken back waits for that, and leaves no pair that nobody knows of', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'ends-renewing');
  await login('ada');
  const held = holdNext('refresh');
  const removing = harness.commands.removeAccount({ name: 'ada' });
  await until('the sign-in is renewed', held.isAsked);
  const closing = harness.close();
  held.open();
  await Promise.all([removing, closing]);
  expect([harness.app.secrets.listEnded(), server.asked]).toEqual([[], ['authorization_code', 'refresh_token']]);
});

test('a sign-in that is not kept is noted before it is taken back, and forgotten after', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'noted-first');
  await login('ada');
  server.person = { id: 'ben-1' };
  const held = holdNext('revoke');
  const refused = expect(login('ada')).rejects.toThrow('nothing was stored');
  await until('it is taken back', held.isAsked);
  const [noted] = harness.app.secrets.listEnded();
  expect([noted?.name, await server.findPerson(noted?.signIn?.accessToken ?? '')]).toEqual(['ada', 'ben-1']);
  held.open();
  await refused;
  expect([harness.app.secrets.listEnded(), await server.findPerson(noted?.signIn?.accessToken ?? '')]).toEqual([[], undefined]);
});
