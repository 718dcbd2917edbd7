import fs, { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DataFolder } from '../../src/app/data-folder.ts';
import { checkKeptTokens } from '../../src/app/doctor/accounts.ts';
import { moveAccount } from '../../src/app/move/move.ts';
import { readSettings } from '../../src/base/config.ts';
import { RingneckError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { MemoryQueues } from '../../src/queue/memory.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { hashAccount, isEmpty } from '../support/account-rows.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { holdInPlace, letGo } from '../support/hold-in-place.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { someOf } from '../support/whole.ts';

const folder = tempFolder();
const DAYS = { from: '2025-01-01', to: '2025-01-02' };

/** Two people, some days of each, a mirror token of the first, and a snapshot. */
async function openTwo(name: string) {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-04' });
  onTestFinished(() => sandbox.close());
  const data = join(folder, name);
  const harness = await openHarness(data, sandbox.url);
  const [ada, ben] = sandbox.people.map(({ token }) => token);
  await harness.add([
    { name: 'ada', token: ada! },
    { name: 'ben', token: ben! },
  ]);
  await harness.backfill(DAYS);
  await harness.commands.snapshot({});
  const { token: mirror } = await harness.commands.mirrorToken({ name: 'ada' });
  const before = { ada: await countRows(harness, 'ada'), ben: await hashAccount(harness.read, 'ben') };
  return { harness, data, url: sandbox.url, tokens: { ada, ben }, mirror, before };
}

/** Has the folder copied at each step, as a kill leaves it then. */
function copyAtSteps(take: () => void): void {
  const { rename } = Warehouse;
  const { copy, remove } = Secrets.prototype;
  const { snapshot } = Warehouse.prototype;
  vi.spyOn(Secrets.prototype, 'copy').mockImplementation(function (this: Secrets, from, to) {
    take();
    copy.call(this, from, to);
  });
  vi.spyOn(Warehouse, 'rename').mockImplementation(async (path, renaming, beforeTable) => {
    let tables = 0;
    take();
    const renamed = await rename.call(Warehouse, path, renaming, () => {
      if (++tables === 5) take();
      beforeTable();
    });
    return renamed;
  });
  vi.spyOn(Secrets.prototype, 'remove').mockImplementation(function (this: Secrets, name) {
    take();
    remove.call(this, name);
    take();
  });
  vi.spyOn(Warehouse.prototype, 'snapshot').mockImplementation(function (this: Warehouse, ...args) {
    take();
    return snapshot.apply(this, args);
  });
}

/** How many rows, by table. */
async function countRows({ read }: Harness, name: string): Promise<Record<string, string | undefined>> {
  const hashes = await hashAccount(read, name);
  return Object.fromEntries(Object.entries(hashes).map(([table, hash]) => [table, hash.split(' ')[0]]));
}

/** All that is kept, with the account by one name. */
async function ensureWhole({ before, tokens, mirror }: Awaited<ReturnType<typeof openTwo>>, harness: Harness, name: string) {
  const other = name === 'ada' ? 'anna' : 'ada';
  const { app, read, hash, commands } = harness;
  expect((await commands.listAccounts({})).map(({ user_id, state }) => [user_id, state])).toEqual([
    [name, 'active'],
    ['ben', 'active'],
  ]);
  expect(await countRows(harness, name)).toEqual(before.ada);
  expect([await hashAccount(read, 'ben'), isEmpty(await hashAccount(read, other))]).toEqual([before.ben, true]);
  expect([app.secrets.names(), app.secrets.find(name), app.secrets.find('ben')]).toEqual([[name, 'ben'], tokens.ada, tokens.ben]);
  expect(app.mirrorTokens.findAccount(mirror)).toBe(name);
  return hash(name);
}

test('an account has another name everywhere, killed at any moment it has one of the two everywhere, and others stay as they are', async () => {
  const setting = await openTwo('moved');
  const { harness, data, url } = setting;
  const rows = await harness.hash('ada');
  const taken: string[] = [];
  const take = () => {
    const image = join(folder, `killed-${taken.length}`);
    taken.push(image);
    cpSync(data, image, { recursive: true });
  };
  copyAtSteps(take);
  const report = await harness.commands.moveAccount({ from: 'ada', to: 'anna' });
  vi.restoreAllMocks();
  expect(report).toMatchObject({ user_id: 'anna', before: 'ada', snapshot: join(data, 'snapshot.duckdb') });
  expect(report.moved).toMatchObject({ 'sync.accounts': 1, daily_activity: 3 });
  const opened = await openHarness(data, url);
  expect(await ensureWhole(setting, opened, 'anna')).toEqual(rows);
  await opened.close();
  expect(existsSync(join(data, 'moving.json'))).toBe(false);

  expect(taken.length).toBe(6);
  for (const image of someOf(taken, { always: taken.slice(-2), more: 1 })) {
    expect(existsSync(join(image, 'moving.json'))).toBe(true);
    const left = await openHarness(image, url);
    expect(await ensureWhole(setting, left, 'anna'), image).toEqual(rows);
    expect(readdirSync(image).filter(file => /moving|\.new|\.tmp$/.test(file))).toEqual([]);
    await left.close();
  }
}, 60_000);

test('who keeps the folder open goes on by the new name', async () => {
  const { harness, data, url } = await openTwo('kept-open');
  await harness.close();
  const settings = readSettings({ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: url });
  const kept = await DataFolder.open({ settings, log: silentLog, openQueues: () => new MemoryQueues() });
  const order: string[] = [];
  const { ending } = kept.app;
  await kept.during(async app => {
    order.push(`begins with ${app.secrets.names().join()}`);
    return () => order.push('ends');
  });
  const moving = kept.commands.moveAccount({ from: 'ada', to: 'anna' });
  await until(
    'it is closed',
    async () =>
      kept.commands.listAccounts({}).then(
        () => false,
        () => true,
      ),
    20_000,
  );
  await expect(kept.commands.listAccounts({})).rejects.toThrow(`an account is being moved in ${data}; try again in a moment`);
  await moving;
  expect(ending.reason).toMatchObject({ message: `an account is being moved in ${data}; try again in a moment` });
  expect(order).toEqual(['begins with ada,ben', 'ends', 'begins with anna,ben']);
  expect((await kept.commands.listAccounts({})).map(({ user_id }) => user_id)).toEqual(['anna', 'ben']);
  await kept.end();
  await kept.close();
});

test('a name that is in use, or that is none, and what cannot be opened, is refused, and nothing changes', async () => {
  const setting = await openTwo('refused');
  const { harness } = setting;
  const move = (from: string, to: string) => harness.commands.moveAccount({ from, to });
  await expect(move('ada', 'ben')).rejects.toThrow(/^ben is an account already, or was one whose rows are still there/);
  await expect(move('ada', 'ada')).rejects.toThrow('ada has that name already');
  await expect(move('cleo', 'anna')).rejects.toThrow('no account "cleo" was ever added here');
  await expect(move('ada', 'an na')).rejects.toThrow('"an na" cannot name an account');
  await harness.app.warehouse.record([{ table: 'sync.tombstones', key: { user_id: 'anna', id: 'x' }, row: {} }]);
  await expect(move('ada', 'anna')).rejects.toThrow('anna is in use already, in sync.tombstones');
  const { secrets } = harness.app;
  vi.spyOn(secrets, 'namesElsewhere').mockReturnValue(['ada']);
  vi.spyOn(secrets, 'whyMissing').mockReturnValue('the token was sealed with another key');
  await expect(move('ada', 'dora')).rejects.toThrow('ada keeps its name: the token was sealed with another key');
  vi.restoreAllMocks();
  await harness.app.warehouse.record([{ table: 'sync.tombstones', key: { user_id: 'anna', id: 'x' } }]);
  await ensureWhole(setting, harness, 'ada');
});

test('a name that has a token, though no account, is in use: nothing moves and nothing of it goes, until it is forgotten', async () => {
  const setting = await openTwo('left-tokens');
  const { harness, data } = setting;
  const { app, commands } = harness;
  const move = (to: string) => commands.moveAccount({ from: 'ada', to });
  app.secrets.put('dora', 'the token of somebody else');
  app.mirrorTokens.create('emil');
  const inUse = (name: string) =>
    `${name} is in use already: it is no account, and has a token, a sign-in or a token for the mirror, perhaps of somebody else. ` +
    `Choose another name, or first ringneck account remove ${name}, which forgets what is kept`;
  await expect(move('dora')).rejects.toThrow(inUse('dora'));
  await expect(move('emil')).rejects.toThrow(inUse('emil'));
  expect((await checkKeptTokens(app)).map(({ message, fix }) => [message.split(',')[0], fix?.split(',')[0]])).toEqual([
    ['dora has a token', 'ringneck account remove dora'],
    ['emil has a token', 'ringneck account remove emil'],
  ]);
  expect(await commands.removeAccount({ name: 'emil' })).toMatchObject({ user_id: 'emil', state: 'removed' });

  // It came after the name was looked for, and before the folder was closed.
  await harness.close();
  const options = { settings: app.settings, log: silentLog };
  await expect(moveAccount(options, { from: 'ada', to: 'dora' })).rejects.toThrow(inUse('dora'));
  expect([app.secrets.findOfAny('dora'), existsSync(join(data, 'moving.json'))]).toEqual(['the token of somebody else', false]);
  const opened = await openHarness(data, setting.url);
  expect(await opened.commands.removeAccount({ name: 'dora' })).toMatchObject({ user_id: 'dora', state: 'removed' });
  expect(await checkKeptTokens(opened.app)).toEqual([]);
  await ensureWhole(setting, opened, 'ada');
});

test('a move whose note the disk does not confirm has not begun', async () => {
  const setting = await openTwo('unconfirmed');
  const { harness, data, url } = setting;
  const { renameSync } = fs;
  vi.spyOn(fs, 'renameSync').mockImplementation((from, to) => {
    renameSync(from, to);
    if (String(to).endsWith('moving.json')) throw new Error('ENOSPC: no space left on device, fsync');
  });
  syncBuiltinESMExports();
  await expect(harness.commands.moveAccount({ from: 'ada', to: 'anna' })).rejects.toThrow(/^ENOSPC: no space left on device, fsync$/);
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  expect(existsSync(join(data, 'moving.json'))).toBe(false);
  await ensureWhole(setting, await openHarness(data, url), 'ada');
});

test('a move that fails leaves what is to be taken back of who had the new name before, and of the account once', async () => {
  const { harness, data } = await openTwo('left-to-take-back');
  const { secrets } = harness.app;
  const signIn = { expiresAt: null, refreshedAt: 0, scopes: [], previous: null };
  secrets.putEnded('anna', { ...signIn, id: 'a', accessToken: 'of-somebody-before', refreshToken: null }, 1_000);
  secrets.putEnded('ada', { ...signIn, id: 'b', accessToken: 'of-ada', refreshToken: null }, 2_000);
  vi.spyOn(Warehouse, 'rename').mockRejectedValue(new RingneckError('the disk is almost full'));
  await expect(harness.commands.moveAccount({ from: 'ada', to: 'anna' })).rejects.toThrow(/^the disk is almost full$/);
  vi.restoreAllMocks();
  expect(existsSync(join(data, 'moving.json'))).toBe(false);
  expect(secrets.names()).toEqual(['ada', 'ben']);
  expect(secrets.listEnded().map(({ name, at, signIn }) => [name, at, signIn?.accessToken])).toEqual([
    ['anna', 1_000, 'of-somebody-before'],
    ['ada', 2_000, 'of-ada'],
  ]);
});

test('a snapshot that can neither be made anew nor removed holds nobody up: the account has its name, and the result says what is left', async () => {
  const setting = await openTwo('left-snapshot');
  const { harness, data, url } = setting;
  const snapshot = join(data, 'snapshot.duckdb');
  holdInPlace(snapshot);
  const { moveAccount } = harness.commands;
  expect(await moveAccount({ from: 'ada', to: 'anna' })).toMatchObject({
    user_id: 'anna',
    snapshot: null,
    left:
      `${snapshot} shows what is no longer so, and can neither be made anew (EROFS: read-only file system) nor removed ` +
      '(EROFS: read-only file system): have its folder writable again, or remove it. Then ringneck snapshot publishes a new one',
  });
  letGo();
  expect([existsSync(snapshot), existsSync(join(data, 'moving.json'))]).toEqual([true, false]);
  await ensureWhole(setting, await openHarness(data, url), 'anna');
});

test('while the token for the mirror could not follow nobody is moved', async () => {
  const setting = await openTwo('mirror-stays');
  const { harness } = setting;
  holdInPlace(join(setting.data, 'mirror-tokens.json'));
  await expect(harness.commands.moveAccount({ from: 'ada', to: 'anna' })).rejects.toThrow(
    'ada keeps its name, for its token for the mirror could not follow: EROFS: read-only file system',
  );
  letGo();
  await ensureWhole(setting, harness, 'ada');
});

test('what the inbox holds of others and cannot be read stays where somebody is moved, and a backup names what it leaves out', async () => {
  const data = join(folder, 'damaged');
  const harness = await openHarness(data, 'http://127.0.0.1:1');
  await harness.keep([{ name: 'ada', token: 'a' }]);
  const inbox = join(data, 'inbox');
  mkdirSync(inbox, { mode: 0o700 });
  const [now, before] = [join(inbox, '0000000002.journal'), join(inbox, '0000000001.journal.damaged')];
  writeFileSync(now, 'deadbeef + 1764000000000000 of-ben-damaged\n');
  writeFileSync(before, 'of cleo');
  const { unreadable } = await harness.commands.backup({ folder: join(folder, 'damaged-backup'), withoutKey: false });
  expect(unreadable).toEqual([before, `${now}.damaged`]);
  await harness.commands.moveAccount({ from: 'ada', to: 'anna' });
  expect(readdirSync(inbox)).toEqual(['0000000001.journal.damaged', '0000000002.journal.damaged']);
  expect(readFileSync(`${now}.damaged`, 'utf8')).toBe('deadbeef + 1764000000000000 of-ben-damaged\n');
});
