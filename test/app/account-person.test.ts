import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { AppCommands as Operations } from '../../src/app/commands.ts';
import { findAccount, setAccountState } from '../../src/ledger/accounts.ts';
import { type Asked, startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();

test('a token of another person parks the account, so that two people are never mixed, until there is one of the same', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'data'), RINGNECK_SERVICE_URL: sandbox.url };
  const [ada, ben] = sandbox.people;
  const add = (token: string) => runHere(['account', 'add', 'ada'], { env, input: token });
  expect((await add(ada!.token)).stdout).toBe('ada active\n');
  const alarm = 'the token is that of another person';
  const reason = `${alarm}: give it one of the same: ringneck account add ada, or ringneck account login ada; or, if the person is the same: ringneck account resume ada`;
  expect(await add(ben!.token)).toEqual({ code: 1, stdout: `ada parked: ${reason}\n`, stderr: `warning: ${alarm}\n` });
  expect(await runHere(['backfill', '--from', '2025-01-01', '--to', '2025-01-02'], { env })).toMatchObject({ code: 1 });
  expect((await add(ada!.token)).stdout).toBe('ada active\n');

  // Its rows stay when it is removed.
  expect((await runHere(['account', 'remove', 'ada'], { env })).code).toBe(0);
  expect((await add(ben!.token)).stdout).toBe(`ada parked: ${reason}\n`);
  expect((await runHere(['account', 'resume', 'ada'], { env })).stdout).toBe('ada active\n');
});

test('a new token of an account that is known is used only once it is shown to be the same person’s, however its first check ended', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const faults = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  const harness = await openHarness(join(folder, 'unchecked'), faults.url);
  const [ada, ben] = sandbox.people;
  const add = (token: string) => harness.commands.addAccount({ name: 'ada', token });
  const state = async () => (await harness.commands.listAccounts({})).map(account => [account.state, account.reason]);
  const days = { from: '2025-01-01', to: '2025-01-02' };
  const unchecked =
    'unchecked: nobody knows yet whether the new token is of the same person; each night asks: to ask now, give it again: ringneck account add ada, or ringneck account login ada; or, if the person is the same: ringneck account resume ada';
  const stranger =
    'the token is that of another person: give it one of the same: ringneck account add ada, or ringneck account login ada; or, if the person is the same: ringneck account resume ada';
  const probes = ['daily_readiness', 'session', 'personal_info'].map(path => `/v2/usercollection/${path}`);
  const answer = (script: Parameters<typeof faults.on>[1]) => {
    for (const path of probes) faults.on(path, script);
  };
  expect(await add(ada!.token)).toMatchObject({ state: 'active' });
  await harness.backfill(days);
  const before = await harness.hash();

  for (const [status, reason] of [
    [500, unchecked],
    [403, expect.stringMatching(/^forbidden/)],
  ] as const) {
    answer({ status, json: { detail: 'Not now.' } });
    expect(await add(ben!.token)).toMatchObject({ state: 'parked' });
    expect(await state()).toEqual([['parked', reason]]);
    // Given once more, it is no more known.
    expect(await add(ben!.token)).toMatchObject({ state: 'parked' });
    expect(await state()).toEqual([['parked', reason]]);
    await expect(harness.backfill({ ...days, refresh: true })).rejects.toThrow('nobody can be asked');
    // The service answers again: at night it shows whose token it is.
    answer(() => undefined);
    await expect(harness.nightly(3)).rejects.toThrow('nobody can be asked');
    expect(await state()).toEqual([['parked', stranger]]);
    expect(await harness.hash()).toEqual(before);
  }

  answer({ status: 500, json: { detail: 'Not now.' } });
  // The same token as before needs no proof; another one of the same person is used from the night on.
  expect(await add(ada!.token)).toMatchObject({ state: 'parked' });
  answer(() => undefined);
  await harness.nightly(3);
  expect(await state()).toEqual([['active', null]]);
  answer({ status: 500, json: { detail: 'Not now.' } });
  expect(await add(ada!.token)).toMatchObject({ state: 'active' });
});

const PERSON = '/v2/usercollection/personal_info';

