import { beforeEach, expect, test, vi } from 'vitest';
import { resources } from '../../schema/index.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { isWell } from '../../src/app/fixes.ts';
import { OAuthClient } from '../../src/sign-in/oauth.ts';
import { SCOPES } from '../sign-in/authorization-server.ts';
import { openSignedInHarness, type SignedInHarness } from '../sign-in/signed-in-harness.ts';
import { useClocks } from '../support/clocks.ts';
import type { Asked } from '../support/fault-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const DAYS = { from: '2025-01-01', to: '2025-01-02' };
const WITHOUT = ['personal', 'daily', 'workout', 'tag', 'session'];
const advance = useClocks(Date.parse('2025-03-01T12:00:00Z'));
const REFUSED = { status: 403, json: { detail: 'The token lacks a scope.' } };
let count = 0;
let setting: SignedInHarness;

/** Ada has signed in and allowed this; a service refuses what lies outside. */
async function signIn(scopes: readonly string[]) {
  setting.server.person = { id: 'ada-1', scopes };
  const wanted = ({ path }: Asked) =>
    [...resources, { ...heartRate, path: 'heartrate' }].find(one => path.endsWith(`/${one.path}`))?.scope ?? '';
  setting.answer.now = asked => (scopes.includes(wanted(asked)) ? { json: { data: [], next_token: null } } : REFUSED);
  return setting.login('ada');
}

const askedFor = (path: string) => setting.service.asked.filter(asked => asked.path.endsWith(`/${path}`)).length;
const coverageOf = (collection: string) =>
  setting.harness.read(
    `SELECT DISTINCT state, reason FROM sync.coverage_between('2025-01-01', '2025-01-02') WHERE collection = '${collection}'`,
  );

beforeEach(async () => {
  setting = await openSignedInHarness(folder, String(count++));
});

test('what a person has not allowed is never asked for and no error, and status and coverage name the scope', async () => {
  const { harness } = setting;
  expect(await signIn(WITHOUT)).toMatchObject({ state: 'active', warning: null });
  const statusOf = async (collection: string) => {
    const [account] = (await harness.commands.status({})).accounts;
    const found = account?.collections.find(({ name }) => name === collection);
    return [found?.state, found?.reason];
  };
  const ungranted = ['not_authorised', 'scope spo2Daily was not granted'];
  expect([await statusOf('daily_spo2'), await coverageOf('daily_spo2')]).toEqual([ungranted, [ungranted]]);
  const run = await harness.backfill(DAYS);
  expect(run).toMatchObject({ state: 'complete', failures: [] });
  expect(
    (await harness.commands.status({})).accounts[0]?.collections.filter(one => one.state === 'not_authorised' && !isWell(one)),
  ).toEqual([]);
  expect(run.not_asked).toEqual([
    { user_id: 'ada', collection: 'daily_spo2', state: 'not_authorised', reason: 'scope spo2Daily was not granted' },
    { user_id: 'ada', collection: 'heart_rate', state: 'not_authorised', reason: 'scope heartrate was not granted' },
  ]);
  expect(await harness.nightly(3)).toMatchObject({ failures: [] });
  await harness.commands.pauseAccount({ name: 'ada' });
  await harness.commands.resumeAccounts({ names: ['ada'] });
  expect(await harness.backfill({ ...DAYS, refresh: true })).toMatchObject({ state: 'complete', failures: [] });
  expect([await statusOf('daily_spo2'), await coverageOf('daily_spo2')]).toEqual([ungranted, [ungranted]]);
  expect([askedFor('daily_spo2'), askedFor('heartrate'), askedFor('daily_sleep') > 0]).toEqual([0, 0, true]);
});

test('who signs in again and allows more is read with it, who allows less is not', async () => {
  const { harness } = setting;
  await signIn(WITHOUT);
  await harness.backfill(DAYS);
  await signIn(SCOPES);
  expect(await coverageOf('daily_spo2')).toEqual([['not_asked', null]]);
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'complete', failures: [], not_asked: [] });
  expect(askedFor('daily_spo2')).toBe(1);
  expect(await coverageOf('daily_spo2')).toEqual([['empty', null]]);
  await signIn(WITHOUT);
  expect(await harness.backfill({ ...DAYS, refresh: true })).toMatchObject({ state: 'complete', failures: [] });
  expect(askedFor('daily_spo2')).toBe(1);
  // What was read before stays known.
  expect(await coverageOf('daily_spo2')).toEqual([['empty', null]]);
});

test.each([
  ['heart rate', ['heartrate', 'personal']],
  ['heart rate, without saying who they are,', ['heartrate']],
  ['oxygen', ['spo2Daily']],
  ['who they are', ['personal']],
  ['what nobody reads', ['tag']],
])('who allows %s alone is active, and well to doctor', async (_, scopes) => {
  const { harness } = setting;
  expect(await signIn(scopes)).toMatchObject({ state: 'active', warning: null });
  expect(await harness.backfill(DAYS)).toMatchObject({ failures: [] });
  expect(await harness.commands.check({})).toContainEqual({
    check: 'accounts',
    state: 'ok',
    message: '1 of 1 accounts are well',
    fix: null,
  });
});

test('where the service never said what was granted, its refusal of one collection is its word, and no failure of later nights', async () => {
  const { harness } = setting;
  const exchange = OAuthClient.prototype.exchange;
  vi.spyOn(OAuthClient.prototype, 'exchange').mockImplementation(async function (this: OAuthClient, answer) {
    return { ...(await exchange.call(this, answer)), scopes: undefined };
  });
  await signIn(WITHOUT);
  expect(harness.app.secrets.findSignIn('ada')).toMatchObject({ scopes: SCOPES, areScopesTold: false });
  const refused = ['daily_spo2', 'heart_rate'];
  const nights = [];
  for (let night = 0; night < 3; night++) {
    const { failures, not_asked } = await harness.nightly(3);
    nights.push([failures.map(({ collection }) => collection).sort(), not_asked.map(({ collection, state }) => [collection, state])]);
    advance(86_400);
  }
  const known = refused.map(name => [name, 'not_authorised']);
  expect(nights).toEqual([
    [refused, []],
    [[], known],
    [[], known],
  ]);
});
