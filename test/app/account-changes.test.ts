import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findAccount, setAccountState } from '../../src/ledger/accounts.ts';
import { type Asked, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const refusal = { status: 401, json: { detail: 'The token has expired.' } };
const nothing = { json: { data: [], next_token: null } };
const nightOf = ({ token }: Asked) => ({ json: { data: [{ id: `night-of-${token}`, day: '2025-01-01' }], next_token: null } });
const account = (harness: Harness) =>
  harness.read("SELECT state, reason, service_user_id FROM sync.accounts WHERE user_id = 'ada'").then(([row]) => row);

/** Holds what waits for it until it is opened. */
function barrier() {
  let open = () => {};
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  return { open, opened, held: 0 };
}

async function set(name: string, routes: Parameters<typeof startFaultService>[0]) {
  const service = await startFaultService({
    '/v2/usercollection/*': nothing,
    '/v2/usercollection/sleep_time': nightOf,
    '/v2/usercollection/personal_info': ({ token }: Asked) => ({ json: { id: `${token}-1` } }),
    ...routes,
  });
  onTestFinished(() => service.close());
  return openHarness(join(folder, name), service.url);
}

const DAYS = { from: '2025-01-01', to: '2025-01-02', collections: ['sleep_time'] };

test('an account is active with the token of its own person only, also where that cannot be kept', async () => {
  const harness = await set('not-kept', {});
  const { secrets } = harness.app;
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  expect(await harness.commands.addAccount({ name: 'ada', token: 'ben' })).toMatchObject({ state: 'parked' });
  const put = vi.spyOn(secrets, 'put').mockImplementation(() => {
    throw new Error('no space left on device');
  });
  await expect(harness.commands.addAccount({ name: 'ada', token: 'ada' })).rejects.toThrow('no space left on device');
  put.mockRestore();
  expect((await account(harness))?.[0]).toBe('parked');
  expect(await harness.commands.addAccount({ name: 'ada', token: 'ada' })).toMatchObject({ state: 'active' });
  expect(secrets.find('ada')).toBe('ada');
});

test('of two changes in one moment none is undone by the other', async () => {
  const harness = await set('two-changes', {});
  const { commands } = harness;
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await Promise.all([commands.pauseAccount({ name: 'ada' }), commands.mapAccount({ name: 'ada', serviceUser: 'x' })]);
  expect(await account(harness)).toEqual(['paused', 'paused by command', 'x']);
  await commands.resumeAccounts({ names: ['ada'] });
  const [removed, mapped] = await Promise.allSettled([
    commands.removeAccount({ name: 'ada' }),
    commands.mapAccount({ name: 'ada', serviceUser: 'y' }),
  ]);
  expect([removed.status, mapped.status]).toEqual(['fulfilled', 'rejected']);
  expect(await account(harness)).toEqual(['removed', null, 'x']);
});

test('a change that waits to be committed is seen by a night that asks for the same account', async () => {
  const waits: Record<string, ReturnType<typeof barrier>> = {};
  const harness = await set('waits', {
    '/v2/usercollection/personal_info': async ({ token }: Asked) => {
      const wait = waits[token!];
      if (wait) {
        wait.held++;
        await wait.opened;
      }
      return { json: { id: `${token}-1` } };
    },
  });
  const { warehouse, secrets } = harness.app;
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  await setAccountState(warehouse, (await findAccount(warehouse, 'ada'))!, 'parked', 'forbidden: lapsed');
  waits.ada = barrier();
  waits.ben = barrier();
  const night = harness.nightly(3).catch(() => undefined);
  await until('the night asks', () => waits.ada!.held > 0);
  const adding = harness.commands.addAccount({ name: 'ada', token: 'ben' });
  await until('the command asks', () => waits.ben!.held > 0);
  // What is recorded waits as it does behind a large commit.
  const record = warehouse.record.bind(warehouse);
  const commit = barrier();
  vi.spyOn(warehouse, 'record').mockImplementation(async entries => {
    commit.held++;
    await commit.opened;
    return record(entries);
  });
  waits.ben.open();
  await until('the parking waits', () => commit.held > 0);
  waits.ada.open();
  // The night has its answer now.
  await new Promise(resolve => setTimeout(resolve, 50));
  commit.open();
  expect(await adding).toMatchObject({ state: 'parked' });
  await night;
  expect((await account(harness))?.slice(0, 2)).toEqual(['parked', expect.stringMatching(/^the token is that of another person/)]);
  expect(secrets.find('ada')).toBe('ben');
});

test('the refusal of a token that is replaced meanwhile neither parks the account nor costs the window', async () => {
  const wait = barrier();
  let isDead = false;
  const answer = ({ token }: Asked) => (token === 'old' && isDead ? refusal : nothing);
  const harness = await set('replaced', {
    '/v2/usercollection/*': answer,
    '/v2/usercollection/sleep_time': (asked: Asked) => (asked.token === 'old' && isDead ? refusal : nightOf(asked)),
    '/v2/usercollection/daily_readiness': async (asked: Asked) => {
      if (asked.token === 'old' && isDead) {
        wait.held++;
        await wait.opened;
      }
      return answer(asked);
    },
    '/v2/usercollection/personal_info': { json: { id: 'ada-1' } },
  });
  await harness.add([{ name: 'ada', token: 'old' }]);
  isDead = true;
  const run = harness.backfill(DAYS);
  await until('the probe waits', () => wait.held > 0);
  expect(await harness.commands.addAccount({ name: 'ada', token: 'new' })).toMatchObject({ state: 'active' });
  wait.open();
  expect(await run).toMatchObject({ state: 'complete', failures: [] });
  expect(await account(harness)).toEqual(['active', null, 'ada-1']);
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([['night-of-new']]);
});

test('a new token is kept although a night parks the account for the earlier one meanwhile', async () => {
  const wait = barrier();
  let isDead = false;
  const harness = await set('parked-meanwhile', {
    '/v2/usercollection/*': ({ token }: Asked) => (token === 'old' && isDead ? refusal : nothing),
    '/v2/usercollection/sleep_time': ({ token }: Asked) => (token === 'old' && isDead ? refusal : nothing),
    '/v2/usercollection/personal_info': async ({ token }: Asked) => {
      if (token === 'new') {
        wait.held++;
        await wait.opened;
      }
      return token === 'old' && isDead ? refusal : { json: { id: 'ada-1' } };
    },
  });
  await harness.add([{ name: 'ada', token: 'old' }]);
  isDead = true;
  const adding = harness.commands.addAccount({ name: 'ada', token: 'new' });
  await until('the command asks', () => wait.held > 0);
  await harness.nightly(3).catch(() => undefined);
  expect((await account(harness))?.[0]).toBe('parked');
  wait.open();
  expect(await adding).toMatchObject({ state: 'active', warning: null });
  expect(harness.app.secrets.find('ada')).toBe('new');
});

test('a new token that was not kept, because somebody paused the account meanwhile, is said to be given again', async () => {
  const wait = barrier();
  const harness = await set('not-kept-paused', {
    '/v2/usercollection/personal_info': async ({ token }: Asked) => {
      if (token === 'new') {
        wait.held++;
        await wait.opened;
      }
      return { json: { id: 'ada-1' } };
    },
  });
  await harness.add([{ name: 'ada', token: 'old' }]);
  const adding = harness.commands.addAccount({ name: 'ada', token: 'new' });
  await until('the command asks', () => wait.held > 0);
  await harness.commands.pauseAccount({ name: 'ada' });
  wait.open();
  await expect(adding).rejects.toThrow(
    'ada was changed meanwhile and is paused: paused by command: the new token is not kept. Give it again.',
  );
  expect(await account(harness)).toEqual(['paused', 'paused by command', 'ada-1']);
  expect(harness.app.secrets.find('ada')).toBe('old');
});

const WHOSE = 'the service never said whose the data of this account are';

test('a new token of rows whose person nobody knows is warned of, also after a remove and after a reading that failed', async () => {
  const harness = await set('unknown-person', {
    '/v2/usercollection/personal_info': { status: 403, json: { detail: 'The scope personal is missing.' } },
    '/v2/usercollection/sleep_time': (asked: Asked) =>
      asked.query.get('next_token')
        ? { status: 422 }
        : { json: { data: [{ id: `night-of-${asked.token}`, day: '2025-01-01' }], next_token: 'p2' } },
  });
  const warningOf = async (token: string) => (await harness.commands.addAccount({ name: 'ada', token })).warning;
  await harness.add([{ name: 'ada', token: 'ada' }]);
  expect(await harness.backfill(DAYS)).toMatchObject({ state: 'failed' });
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([['night-of-ada']]);
  expect(await warningOf('ben')).toMatch(WHOSE);
  await harness.commands.removeAccount({ name: 'ada' });
  expect(await warningOf('ben')).toMatch(WHOSE);
});

test('a known person is not renamed by the way: --service-user names the same, or the command is refused', async () => {
  const harness = await set('renamed', {});
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await expect(harness.commands.addAccount({ name: 'ada', token: 'ben', serviceUser: 'ben-1' })).rejects.toThrow(
    'ada is ada-1 at the service, and its data are of that person: add ben-1 by another name, or say that both are one with ringneck account map ada ben-1',
  );
  expect(await account(harness)).toEqual(['active', null, 'ada-1']);
  expect(await harness.commands.addAccount({ name: 'ada', token: 'ada', serviceUser: 'ada-1' })).toMatchObject({ state: 'active' });
});

const unknownPerson = { status: 403, json: { detail: 'The scope personal is missing.' } };

/** The answer of a route that is held for one token. */
const heldFor = (token: string, wait: ReturnType<typeof barrier>, answer: (asked: Asked) => object) => async (asked: Asked) => {
  if (asked.token === token) {
    wait.held++;
    await wait.opened;
  }
  return answer(asked);
};

test('what a token brings after the account has another one is not stored, and is asked for again', async () => {
  const wait = barrier();
  const harness = await set('in-flight', {
    '/v2/usercollection/personal_info': unknownPerson,
    '/v2/usercollection/sleep_time': heldFor('ada', wait, nightOf),
  });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  const run = harness.backfill(DAYS);
  await until('the run asks', () => wait.held > 0);
  await harness.commands.removeAccount({ name: 'ada' });
  expect(await harness.commands.addAccount({ name: 'ada', token: 'ben' })).toMatchObject({ state: 'active' });
  wait.open();
  expect(await run).toMatchObject({ state: 'complete' });
  expect(await harness.read('SELECT user_id, id FROM sleep_time')).toEqual([['ada', 'night-of-ben']]);
});

test('an id that is given with a new token of stored rows is proven before the token is used', async () => {
  const wait = barrier();
  let isTold = false;
  const harness = await set('given-id', {
    '/v2/usercollection/personal_info': async (asked: Asked) => {
      if (!isTold) return unknownPerson;
      wait.held++;
      await wait.opened;
      return { json: { id: `${asked.token}-1` } };
    },
  });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  isTold = true;
  const adding = harness.commands.addAccount({ name: 'ada', token: 'ben', serviceUser: 'ada-1' });
  await until('the command asks', () => wait.held > 0);
  expect(harness.app.secrets.find('ada')).toBe('ada');
  await harness.backfill({ ...DAYS, refresh: true });
  wait.open();
  expect(await adding).toMatchObject({ state: 'parked', warning: expect.stringMatching(/^the token is that of another person/) });
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([['night-of-ada']]);
});

test('a token that could not be tried is warned of as one of an unknown person too', async () => {
  let isIll = false;
  const harness = await set('both-warnings', {
    '/v2/usercollection/personal_info': unknownPerson,
    '/v2/usercollection/daily_readiness': () => (isIll ? { status: 500 } : nothing),
  });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  isIll = true;
  const { warning } = await harness.commands.addAccount({ name: 'ada', token: 'ben' });
  expect(warning).toMatch(/^the token could not be tried: .*; the service never said whose the data of this account are/);
});

test('a blind token whose account cannot be recorded is warned of when it is given again', async () => {
  const harness = await set('blind-full-disk', { '/v2/usercollection/personal_info': unknownPerson });
  const { warehouse } = harness.app;
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  const record = warehouse.record.bind(warehouse);
  const spy = vi.spyOn(warehouse, 'record').mockImplementation(async entries => {
    if (entries.some(({ row }) => row?.state === 'active')) throw new Error('no space left on device');
    await record(entries);
  });
  await expect(harness.commands.addAccount({ name: 'ada', token: 'ben' })).rejects.toThrow('no space left on device');
  spy.mockRestore();
  expect((await account(harness))?.[0]).toBe('parked');
  expect((await harness.commands.addAccount({ name: 'ada', token: 'ben' })).warning).toMatch(WHOSE);
});

test('the token that is kept is the one that an earlier command has just stored', async () => {
  const wait = barrier();
  const harness = await set('keep-token', {
    '/v2/usercollection/personal_info': heldFor('new', wait, () => ({ json: { id: 'ada-1' } })),
    '/v2/usercollection/*': ({ token }: Asked) => (token === 'old' && wait.held ? refusal : nothing),
  });
  await harness.add([{ name: 'ada', token: 'old' }]);
  const adding = harness.commands.addAccount({ name: 'ada', token: 'new' });
  await until('the command asks', () => wait.held > 0);
  const { warehouse } = harness.app;
  const record = warehouse.record.bind(warehouse);
  const commit = barrier();
  vi.spyOn(warehouse, 'record').mockImplementation(async entries => {
    commit.held++;
    await commit.opened;
    return record(entries);
  });
  wait.open();
  await until('the new token is being kept', () => commit.held > 0);
  const keeping = harness.commands.addAccount({ name: 'ada' });
  commit.open();
  expect(await adding).toMatchObject({ state: 'active' });
  expect(await keeping).toMatchObject({ state: 'active' });
  expect(harness.app.secrets.find('ada')).toBe('new');
});

test('a refusal that the service gave before the account was resumed does not park it again', async () => {
  const wait = barrier();
  let hasLapsed = false;
  // Also to the second question of the probe that is under way.
  let late = 0;
  const lapsed = { status: 403, json: { detail: 'The membership has lapsed.' } };
  const harness = await set('resumed', {
    '/v2/usercollection/*': () => (hasLapsed || late-- > 0 ? lapsed : nothing),
    '/v2/usercollection/sleep_time': (asked: Asked) => (hasLapsed ? lapsed : nightOf(asked)),
    '/v2/usercollection/daily_readiness': async () => {
      const answer = hasLapsed ? lapsed : nothing;
      if (hasLapsed) {
        wait.held++;
        await wait.opened;
      }
      return answer;
    },
  });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  hasLapsed = true;
  const run = harness.backfill(DAYS);
  await until('the probe waits', () => wait.held > 0);
  hasLapsed = false;
  late = 1;
  await harness.commands.resumeAccounts({ names: ['ada'] });
  wait.open();
  expect(await run).toMatchObject({ state: 'complete' });
  expect((await account(harness))?.[0]).toBe('active');
});

test('a pause keeps why nobody knows whose the token is', async () => {
  const harness = await set('paused-stranger', {});
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.commands.addAccount({ name: 'ada', token: 'ben' });
  await harness.commands.pauseAccount({ name: 'ada' });
  expect((await account(harness))?.slice(0, 2)).toEqual([
    'paused',
    expect.stringMatching(/^paused by command; the token is that of another person/),
  ]);
});

test('what the service says of a token counts although the account is mapped meanwhile', async () => {
  const wait = barrier();
  const harness = await set('mapped-meanwhile', {
    '/v2/usercollection/personal_info': heldFor('ben', wait, () => ({ json: { id: 'ben-1' } })),
  });
  const adding = harness.commands.addAccount({ name: 'ada', token: 'ben' });
  await until('the command asks', () => wait.held > 0);
  await harness.commands.mapAccount({ name: 'ada', serviceUser: 'ada-1' });
  wait.open();
  expect(await adding).toMatchObject({ state: 'parked', warning: expect.stringMatching(/^the token is that of another person/) });
});

test('a token that cannot be read keeps the night of nobody else', async () => {
  const harness = await set('damaged', { '/v2/usercollection/sleep_time': nothing });
  const { secrets, warehouse } = harness.app;
  await harness.add([
    { name: 'ada', token: 'ada' },
    { name: 'ben', token: 'ben' },
  ]);
  await setAccountState(warehouse, (await findAccount(warehouse, 'ada'))!, 'parked', 'forbidden: lapsed');
  const find = secrets.find.bind(secrets);
  vi.spyOn(secrets, 'find').mockImplementation(name => {
    if (name === 'ada') throw new Error('accounts.secret is damaged: the token of ada cannot be read');
    return find(name);
  });
  expect(await harness.nightly(3)).toMatchObject({ state: 'complete', not_asked: [{ user_id: 'ada', state: 'parked' }] });
});

test('a token of rows of an unknown person that could not be kept whole is not made active by a night', async () => {
  const harness = await set('stranger-at-night', {
    '/v2/usercollection/personal_info': ({ token }: Asked) => (token === 'ben' ? { json: { id: 'ben-1' } } : unknownPerson),
  });
  const { warehouse } = harness.app;
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  const record = warehouse.record.bind(warehouse);
  const spy = vi.spyOn(warehouse, 'record').mockImplementation(async entries => {
    if (entries.some(({ row }) => row?.state === 'active')) throw new Error('no space left on device');
    await record(entries);
  });
  await expect(harness.commands.addAccount({ name: 'ada', token: 'ben' })).rejects.toThrow('no space left on device');
  spy.mockRestore();
  await harness.nightly(3).catch(() => undefined);
  expect((await account(harness))?.[0]).toBe('parked');
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([['night-of-ada']]);
});

test('a token of rows of an unknown person that cannot be kept changes nothing', async () => {
  const harness = await set('put-fails', { '/v2/usercollection/personal_info': unknownPerson });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  const put = vi.spyOn(harness.app.secrets, 'put').mockImplementation(() => {
    throw new Error('permission denied');
  });
  await expect(harness.commands.addAccount({ name: 'ada', token: 'renewed' })).rejects.toThrow('permission denied');
  put.mockRestore();
  expect(await account(harness)).toEqual(['active', null, null]);
  expect(harness.app.secrets.find('ada')).toBe('ada');
});

test('a run waits for a change of its account, and loses no window to a state between', async () => {
  const wait = barrier();
  let isWell = true;
  const harness = await set('state-between', {
    '/v2/usercollection/personal_info': unknownPerson,
    '/v2/usercollection/sleep_time': async (asked: Asked) => {
      if (isWell) return nightOf(asked);
      wait.held++;
      await wait.opened;
      return { status: 500 };
    },
  });
  const { warehouse } = harness.app;
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill(DAYS);
  isWell = false;
  const run = harness.backfill({ ...DAYS, refresh: true });
  await until('the run asks', () => wait.held > 0);
  const record = warehouse.record.bind(warehouse);
  vi.spyOn(warehouse, 'record').mockImplementation(async entries => {
    await record(entries);
    if (!entries.some(({ row }) => row?.state === 'parked')) return;
    // The next attempt at the window finds the account as it is between the two.
    wait.open();
    await new Promise(resolve => setTimeout(resolve, 200));
    isWell = true;
  });
  expect(await harness.commands.addAccount({ name: 'ada', token: 'renewed' })).toMatchObject({ state: 'active' });
  expect(await run).toMatchObject({ state: 'complete', failures: [] });
});

test('a refusal that an added token got before the account was resumed does not park it', async () => {
  const wait = barrier();
  const harness = await set('resumed-meanwhile', {
    '/v2/usercollection/*': async () => {
      wait.held++;
      await wait.opened;
      return refusal;
    },
  });
  const adding = harness.commands.addAccount({ name: 'ada', token: 'ada' });
  await until('the command asks', () => wait.held > 0);
  await harness.commands.resumeAccounts({ names: ['ada'] });
  wait.open();
  expect(await adding).toMatchObject({ state: 'active', warning: expect.stringMatching(/^the service refuses the token/) });
});

test('a first token that is given with an id is not used before the service has said whose it is', async () => {
  const wait = barrier();
  const harness = await set('first-given', {
    '/v2/usercollection/personal_info': heldFor('ben', wait, ({ token }) => ({ json: { id: `${token}-1` } })),
  });
  const adding = harness.commands.addAccount({ name: 'ada', token: 'ben', serviceUser: 'ada-1' });
  await until('the command asks', () => wait.held > 0);
  await expect(harness.backfill(DAYS)).rejects.toThrow('there is no account yet');
  wait.open();
  expect(await adding).toMatchObject({ state: 'parked', warning: expect.stringMatching(/^the token is that of another person/) });
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([]);
});

test('a 404 to a token that is replaced is not followed up with the new one', async () => {
  const wait = barrier();
  let asked = 0;
  const night = {
    id: 's1',
    day: '2025-01-01',
    ring_id: 'ring-of-ada',
    bedtime_start: '2025-01-01T00:00:00+00:00',
    bedtime_end: '2025-01-01T08:00:00+00:00',
  };
  const harness = await set('followed-up', {
    '/v2/usercollection/sleep': { json: { data: [night], next_token: null } },
    '/v2/usercollection/ring_configuration': async () => {
      if (++asked === 2) {
        wait.held++;
        await wait.opened;
      }
      return { status: 404, json: { detail: 'Not Found' } };
    },
    '/v2/usercollection/ring_configuration/ring-of-ada': ({ token }: Asked) => ({ json: { id: 'ring-of-ada', color: `of_${token}` } }),
  });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  await harness.backfill({ ...DAYS, collections: ['sleep'] });
  const run = harness.backfill({ ...DAYS, collections: ['ring_configuration'] });
  await until('the second 404 waits', () => wait.held > 0);
  expect(await harness.commands.addAccount({ name: 'ada', token: 'ben' })).toMatchObject({ state: 'parked' });
  wait.open();
  await run;
  expect(await harness.read('SELECT id, color FROM ring_configuration')).toEqual([]);
});

test('a token of another person that cannot be kept leaves the account as it was', async () => {
  const harness = await set('stranger-not-kept', {});
  await harness.add([{ name: 'ada', token: 'ada' }]);
  const put = vi.spyOn(harness.app.secrets, 'put').mockImplementation(() => {
    throw new Error('no space left on device');
  });
  await expect(harness.commands.addAccount({ name: 'ada', token: 'ben' })).rejects.toThrow('no space left on device');
  put.mockRestore();
  expect(await account(harness)).toEqual(['active', null, 'ada-1']);
});

test('a run that meets an account in the middle of its removal reads it as removed', async () => {
  const wait = barrier();
  const harness = await set('removed-meanwhile', {
    '/v2/usercollection/sleep_time': async () => {
      wait.held++;
      await wait.opened;
      return { status: 500 };
    },
  });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  const run = harness.backfill(DAYS);
  await until('the window asks', () => wait.held > 0);
  const { warehouse, secrets } = harness.app;
  const record = warehouse.record.bind(warehouse);
  const find = vi.spyOn(secrets, 'find');
  vi.spyOn(warehouse, 'record').mockImplementation(async entries => {
    if (entries.some(({ row }) => row?.state === 'removed')) {
      wait.open();
      find.mockClear();
      // The answer was to a token that is gone, and the window begins again without one.
      await until('the window begins again', () => find.mock.results.filter(({ value }) => value === undefined).length >= 2);
    }
    await record(entries);
  });
  await harness.commands.removeAccount({ name: 'ada' });
  expect(await run).toMatchObject({ failures: [{ user_id: 'ada', kind: 'not_authorised', message: 'the account is removed' }] });
  expect(await harness.read('SELECT outcome, reason FROM sync.windows')).toEqual([['not_authorised', 'the account is removed']]);
});