test.each([401, 403, 404])(
  'an account whose token answers for all but personal_info (%i) is active, and so is one that a night finds so',
  async status => {
    const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
    onTestFinished(() => sandbox.close());
    const faults = await startFaultService({ [PERSON]: { status, json: { detail: 'no scope' } } }, { upstream: sandbox.url });
    onTestFinished(() => faults.close());
    const harness = await openHarness(join(folder, `untold-${status}`), faults.url);
    const [ada] = sandbox.people;
    const add = () => harness.commands.addAccount({ name: 'ada', token: ada!.token });
    expect(await add()).toMatchObject({ state: 'active', reason: null, service_user_id: null, warning: null });
    await harness.backfill({ from: '2025-01-01', to: '2025-01-02' });
    expect(await harness.read('SELECT count(*) > 0 FROM sleep')).toEqual([[true]]);

    sandbox.setState(ada!.token, 'lapsed');
    expect(await add()).toMatchObject({ state: 'parked', reason: expect.stringMatching(/^forbidden/) });
    sandbox.setState(ada!.token, 'active');
    await harness.nightly(3);
    expect(await harness.commands.listAccounts({})).toMatchObject([{ state: 'active', reason: null }]);
  },
);

test('where personal_info is refused a known person’s account goes on with its own token, and waits with a new one until its user resumes it', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const faults = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  const harness = await openHarness(join(folder, 'untold-known'), faults.url);
  const [ada, ben] = sandbox.people;
  const add = (person: typeof ada) => harness.commands.addAccount({ name: 'ada', token: person!.token });
  const state = async () => (await harness.commands.listAccounts({})).map(account => [account.state, account.reason]);
  const noNight = () => expect(harness.nightly(3)).rejects.toThrow('nobody can be asked');
  const unchecked =
    'unchecked: nobody knows yet whether the new token is of the same person; each night asks: to ask now, give it again: ringneck account add ada, or ringneck account login ada; or, if the person is the same: ringneck account resume ada';
  const id = (await add(ada)).service_user_id;
  expect(id).not.toBe(null);
  await harness.backfill({ from: '2025-01-01', to: '2025-01-02' });
  const before = await harness.hash();

  faults.on(PERSON, { status: 403, json: { detail: 'no scope' } });
  expect(await add(ada)).toMatchObject({ state: 'active', service_user_id: id, warning: null });
  for (const given of ['for the night', 'for adding it again']) {
    sandbox.setState(ada!.token, 'lapsed');
    expect(await add(ada)).toMatchObject({ state: 'parked', reason: expect.not.stringMatching('unchecked') });
    sandbox.setState(ada!.token, 'active');
    if (given === 'for the night') await harness.nightly(3);
    else await add(ada);
    expect(await state()).toEqual([['active', null]]);
  }

  const warning = 'the service takes the token and does not say whose it is';
  expect(await add(ben)).toMatchObject({ state: 'parked', reason: unchecked, service_user_id: id, warning });
  expect(await add(ben)).toMatchObject({ state: 'parked', reason: unchecked });
  await noNight();
  await harness.commands.resumeAccounts({ parked: true });
  expect(await state()).toEqual([['parked', unchecked]]);

  // A refusal of all does not hide that nobody has shown whose it is.
  for (const membership of ['lapsed', 'revoked'] as const) {
    sandbox.setState(ben!.token, membership);
    const refused = expect.stringMatching(/^(forbidden|unauthorized): .*; unchecked: /);
    expect(await add(ben)).toMatchObject({ state: 'parked', reason: refused });
    await noNight();
    await harness.commands.resumeAccounts({ parked: true });
    expect(await state()).toEqual([['parked', refused]]);
    sandbox.setState(ben!.token, 'active');
    await noNight();
    expect(await state()).toEqual([['parked', unchecked]]);
  }
  expect(await harness.hash()).toEqual(before);

  expect(await harness.commands.resumeAccounts({ names: ['ada'] })).toMatchObject([{ state: 'active', reason: null }]);
  expect(await add(ben)).toMatchObject({ state: 'active', warning: null });
});

test('an id of more than 1,024 characters is nobody’s, and is not kept', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  let id = 'x'.repeat(1_025);
  const script = { '/v2/usercollection/personal_info': () => ({ json: { id } }) };
  const service = await startFaultService(script, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const env = { RINGNECK_DATA: join(folder, 'long'), RINGNECK_SERVICE_URL: service.url };
  const known = async () => {
    const { stdout } = await runHere(['account', 'list', '--json'], { env });
    return (JSON.parse(stdout) as { service_user_id: string | null }[])[0]!.service_user_id;
  };
  await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
  expect(await known()).toBe(null);
  id = 'x'.repeat(1_024);
  await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
  expect(await known()).toBe(id);
});

