import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkSignIns } from '../../src/app/doctor/sign-ins.ts';
import { openSignedInHarness } from '../sign-in/signed-in-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2025-03-01T12:00:00Z') }));
afterEach(() => void vi.useRealTimers());

test('status and doctor say until when a token is good and when it was renewed', async () => {
  const { harness, login } = await openSignedInHarness(folder, 'kept');
  await login('ada');
  await harness.commands.addAccount({ name: 'ben', token: 'a-token-alone' });
  const { accounts } = await harness.commands.status({});
  expect(accounts.map(({ user_id, sign_in }) => [user_id, sign_in])).toEqual([
    [
      'ada',
      {
        token_ends_at: '2025-03-01T12:02:00.000Z',
        renewed_at: '2025-03-01T12:00:00.000Z',
        is_renewed: true,
        problem: null,
        scopes: ['personal', 'daily', 'heartrate', 'workout', 'tag', 'session', 'spo2Daily'],
      },
    ],
    ['ben', null],
  ]);
  expect(await checkSignIns(harness.app)).toEqual([
    {
      check: 'sign-ins',
      state: 'ok',
      message: '1 sign-in is kept alive; ada: token until 2025-03-01T12:02Z, renewed 2025-03-01T12:00Z',
      fix: null,
    },
  ]);
});

test('a sign-in that the service has ended is not said to be kept alive, nor that another command mends it', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'ended');
  await login('ada');
  await server.end(harness.app.secrets.find('ada') ?? '');
  vi.setSystemTime(Date.now() + 80_000);
  await (await harness.app.signIns()).renewDue();
  expect(await harness.commands.listAccounts({})).toMatchObject([{ state: 'parked', reason: 'sign in again: ringneck account login ada' }]);
  expect(await checkSignIns(harness.app)).toEqual([]);
  const { accounts } = await harness.commands.status({});
  expect(accounts[0]?.sign_in).toMatchObject({ is_renewed: false, problem: null });
  const { sentences } = await harness.commands.why({ name: 'ada' });
  expect(sentences.filter(sentence => sentence.includes('account login'))).toEqual([
    'ada is parked since 2025-03-01T12:01Z, and not read (sign in again: ringneck account login ada).',
  ]);
});

test('an end that is beyond every calendar is none that is known', async () => {
  const { harness, login } = await openSignedInHarness(folder, 'endless');
  await login('ada');
  const signIn = harness.app.secrets.findSignIn('ada');
  if (!signIn) throw new Error('ada has not signed in');
  harness.app.secrets.putSignIn('ada', { ...signIn, expiresAt: Date.now() + 1e16 });
  const { accounts } = await harness.commands.status({});
  expect(accounts[0]?.sign_in).toMatchObject({ token_ends_at: null, renewed_at: '2025-03-01T12:00:00.000Z' });
  expect(await checkSignIns(harness.app)).toMatchObject([
    { message: '1 sign-in is kept alive; ada: token without a known end, renewed 2025-03-01T12:00Z' },
  ]);
});

test('a sign-in that cannot be renewed for now is said by status, why and doctor', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'failing');
  await login('ada');
  server.fault = { status: 503, body: 'later' };
  vi.setSystemTime(Date.now() + 80_000);
  await (await harness.app.signIns()).renewDue();
  const { accounts } = await harness.commands.status({});
  const problem = expect.stringMatching(
    /^http:\/\/127\.0\.0\.1:\d+\/oauth\/token answered 503, which is no answer to a request for tokens$/,
  );
  expect(accounts[0]?.sign_in).toMatchObject({ is_renewed: true, problem });
  expect((await harness.commands.why({ name: 'ada' })).sentences[0]).toMatch(
    /^The sign-in of ada cannot be renewed for now: http:.*\/oauth\/token answered 503, which is no answer to a request for tokens\.$/,
  );
  expect(await checkSignIns(harness.app)).toEqual([
    {
      check: 'sign-ins',
      state: 'warn',
      message: expect.stringMatching(
        /^ada: token until 2025-03-01T12:02Z, renewed 2025-03-01T12:00Z, and it cannot be renewed for now: http:/,
      ),
      fix: 'it is tried again',
    },
  ]);
});

test('doctor warns of a token that ends in three days at most and cannot be renewed', async () => {
  const { harness, login } = await openSignedInHarness(folder, 'ending');
  await login('ada');
  const { secrets, settings } = harness.app;
  const signIn = secrets.findSignIn('ada');
  if (!signIn) throw new Error('ada has not signed in');
  const days = 86_400_000;
  secrets.putSignIn('ada', { ...signIn, refreshToken: null, expiresAt: Date.now() + 4 * days });
  expect(await checkSignIns(harness.app)).toEqual([]);
  secrets.putSignIn('ada', { ...signIn, refreshToken: null, expiresAt: Date.now() + 2 * days });
  expect(await checkSignIns(harness.app)).toEqual([
    {
      check: 'sign-ins',
      state: 'warn',
      message: 'ada: token until 2025-03-03T12:00Z, renewed 2025-03-01T12:00Z, and it cannot be renewed',
      fix: 'ringneck account login ada',
    },
  ]);
  secrets.putSignIn('ada', signIn);
  expect(
    await checkSignIns({
      ...harness.app,
      warehouse: harness.app.warehouse,
      secrets,
      settings: { ...settings, signIn: null },
      findSignInTrouble: () => undefined,
    }),
  ).toMatchObject([{ state: 'warn', fix: 'set RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET, with which tokens are renewed' }]);
});
