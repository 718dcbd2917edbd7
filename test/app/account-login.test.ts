import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createAuthorizeRequest } from '../../src/sign-in/oauth.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../sign-in/authorization-server.ts';
import { type Answer, type Asked, type FaultService, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const DAYS = { from: '2025-01-01', to: '2025-01-02', collections: ['sleep_time'] };
const EXPIRED = { status: 401, json: { detail: 'Access token has expired.' } };

// The clock of everybody; timers are real.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2025-03-01T12:00:00Z') }));
afterEach(() => void vi.useRealTimers());

const advance = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);

interface Setting {
  server: AuthorizationServer;
  service: FaultService;
  harness: Harness;
  /** What the service answers to a token that is good. */
  answer: { now: (asked: Asked) => Answer | Promise<Answer> };
}

/** A service that takes the tokens of an authorization server that is not ours. */
async function set(name: string): Promise<Setting> {
  const server = await startAuthorizationServer({ lifeS: 120 });
  const answer: Setting['answer'] = { now: () => ({ json: { data: [], next_token: null } }) };
  const service = await startFaultService({
    '/v2/usercollection/*': async asked => {
      const person = await server.findPerson(asked.token ?? '');
      if (person === undefined) return EXPIRED;
      return asked.path.endsWith('/personal_info') ? { json: { id: person } } : answer.now(asked);
    },
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name), service.url, { settings: { signIn: server.settings } });
  return { server, service, harness, answer };
}

async function login({ server, harness }: Pick<Setting, 'server' | 'harness'>, name: string) {
  const settings = await harness.commands.beginLogin({ name });
  const { url, verifier } = await createAuthorizeRequest(settings);
  const code = new URL(await server.visit(url)).searchParams.get('code') ?? '';
  return harness.commands.finishLogin({ name, code, verifier, redirectUrl: settings.redirectUrl });
}

const accounts = (harness: Harness) => harness.read('SELECT user_id, service_user_id, state, reason FROM sync.accounts ORDER BY ALL');

test('who signs in is an account of that person, and is read with what came of it', async () => {
  const setting = await set('new');
  const { harness, service } = setting;
  expect(await login(setting, 'ada')).toMatchObject({
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
  const setting = await set('another');
  const { harness, server } = setting;
  await login(setting, 'ada');
  const token = harness.app.secrets.find('ada');
  const before = await accounts(harness);
  server.person = { id: 'ben-1' };
  await expect(login(setting, 'ada')).rejects.toThrow(
    'the person who signed in is somebody else (ben-1 at the service), not ada, and nothing was stored: sign out there, then ringneck account login ada',
  );
  expect([harness.app.secrets.find('ada'), await accounts(harness)]).toEqual([token, before]);
  await login(setting, 'ben');
  await expect(login(setting, 'ada')).rejects.toThrow('the person who signed in is ben, not ada, and nothing was stored');
  server.person = { id: 'ada-1' };
  await expect(login(setting, 'cleo')).rejects.toThrow(
    'the person who signed in is already the account ada, and nothing was stored: ringneck account login ada',
  );
  expect(harness.app.secrets.names()).toEqual(['ada', 'ben']);
});

test('a code that is worth nothing stores nothing', async () => {
  const { harness } = await set('no-code');
  const answer = { name: 'ada', code: 'made-up', verifier: 'v'.repeat(43), redirectUrl: 'http://127.0.0.1:8976/callback' };
  await expect(harness.commands.finishLogin(answer)).rejects.toThrow(
    'the service does not take the code, which works once and not for long: ringneck account login ada',
  );
  expect([harness.app.secrets.names(), await accounts(harness)]).toEqual([[], []]);
});

test('while tokens are renewed twenty times reading goes on, and nothing fails', async () => {
  const setting = await set('twenty');
  const { harness, server } = setting;
  await login(setting, 'ada');
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
  expect(harness.app.secrets.findSignIn('ada')?.previous).toBeNull();
  expect(await accounts(harness)).toEqual([['ada', 'ada-1', 'active', null]]);
});

test('an answer is stored although the token that it was asked with was renewed meanwhile', async () => {
  const setting = await set('meanwhile');
  const { harness, answer } = setting;
  await login(setting, 'ada');
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
  const setting = await set('ended');
  const { harness, server } = setting;
  await login(setting, 'ada');
  server.person = { id: 'ben-1' };
  await login(setting, 'ben');
  await server.end(harness.app.secrets.find('ada') ?? '');
  const run = await harness.backfill(DAYS);
  expect(run.failures).toMatchObject([{ user_id: 'ada', kind: 'unauthorized' }]);
  const parked = ['ada', 'ada-1', 'parked', 'sign in again: ringneck account login ada'];
  expect(await accounts(harness)).toEqual([parked, ['ben', 'ben-1', 'active', null]]);
  // The next look asks nobody for it again.
  const { length } = server.asked;
  advance(130);
  await (await harness.app.signIns()).renewDue();
  expect(server.asked.length).toBe(length + 1);
  server.person = { id: 'ada-1' };
  expect(await login(setting, 'ada')).toMatchObject({ state: 'active', reason: null });
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [] });
});

test('a token that is dead without its service’s saying that it expired is renewed before its account is parked', async () => {
  const setting = await set('silent');
  const { harness, server, answer } = setting;
  await login(setting, 'ada');
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
  const setting = await set('away');
  const { harness, server } = setting;
  await login(setting, 'ada');
  server.fault = { status: 503, body: '' };
  advance(130);
  const { failures } = await harness.backfill(DAYS);
  expect(failures).toMatchObject([{ kind: 'unavailable', message: expect.stringContaining(`${server.settings.tokenUrl} answered 503`) }]);
  expect(await accounts(harness)).toEqual([['ada', 'ada-1', 'active', null]]);
  server.fault = undefined;
  advance(3_600);
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [] });
});

test('the token of a sign-in is not kept for another address, nor as a token alone', async () => {
  const setting = await set('keep');
  await login(setting, 'ada');
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