test('a token that is refused is answered by asking for a new one, also where the person is known; a wrong address by asking for the right one', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'refused'), RINGNECK_SERVICE_URL: sandbox.url };
  const add = (input: string, changes = {}) => runHere(['account', 'add', 'ada'], { env: { ...env, ...changes }, input });
  expect(await add(sandbox.people[0]!.token)).toMatchObject({ code: 0, stdout: 'ada active\n' });
  const { code, stdout, stderr } = await add('token-of-nobody');
  expect({ code, stdout }).toEqual({
    code: 1,
    stdout: expect.stringMatching(
      /^ada parked: unauthorized: .*; unchecked: nor is it known whose it is: give it a new token: ringneck account add ada, or ringneck account login ada\n$/,
    ),
  });
  expect(stderr).toMatch(/^warning: the service refuses the token: /);
  const away = await add(sandbox.people[0]!.token, { RINGNECK_DATA: join(folder, 'away'), RINGNECK_SERVICE_URL: `${sandbox.url}/v2` });
  expect(away).toMatchObject({ code: 1, stdout: 'ada active\n' });
  expect(away.stderr).toContain('is RINGNECK_SERVICE_URL right? Ringneck adds /v2 itself');
});

test.each([
  ['removed', (commands: Operations) => commands.removeAccount({ name: 'ada' }), ['ada', 'removed', 'ada-1']],
  ['paused', (commands: Operations) => commands.pauseAccount({ name: 'ada' }), ['ada', 'paused', 'ada-1']],
  ['mapped', (commands: Operations) => commands.mapAccount({ name: 'ada', serviceUser: 'another' }), ['ada', 'parked', 'another']],
  [
    'given another token',
    (commands: Operations) => commands.addAccount({ name: 'ada', token: 'token-of-bob' }),
    ['ada', 'parked', 'ada-1'],
  ],
])('an account that is %s while a night, or a command that adds it, waits for the service stays so', async (what, change, expected) => {
  let held = Promise.resolve();
  let isHeld = 0;
  const route = async ({ token }: Asked) => {
    if (token !== 'token-of-ada') return { json: { id: 'bob-1' } };
    isHeld++;
    await held;
    return { json: { id: 'ada-1' } };
  };
  const service = await startFaultService({
    '/v2/usercollection/daily_readiness': { json: { data: [], next_token: null } },
    '/v2/usercollection/personal_info': route,
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, `while-${what.slice(0, 6)}`), service.url);
  const { warehouse, secrets } = harness.app;
  const account = () => harness.read('SELECT user_id, state, service_user_id FROM sync.accounts');
  const hold = () => {
    let release = () => {};
    held = new Promise(resolve => {
      release = resolve;
    });
    isHeld = 0;
    return release;
  };
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);

  await setAccountState(warehouse, (await findAccount(warehouse, 'ada'))!, 'parked', 'forbidden: lapsed');
  const release = hold();
  // Nobody is left to be asked.
  const night = harness.nightly(3).catch(() => undefined);
  await until('the night asks', () => isHeld > 0);
  await change(harness.commands);
  release();
  await night;
  expect(await account()).toEqual([expected]);

  secrets.put('ada', 'token-of-ada');
  await harness.app.warehouse.record([
    {
      table: 'sync.accounts',
      key: { user_id: 'ada' },
      row: { service_user_id: 'ada-1', state: 'active', reason: null, since: warehouse.clock.next() },
    },
  ]);
  const go = hold();
  const adding = harness.commands.addAccount({ name: 'ada', token: 'token-of-ada' });
  await until('the command asks', () => isHeld > 0);
  await change(harness.commands);
  go();
  // The service says of the token that it is not of the person whom the account was mapped to.
  const warning = what === 'mapped' ? /^the token is that of another person/ : /^the account was changed meanwhile and is /;
  expect(await adding).toMatchObject({ warning: expect.stringMatching(warning) });
  const now = (await account())[0]!;
  expect(now).toEqual(what === 'mapped' ? ['ada', 'parked', 'another'] : expected);
});

test('a new token of an account whose person the service never told is taken with a warning', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const silent = { '/v2/usercollection/personal_info': { status: 403, json: { detail: 'no scope' } } };
  const service = await startFaultService(silent, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'blind'), service.url);
  const add = (person: number) => harness.commands.addAccount({ name: 'ada', token: sandbox.people[person]!.token });
  expect(await add(0)).toMatchObject({ state: 'active', service_user_id: null, warning: null });
  // Nothing is stored that could be mixed.
  expect(await add(1)).toMatchObject({ state: 'active', warning: null });
  await harness.backfill({ from: '2025-01-01', to: '2025-01-03', collections: ['sleep'] });
  expect(await add(1)).toMatchObject({ state: 'active', warning: null });
  expect(await add(0)).toMatchObject({
    state: 'active',
    warning: expect.stringMatching(
      /^the service never said whose the data of this account are, so nobody can tell whether the new token is of the same person/,
    ),
  });
});

test('one person under a second name is refused with the first one’s name, whatever the second one was before', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'twice'), RINGNECK_SERVICE_URL: sandbox.url };
  const [ada, ben] = sandbox.people;
  const add = (name: string, person = ada, ...args: string[]) => runHere(['account', 'add', name, ...args], { env, input: person!.token });
  const list = async () => JSON.parse((await runHere(['account', 'list', '--json'], { env })).stdout);
  const refused = (name: string) => ({
    code: 1,
    stdout: '',
    stderr: `ringneck: the token is of the same person as the account dev, and nothing was stored: to give dev this token, ringneck account add dev; to read its person as ${name}, ringneck account move dev ${name}\n`,
  });
  expect(await add('dev')).toEqual({ code: 0, stdout: 'dev active\n', stderr: '' });
  expect(await add('p08')).toEqual(refused('p08'));
  expect(await list()).toMatchObject([{ user_id: 'dev' }]);
  // One that was removed, too, and the other way round.
  await runHere(['account', 'remove', 'dev'], { env });
  expect(await add('p08')).toMatchObject({ code: 0, stdout: 'p08 active\n' });
  expect((await add('dev')).stderr).toContain('as the account p08, and nothing was stored');
  expect(JSON.parse((await add('amy', ben, '--json')).stdout)).toMatchObject({ state: 'active', tried: true, same_person: null });
  expect(await list()).toMatchObject([{ user_id: 'amy' }, { user_id: 'p08', service_user_id: ada!.userId }]);
});

test('where rows of a removed account are of who is read by another name now, that is said, until they are erased', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'counted-twice'), RINGNECK_SERVICE_URL: sandbox.url };
  const { token } = sandbox.people[0]!;
  const twice = 'p06, which was removed, has rows of the same person as q06: the same days count twice';
  const examine = async () => {
    const { results } = JSON.parse((await runHere(['doctor', '--json'], { env })).stdout) as { results: Record<string, string>[] };
    return results.filter(({ check }) => check === 'accounts').map(({ state, message, fix }) => [state, message, fix ?? null]);
  };
  await runHere(['account', 'add', 'p06', '--from', '2025-01-01'], { env, input: token });
  await runHere(['account', 'remove', 'p06'], { env });
  expect(await runHere(['account', 'add', 'q06'], { env, input: token })).toEqual({
    code: 0,
    stdout: 'q06 active\n',
    stderr: `warning: ${twice}: ringneck account remove p06 --erase\n`,
  });
  expect(await examine()).toEqual([
    ['ok', '1 of 1 accounts are well', null],
    ['warn', twice, 'ringneck account remove p06 --erase'],
  ]);
  await runHere(['account', 'remove', 'p06', '--erase', '--yes'], { env });
  expect(await examine()).toEqual([['ok', '1 of 1 accounts are well', null]]);
  expect((await runHere(['account', 'add', 'q06'], { env, input: token })).stderr).toBe('');
});

test('where the service tells only after a while that a person has another account, the second one waits, until it is removed', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'late-twin'), service.url);
  const { token, userId } = sandbox.people[0]!;
  const state = async () => (await harness.commands.listAccounts({})).map(({ user_id, state, reason }) => [user_id, state, reason]);
  const twin = ['p08', 'parked', 'the token is of the same person as the account dev: keep one of the two: ringneck account remove p08'];
  await harness.keep([{ name: 'dev', token: 'another of the same', serviceUserId: userId }]);
  let asked = 0;
  service.on(PERSON, () => (++asked === 1 ? { status: 403, json: { detail: 'Not now.' } } : undefined));
  expect(await harness.commands.addAccount({ name: 'p08', token })).toMatchObject({ state: 'parked', service_user_id: null });
  expect(await state()).toEqual([['dev', 'active', null], twin]);
  await harness.commands.resumeAccounts({ parked: true });
  await expect(harness.commands.addAccount({ name: 'p08', token })).rejects.toThrow('of the same person as the account dev');
  expect(await state()).toEqual([['dev', 'active', null], twin]);
  await harness.commands.removeAccount({ name: 'p08' });
  await harness.add([{ name: 'dev', token }]);
  expect(await harness.nightly(3)).toMatchObject({ state: 'complete', not_asked: [] });
});

test('two accounts of one person of before go on, and doctor says which one has the events', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'pair'), RINGNECK_SERVICE_URL: sandbox.url };
  const { token, userId } = sandbox.people[0]!;
  const harness = await openHarness(env.RINGNECK_DATA, sandbox.url);
  await harness.add([{ name: 'dev', token }]);
  await harness.keep([{ name: 'p08', token, serviceUserId: userId }]);
  await harness.close();
  const examine = async () => {
    const { results } = JSON.parse((await runHere(['doctor', '--json'], { env })).stdout) as { results: Record<string, string>[] };
    return results.filter(({ check }) => check === 'accounts').map(({ state, message }) => `${state}: ${message}`);
  };
  expect(await runHere(['account', 'add', 'p08'], { env, input: token })).toEqual({
    code: 0,
    stdout: 'p08 active\n',
    stderr: 'warning: p08 is the same person at the service as dev: events go to dev alone\n',
  });
  await runHere(['account', 'pause', 'dev'], { env });
  expect(await examine()).toEqual([
    'ok: 2 of 2 accounts are well',
    'warn: dev, p08 are the same person at the service: events go to p08 alone',
  ]);
  await runHere(['account', 'remove', 'dev'], { env });
  expect(await examine()).toEqual(['ok: 1 of 1 accounts are well']);
  expect(JSON.parse((await runHere(['account', 'add', 'p08', '--json'], { env, input: token })).stdout)).toMatchObject({
    same_person: null,
  });
});

test('account add --from --json prints one document: the account, and in it the report of its backfill; null where there was none', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'one'), RINGNECK_SERVICE_URL: sandbox.url };
  const add = ['account', 'add', 'ada', '--json'];
  const from = [...add, '--from', '2025-01-01'];
  const refused = await runHere(from, { env, input: 'dead' });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('ringneck: nobody can be asked: ada is parked');
  expect(JSON.parse(refused.stdout)).toMatchObject({ user_id: 'ada', state: 'parked', same_person: null, backfill: null });

  const { code, stdout } = await runHere(from, { env, input: sandbox.people[0]!.token });
  expect(code).toBe(0);
  const { backfill, ...account } = JSON.parse(stdout);
  expect(account).toMatchObject({ user_id: 'ada', state: 'active', reason: null, same_person: null });
  expect(backfill).toMatchObject({ from: '2025-01-01', state: 'complete', failures: [], not_asked: [] });
  expect(backfill.windows.done).toBe(backfill.windows.planned);
  expect(backfill.documents).toBeGreaterThan(0);

  expect(JSON.parse((await runHere(add, { env, input: sandbox.people[0]!.token })).stdout)).not.toHaveProperty('backfill');
});

test('the very token of another account is refused by its name, also where the service tells nobody whose it is', async () => {
  const service = await startFaultService({ '/v2/usercollection/personal_info': { status: 403 } });
  onTestFinished(() => service.close());
  const env = { RINGNECK_DATA: join(folder, 'same-token'), RINGNECK_SERVICE_URL: service.url };
  const add = (name: string, input: string) => runHere(['account', 'add', name], { env, input });
  await add('ada', 'token-of-ada');
  await runHere(['account', 'pause', 'ada'], { env });
  expect(await add('ben', 'token-of-ada')).toMatchObject({
    code: 1,
    stdout: '',
    stderr:
      'ringneck: the account ada has the same token, and nothing was stored: to read its person as ben, ringneck account move ada ben\n',
  });
  await runHere(['account', 'resume', 'ada'], { env });
  expect((await add('ada', 'token-of-ada')).stdout).toMatch(/^ada /);
  await runHere(['account', 'remove', 'ada'], { env });
  expect((await add('ben', 'token-of-ada')).stdout).toMatch(/^ben /);
});
