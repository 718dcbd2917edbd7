import fs, {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { restoreBackup } from '../../../src/app/backup/restore.ts';
import { serveControl } from '../../../src/app/control/serve-control.ts';
import { Following } from '../../../src/app/follow-events.ts';
import { readSettings } from '../../../src/base/config.ts';
import { Journal } from '../../../src/base/journal.ts';
import { createLog, silentLog } from '../../../src/base/log.ts';
import { Secrets } from '../../../src/base/secrets/secrets.ts';
import { createAccept, openInbox } from '../../../src/sync/events/accept-event.ts';
import { Warehouse } from '../../../src/warehouse/warehouse.ts';
import { openHarness } from '../../support/harness.ts';
import { runHere } from '../../support/run-here.ts';
import { type Sandbox, startSandbox } from '../../support/sandbox.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { openWarehouse } from '../../support/warehouse.ts';
import { someOf } from '../../support/whole.ts';

const folder = tempFolder();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-08' });
});
afterAll(() => sandbox.close());
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const NEVER = new AbortController().signal;
const DAYS = { from: '2025-01-02', to: '2025-01-03' };
const settingsOf = (data: string, more: Record<string, string> = {}) => readSettings({ RINGNECK_DATA: data, ...more });

/** A document that the service has and that was not read yet. */
async function laterDocument(): Promise<{ id: string }> {
  const url = `${sandbox.url}/v2/usercollection/daily_activity?start_date=2025-01-07&end_date=2025-01-08`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${sandbox.people[0]!.token}` } });
  const { data } = (await answer.json()) as { data: { id: string; day: string }[] };
  return data.find(({ day }) => day === '2025-01-07')!;
}

const eventOf = (id: string) => ({
  event_type: 'create' as const,
  data_type: 'daily_activity',
  object_id: id,
  event_time: '2025-01-08T08:00:00+01:00',
  user_id: sandbox.people[0]!.userId,
});

/** A data folder with two days of ada, her token, one for the mirror, and an event that waits. */
async function openFilled(name: string, settings: Record<string, string> = {}) {
  const data = join(folder, name, 'data');
  const { secretKey } = settingsOf(data, settings);
  const harness = await openHarness(data, sandbox.url, { settings: { secretKey } });
  await harness.add([{ name: 'ada', token: sandbox.people[0]!.token }]);
  await harness.backfill(DAYS);
  const { token } = await harness.commands.mirrorToken({ name: 'ada' });
  const accept = createAccept({ warehouse: harness.app.warehouse, inbox: await harness.app.inbox() });
  const document = await laterDocument();
  await accept(eventOf(document.id));
  return { data, harness, document, token, folder: join(folder, name) };
}

/** All files below a folder, with their modes. */
const listModes = (path: string) =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, encoding: 'utf8' })
      .sort()
      .map(name => [name, (statSync(join(path, name)).mode & 0o777).toString(8)]),
  );

test('a backup of a folder at work is restored into an empty one, which goes on: nothing is read twice, and the event of the inbox is worked off', async () => {
  const { harness, document, token, folder } = await openFilled('whole');
  const backup = join(folder, 'backups', 'first');
  const before = await harness.hash();
  chmodSync(join(harness.app.settings.data, 'mirror-tokens.json'), 0o644);
  const report = await harness.commands.backup({ folder: backup, withoutKey: false });
  expect(report).toMatchObject({ path: backup, key: 'included', events: 1, id: expect.stringMatching(/^[0-9a-f]{8}$/) });
  expect(listModes(backup)).toEqual({
    'accounts.secret': '600',
    inbox: '700',
    'inbox/0000000001.journal': '600',
    'manifest.json': '600',
    'mirror-tokens.json': '600',
    'secret.key': '600',
    'warehouse.duckdb': '600',
  });
  expect([statSync(backup).mode & 0o777, statSync(join(folder, 'backups')).mode & 0o777]).toEqual([0o700, 0o700]);
  expect(readdirSync(join(folder, 'backups'))).toEqual(['first']);
  // What comes later is not in it, and the original goes on.
  await harness.backfill({ from: '2025-01-04', to: '2025-01-04' });
  await harness.close();

  const data = join(folder, 'restored');
  const restored = await restoreBackup(settingsOf(data), { folder: backup, asCopy: false }, NEVER);
  expect(restored).toEqual({
    data,
    made_at: report.made_at,
    service_at: expect.any(String),
    ringneck: expect.any(String),
    events: 1,
    id: report.id,
    before: null,
    signed_in: [],
    sign_in_again: [],
    dropped: [],
    tokens_closed: null,
    removed: [],
    left: [],
  });
  const { 'manifest.json': _, ...parts } = listModes(backup);
  expect(listModes(data)).toEqual(parts);

  const next = await openHarness(data, sandbox.url, { queue: 'embedded' });
  expect(await next.hash()).toEqual(before);
  expect(next.app.mirrorTokens.findAccount(token)).toBe('ada');
  expect(await next.backfill(DAYS)).toMatchObject({ state: 'complete', requests: 1 });
  expect(await next.backfill({ from: '2025-01-04', to: '2025-01-04' })).toMatchObject({ state: 'complete' });
  const following = await Following.open(next.app);
  const schedules = await following.start();
  await until('the event is worked off', async () => (await next.app.inbox()).size === 0);
  await schedules.close();
  expect(await next.read(`SELECT day FROM daily_activity WHERE id = '${document.id}'`)).toEqual([['2025-01-07']]);
  expect(await next.read(`SELECT object_id, outcome FROM sync.events`)).toEqual([[document.id, 'stored']]);
});

test('of events that come and are worked off all the while, each that was acknowledged before the backup is in its inbox or its warehouse', async () => {
  const data = join(folder, 'busy', 'data');
  const { app, commands } = await openHarness(data, sandbox.url);
  const inbox = await app.inbox();
  const accepted: string[] = [];
  const accept = createAccept({ warehouse: app.warehouse, inbox }, key => accepted.push(key));
  for (let n = 0; n < 4; n++) await accept(eventOf(`d-${n}`));
  // As the worker does: the outcome is committed, then the event leaves.
  const workOff = async (key: string) => {
    await app.warehouse.record([{ table: 'sync.events', key: { received_at: Number(key) }, row: { outcome: 'stored' } }]);
    inbox.finish(key);
  };
  await workOff(accepted[0]!);
  const { backup } = Warehouse.prototype;
  vi.spyOn(Warehouse.prototype, 'backup').mockImplementation(async function (this: Warehouse, ...given) {
    await workOff(accepted[1]!);
    const copied = await backup.apply(this, given);
    await workOff(accepted[2]!);
    return copied;
  });
  const { path, events } = await commands.backup({ folder: join(folder, 'busy', 'backup'), withoutKey: false });
  expect(inbox.keys()).toEqual([accepted[3]]);

  const warehouse = await openWarehouse(join(path, 'warehouse.duckdb'));
  const finished = (await warehouse.read('SELECT received_at FROM sync.events')).flat().map(String);
  const kept = new Journal(join(path, 'inbox'));
  expect([kept.size, finished.toSorted()]).toEqual([events, accepted.slice(0, 2)]);
  expect(new Set([...finished, ...kept.keys()])).toEqual(new Set(accepted));
  await kept.close();
  // What the ledger has already does not come twice.
  const opened = await openInbox(join(path, 'inbox'), warehouse, silentLog);
  expect(opened.keys()).toEqual(accepted.slice(2));
  await opened.close();
  await warehouse.close();
});

/** Has work done when the first table is copied: what is copied is fixed then. */
function whileCopying(work: () => Promise<unknown>): void {
  const { run } = DuckDBConnection.prototype;
  let doing: Promise<unknown> | undefined;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...given) {
    if (given[0].startsWith('INSERT INTO "snapshot"')) {
      doing ??= work();
      await doing;
    }
    return run.apply(this, given);
  });
}

test('accounts and tokens in a backup are of one moment, and whoever comes or goes while it is copied does not wait', async () => {
  const { harness, folder } = await openFilled('of-one-moment');
  const { commands, app } = harness;
  await harness.add([{ name: 'eve', token: 'the token of somebody else' }]);
  await commands.pauseAccount({ name: 'eve' });
  whileCopying(async () => {
    await commands.removeAccount({ name: 'ada' });
    await commands.resumeAccounts({ names: ['eve'] });
    await commands.rotateKey({});
    app.secrets.put('dora', 'a token');
    await harness.app.warehouse.record([{ table: 'sync.meta', key: { key: 'later' }, row: { value: 'x' } }]);
  });
  const { path } = await commands.backup({ folder: join(folder, 'backup'), withoutKey: false });
  const statesOf = async ({ commands }: typeof harness) => (await commands.listAccounts({})).map(({ user_id, state }) => [user_id, state]);
  expect(await statesOf(harness)).toEqual([['eve', 'active']]);
  await harness.close();
  const data = join(folder, 'restored');
  expect(await restoreBackup(settingsOf(data), { folder: path, asCopy: false }, NEVER)).toMatchObject({ tokens_closed: null });
  const restored = await openHarness(data, sandbox.url);
  expect(await statesOf(restored)).toEqual([
    ['ada', 'active'],
    ['eve', 'paused'],
  ]);
  expect(restored.app.secrets.names()).toEqual(['ada', 'eve']);
  expect(restored.app.secrets.find('ada')).toBe(sandbox.people[0]!.token);
  expect(await restored.read(`SELECT key FROM sync.meta WHERE key = 'later'`)).toEqual([]);
});

test('without its key a backup opens no token, and restore says so, until the key is there', async () => {
  const { harness, data, folder } = await openFilled('keyless');
  const backup = join(folder, 'backup');
  expect(await harness.commands.backup({ folder: backup, withoutKey: true })).toMatchObject({ key: 'left_out' });
  await harness.close();
  expect(readdirSync(backup)).not.toContain('secret.key');
  const first = await restoreBackup(settingsOf(join(folder, 'first')), { folder: backup, asCopy: false }, NEVER);
  expect(first.tokens_closed).toBe(
    `${join(folder, 'first/accounts.secret')} was sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put ${join(folder, 'first/secret.key')} back from a copy. Where it is lost: ringneck account add NAME, or login, one account after the other.`,
  );
  // Its key was put there before.
  const second = join(folder, 'second');
  mkdirSync(second, { mode: 0o700 });
  cpSync(join(data, 'secret.key'), join(second, 'secret.key'));
  expect(await restoreBackup(settingsOf(second), { folder: backup, asCopy: false }, NEVER)).toMatchObject({ tokens_closed: null });
  expect(new Secrets({ folder: second, address: sandbox.url }).find('ada')).toBe(sandbox.people[0]!.token);
});

test('a key that cannot be read is named, with what to do, and nothing half made stays', async () => {
  const { harness, data, folder } = await openFilled('unreadable-key');
  rmSync(join(data, 'secret.key'));
  mkdirSync(join(data, 'secret.key'));
  await expect(harness.commands.backup({ folder: join(folder, 'backup'), withoutKey: false })).rejects.toThrow(
    `${data}/secret.key cannot be read (EISDIR: illegal operation on a directory, read): make it readable for the user who runs ringneck, ` +
      'or put it back from a copy, or give --without-key and keep the key elsewhere.',
  );
  expect(readdirSync(folder)).not.toContain('backup');
});

test('a key of the environment is in no backup, and opens the tokens of a restored one', async () => {
  const env = { RINGNECK_SECRET_KEY: 'a key that somebody chose' };
  const { harness, folder } = await openFilled('environment', env);
  const backup = join(folder, 'backup');
  expect(await harness.commands.backup({ folder: backup, withoutKey: false })).toMatchObject({ key: 'environment' });
  expect(readdirSync(backup)).not.toContain('secret.key');
  const restored = await restoreBackup(settingsOf(join(folder, 'restored'), env), { folder: backup, asCopy: false }, NEVER);
  expect(restored.tokens_closed).toBe(null);
});

const SIGN_IN = {
  id: 'x',
  accessToken: 'access',
  refreshToken: 'refresh',
  expiresAt: 1,
  refreshedAt: 0,
  scopes: ['daily'],
  previous: 'before',
};

test('a restored folder keeps id and sign-ins; as a copy it has an id of its own, and the original goes on to renew them', async () => {
  const { harness, folder } = await openFilled('copy');
  harness.app.secrets.putSignIn('ben', SIGN_IN);
  const backup = join(folder, 'backup');
  const { id } = await harness.commands.backup({ folder: backup, withoutKey: false });
  const bytes = readFileSync(join(backup, 'accounts.secret'));
  const moved = await restoreBackup(settingsOf(join(folder, 'moved')), { folder: backup, asCopy: false }, NEVER);
  expect(moved).toMatchObject({ id, before: null, signed_in: ['ben'], sign_in_again: [] });
  const copied = await restoreBackup(settingsOf(join(folder, 'copied')), { folder: backup, asCopy: true }, NEVER);
  expect(copied).toMatchObject({ before: id, signed_in: ['ben'], sign_in_again: ['ben'] });
  expect(copied.id).not.toBe(id);
  const signInOf = (data: string) => new Secrets({ folder: join(folder, data), address: sandbox.url }).findSignIn('ben');
  expect([signInOf('moved'), signInOf('copied')]).toEqual([
    SIGN_IN,
    { ...SIGN_IN, refreshToken: null, previous: null, isLeftToOriginal: true },
  ]);
  const idOf = async (data: string) => {
    const warehouse = await openWarehouse(join(folder, data, 'warehouse.duckdb'));
    const rows = await warehouse.read(`SELECT value FROM sync.meta WHERE key = 'id'`);
    await warehouse.close();
    return rows;
  };
  expect([await idOf('moved'), await idOf('copied')]).toEqual([[[id]], [[copied.id]]]);
  expect(readFileSync(join(backup, 'accounts.secret'))).toEqual(bytes);

  const keyless = join(folder, 'keyless');
  await harness.commands.backup({ folder: keyless, withoutKey: true });
  await expect(restoreBackup(settingsOf(join(folder, 'closed')), { folder: keyless, asCopy: true }, NEVER)).rejects.toThrow(
    `the sign-ins of ben cannot be left to the original without their key: set RINGNECK_SECRET_KEY to it, or put ${join(folder, 'closed/secret.key')} there first`,
  );
  expect(readdirSync(join(folder, 'closed'))).toEqual([]);
});

test('a copy keeps nothing of a sign-in that another key has sealed, and says whose it is', async () => {
  const [former, now] = ['the key that was lost', 'the key that there is'];
  const { harness, data, folder } = await openFilled('keys', { RINGNECK_SECRET_KEY: former });
  harness.app.secrets.putSignIn('ben', SIGN_IN);
  await harness.close();
  const { commands, app } = await openHarness(data, sandbox.url, { settings: { secretKey: now } });
  app.secrets.acceptKey();
  app.secrets.putSignIn('cora', SIGN_IN);
  const backup = join(folder, 'backup');
  await commands.backup({ folder: backup, withoutKey: false });
  const copy = join(folder, 'copy');
  const env = { RINGNECK_DATA: copy, RINGNECK_SECRET_KEY: now };
  const { stdout, stderr } = await runHere(['restore', backup, '--as-copy', '--json'], { env });
  expect(JSON.parse(stdout)).toMatchObject({ sign_in_again: ['ben', 'cora'], dropped: ['ben'] });
  expect(stderr.split('\n').slice(2)).toEqual([
    'the service keeps one set of subscriptions per client: before you start up here, set another client than the original has ' +
      '(RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET), or leave RINGNECK_CALLBACK_URL unset; else its events come here, and no longer to the original',
    'the original goes on to renew the sign-in of ben, cora: to read them here too, ringneck account login NAME',
    'sealed with another key than there is now, and therefore not kept in this copy: the sign-in of ben',
    '',
  ]);
  const kept = (key: string) => new Secrets({ folder: copy, key, address: sandbox.url });
  // A token alone stays, for whoever has its key.
  expect([kept(former).names(), kept(former).find('ada')]).toEqual([['ada', 'cora'], sandbox.people[0]!.token]);
  expect(kept(now).findSignIn('cora')).toEqual({ ...SIGN_IN, refreshToken: null, previous: null, isLeftToOriginal: true });
});

test('a folder that is there stays: only a new or an empty one becomes a backup, and none in the data folder', async () => {
  const { harness, data, folder } = await openFilled('places');
  const backup = (path: string) => harness.commands.backup({ folder: path, withoutKey: false });
  const taken = join(folder, 'taken');
  mkdirSync(taken);
  writeFileSync(join(taken, 'note'), '');
  await expect(backup(taken)).rejects.toThrow(`${taken} is there and not empty: name a folder that does not exist yet`);
  await expect(backup(join(taken, 'note'))).rejects.toThrow('is there and not empty');
  for (const inside of [data, join(data, 'backups/one')]) {
    await expect(backup(inside)).rejects.toThrow(`${inside} lies in the data folder: name a folder elsewhere, best on another disk`);
  }
  const link = join(folder, 'link');
  symlinkSync(join(data, 'inside'), link);
  await expect(backup(link)).rejects.toThrow(`${link} is a link to a place that does not exist: name the place itself`);
  rmSync(link);
  expect([readdirSync(taken), existsSync(join(data, 'backups')), existsSync(join(data, 'inside'))]).toEqual([['note'], false, false]);
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  await backup(empty);
  await expect(backup(empty)).rejects.toThrow('is there and not empty');
  expect(readdirSync(folder).sort()).toEqual(['data', 'empty', 'taken']);
});

test('an owner that closes its folder, to erase somebody for one, leaves no backup and no half of one', async () => {
  const { harness, data, folder } = await openFilled('closing');
  const ended = harness.commands.backup({ folder: join(folder, 'backup'), withoutKey: false });
  await until('the backup has begun', () => readdirSync(folder).length > 1);
  await Promise.all([expect(ended).rejects.toThrow('ringneck is ending; try again in a moment'), harness.close()]);
  expect(readdirSync(folder)).toEqual(['data']);

  // When all was copied already.
  const again = await openHarness(data, sandbox.url);
  const { backup } = Warehouse.prototype;
  vi.spyOn(Warehouse.prototype, 'backup').mockImplementation(async function (this: Warehouse, ...given) {
    const copied = await backup.apply(this, given);
    void again.close();
    return copied;
  });
  const late = again.commands.backup({ folder: join(folder, 'backup'), withoutKey: false });
  await expect(late).rejects.toThrow('ringneck is ending; try again in a moment');
  expect(readdirSync(folder)).toEqual(['data']);

  // When the warehouse was closed before it could be copied.
  const last = await openHarness(data, sandbox.url);
  vi.spyOn(Warehouse.prototype, 'backup').mockImplementation(async function (this: Warehouse, ...given) {
    await last.close();
    return backup.apply(this, given);
  });
  const early = last.commands.backup({ folder: join(folder, 'backup'), withoutKey: false });
  await expect(early).rejects.toThrow('ringneck is ending; try again in a moment');
  expect(readdirSync(folder)).toEqual(['data']);
});

test('through the control socket of an owner the command writes the same backup, and restore says what to do next', async () => {
  const { harness, data, folder } = await openFilled('command');
  harness.app.secrets.putSignIn('ben', SIGN_IN);
  const control = await serveControl({ folder: data, commands: harness.commands, log: silentLog });
  onTestFinished(() => control.close());
  const backup = join(folder, 'backup');
  const env = { RINGNECK_DATA: data };
  const made = await runHere(['backup', backup], { env });
  expect(made).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^\/.*\/backup: [\d.,]+ [kM]B, 1 events? that waits?\n$/),
    stderr: 'the key is in it: whoever can read the backup can use the tokens\n',
  });
  expect(await runHere(['restore', backup], { env })).toMatchObject({
    code: 75,
    stderr: expect.stringContaining('is owned by a running ringneck'),
  });
  const { made_at } = JSON.parse(readFileSync(join(backup, 'manifest.json'), 'utf8'));
  const restored = await runHere(['restore', backup], { env: { RINGNECK_DATA: join(folder, 'restored') } });
  const from = new Date(Date.parse(made_at) - 15 * 86_400_000).toISOString().slice(0, 10);
  expect(restored).toEqual({
    code: 0,
    stdout: `${join(folder, 'restored')} is as it was at ${made_at} (Ringneck 0.1.0); 1 event that waited is worked off by the next start\n`,
    stderr:
      `what came since, events too, is not in it: ringneck backfill --from ${from} reads it\n` +
      'accounts that were removed or erased since, or withdrew, are there again: ringneck account list\n' +
      'do not start the folder again that this was a backup of: two that renew one sign-in end it for both\n' +
      'a sign-in that was renewed since is over: where status says so, ringneck account login NAME (ben)\n',
  });
});

test('what came since is read from a day that is not in the future at the service', async () => {
  const then = Date.parse('2025-01-08T12:00:00Z');
  const past = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-08', now: () => then });
  onTestFinished(() => past.close());
  const env = { RINGNECK_DATA: join(folder, 'in the past'), RINGNECK_SERVICE_URL: past.url };
  await runHere(['account', 'add', 'ada'], { env, input: past.people[0]!.token });
  await runHere(['backfill', '--from', '2025-01-07'], { env });
  const made = join(folder, 'of the past');
  expect((await runHere(['backup', made], { env })).code).toBe(0);
  const { stderr } = await runHere(['restore', made], { env: { RINGNECK_DATA: join(folder, 'in the past again') } });
  expect(stderr).toContain('what came since, events too, is not in it: ringneck backfill --from 2024-12-24 reads it\n');
});

/** Has `keep` called before each step by which something gets to the disk. */
function watchSteps(keep: () => void): void {
  const { run } = DuckDBConnection.prototype;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...given) {
    keep();
    return run.apply(this, given);
  });
  for (const name of ['renameSync', 'fsyncSync', 'mkdirSync', 'createWriteStream', 'rmSync', 'rmdirSync'] as const) {
    const real = fs[name] as (...given: unknown[]) => unknown;
    vi.spyOn(fs, name).mockImplementation(((...given: unknown[]) => {
      keep();
      return real(...given);
    }) as never);
  }
  syncBuiltinESMExports();
}

/** What processes leave that are killed before each step of some work on a folder. */
async function killedAt(path: string, work: () => Promise<unknown>): Promise<string[]> {
  const left: string[] = [];
  let isKeeping = false;
  watchSteps(() => {
    if (isKeeping) return;
    isKeeping = true;
    const copy = `${path}-killed-${left.length}`;
    if (existsSync(path)) cpSync(path, copy, { recursive: true });
    else mkdirSync(copy, { mode: 0o700 });
    left.push(copy);
    isKeeping = false;
  });
  await work();
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  for (const copy of left) {
    const locks = readdirSync(copy, { recursive: true, encoding: 'utf8' }).filter(name => /lock\.\d+$/.test(name));
    // Of a process that is there no longer.
    for (const name of locks) writeFileSync(join(copy, name), JSON.stringify({ pid: 999_999_999, started: '' }));
  }
  return left;
}

test('killed at any step a backup is none, or whole, and the next one into the same place removes its half', async () => {
  const { harness, folder } = await openFilled('killed');
  const place = join(folder, 'place');
  mkdirSync(place);
  const left = await killedAt(place, () => harness.commands.backup({ folder: join(place, 'backup'), withoutKey: false }));
  expect(left.length).toBeGreaterThan(50);
  const whole: string[] = [];
  for (const [n, path] of left.entries()) {
    for (const name of readdirSync(path)) {
      const isWhole = existsSync(join(path, name, 'manifest.json'));
      if (isWhole) whole.push(join(path, name));
      else {
        expect(name, `killed at ${n}`).toMatch(/^backup\.\d+\.[0-9a-f]{8}\.new$/);
        const restoring = restoreBackup(settingsOf(join(folder, 'none')), { folder: join(path, name), asCopy: false }, NEVER);
        await expect(restoring).rejects.toThrow('is no whole backup: it has no manifest.json, which is written last');
      }
    }
  }
  expect(whole.length).toBeGreaterThan(0);
  for (const [n, path] of whole.entries()) {
    const restored = await restoreBackup(settingsOf(join(folder, `of-${n}`)), { folder: path, asCopy: false }, NEVER);
    expect(restored).toMatchObject({ events: 1, tokens_closed: null });
  }
  const half = left.find(path => readdirSync(path).length)!;
  await harness.commands.backup({ folder: join(half, 'backup'), withoutKey: false });
  expect(readdirSync(half)).toEqual(['backup']);
  expect(existsSync(join(folder, 'none'))).toBe(false);
});

test('what a killed backup of another name has left is removed when it is a day old, and nothing else is', async () => {
  const { harness, folder } = await openFilled('dated');
  const place = join(folder, 'place');
  const put = (name: string, file: string, hoursOld: number) => {
    mkdirSync(join(place, name, dirname(file)), { recursive: true });
    writeFileSync(join(place, name, file), 'something');
    const changed = Date.now() / 1000 - hoursOld * 3600;
    for (const path of [join(place, name, file), join(place, name)]) utimesSync(path, changed, changed);
  };
  put('ring-2026-01-30.999999999.0123abcd.new', 'secret.key', 25);
  put('ring-2026-01-29.999999999.0123abcd.new', 'inbox/0000000001.journal', 25);
  put('ring-2026-01-31.999999999.0123abcd.new', 'warehouse.duckdb', 0);
  put('other-2026-01-30.999999999.0123abcd.new', 'secret.key', 23);
  put(`running.${process.ppid}.0123abcd.new`, 'secret.key', 25);
  put('holidays.999999999.0123abcd.new', 'beach.jpg', 25);
  put('notes.new', 'secret.key', 25);
  put('timeless.999999999.0123abcd.new', 'secret.key', 25);
  for (const part of ['secret.key', '.']) utimesSync(join(place, 'timeless.999999999.0123abcd.new', part), 0, 0);
  put('mixed.999999999.0123abcd.new', 'secret.key', 25);
  symlinkSync('elsewhere', join(place, 'mixed.999999999.0123abcd.new', 'link'));
  for (const name of ['mixed', 'empty']) {
    mkdirSync(join(place, `${name}.999999999.0123abcd.new`), { recursive: true });
    utimesSync(join(place, `${name}.999999999.0123abcd.new`), 1, 1);
  }
  writeFileSync(join(place, 'text.999999999.0123abcd.new'), 'no folder');
  await harness.commands.backup({ folder: join(place, 'ring-2026-01-31'), withoutKey: false });
  expect(readdirSync(place).sort()).toEqual([
    'empty.999999999.0123abcd.new',
    'holidays.999999999.0123abcd.new',
    'mixed.999999999.0123abcd.new',
    'notes.new',
    'other-2026-01-30.999999999.0123abcd.new',
    'ring-2026-01-31',
    `running.${process.ppid}.0123abcd.new`,
    'text.999999999.0123abcd.new',
    'timeless.999999999.0123abcd.new',
  ]);
});

test('what a killed backup has left that cannot be removed keeps no other from being made, and the log says so', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(line) } });
  const harness = await openHarness(join(folder, 'stays', 'data'), sandbox.url, { log });
  const place = join(folder, 'stays', 'place');
  for (const name of ['one', 'two']) {
    const half = join(place, `${name}.999999999.0123abcd.new`);
    mkdirSync(half, { recursive: true });
    writeFileSync(join(half, 'secret.key'), 'something');
    for (const path of [join(half, 'secret.key'), half]) utimesSync(path, 1, 1);
  }
  // Whoever runs the tests may be root, who may remove anything.
  const { rmSync } = fs;
  vi.spyOn(fs, 'rmSync').mockImplementation((path, options) => {
    if (`${path}`.endsWith('.0123abcd.new')) throw new Error('EACCES: permission denied');
    rmSync(path, options);
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  await harness.commands.backup({ folder: join(place, 'two'), withoutKey: false });
  expect(readdirSync(place)).toContain('two');
  const told = lines.map(line => JSON.parse(line)).filter(({ reason }) => reason === 'EACCES: permission denied');
  expect(told.map(({ path }) => basename(path)).sort()).toEqual(['one.999999999.0123abcd.new', 'two.999999999.0123abcd.new']);
});

test.each([
  ['moved', false],
  ['copied', true],
])('killed at any step a restore (%s) lets nobody begin in the folder, and the same command brings it to its end', async (name, asCopy) => {
  const { harness, folder } = await openFilled(`killed-${name}`);
  harness.app.secrets.putSignIn('ben', SIGN_IN);
  const before = await harness.hash();
  const backup = join(folder, 'backup');
  const { id } = await harness.commands.backup({ folder: backup, withoutKey: false });
  await harness.close();
  const data = join(folder, 'restored');
  const left = await killedAt(data, () => restoreBackup(settingsOf(data), { folder: backup, asCopy }, NEVER));
  expect(left.length).toBeGreaterThan(20);
  const last = [...left.keys()].slice(-3);
  for (const n of someOf([...left.keys()], { always: [0, 2, ...last], more: 1 })) {
    const own = left[n]!;
    const said = `killed at ${n}`;
    const restore = (copy: boolean) => restoreBackup(settingsOf(own), { folder: backup, asCopy: copy }, NEVER);
    const isInPlace = existsSync(join(own, 'warehouse.duckdb'));
    if (existsSync(join(own, 'restoring/ready.json'))) await expect(restore(!asCopy), said).rejects.toThrow('run that one again first');
    else if (isInPlace) await openAt(own);
    if (existsSync(join(own, 'restoring'))) {
      await expect(openAt(own), said).rejects.toThrow('run the same ringneck restore again');
    } else if (!isInPlace) expect(readdirSync(own), said).toEqual([]);
    if (!isInPlace || existsSync(join(own, 'restoring'))) {
      expect(await restore(asCopy), said).toMatchObject({
        before: asCopy ? id : null,
        sign_in_again: asCopy ? ['ben'] : [],
        tokens_closed: null,
      });
    }
    const names = readdirSync(own).filter(name => name !== 'warehouse.duckdb.handover');
    expect(names, said).toEqual(['accounts.secret', 'inbox', 'mirror-tokens.json', 'secret.key', 'warehouse.duckdb']);
  }
  const restored = await openHarness(left.at(-1)!, sandbox.url);
  expect(await restored.hash()).toEqual(before);
  expect((await restored.app.inbox()).size).toBe(1);
});

/** Opens a folder as every command does, without a warehouse put there for it. */
async function openAt(data: string) {
  const { App } = await import('../../../src/app/app.ts');
  const app = await App.open({ settings: settingsOf(data), log: silentLog });
  await app.close();
}

test('two restores at one time into one folder: one is done, the other is told of it', async () => {
  const { harness, folder } = await openFilled('two');
  const backup = join(folder, 'backup');
  await harness.commands.backup({ folder: backup, withoutKey: false });
  const settings = settingsOf(join(folder, 'restored'));
  const both = [0, 1].map(() => restoreBackup(settings, { folder: backup, asCopy: false }, NEVER));
  const ended = await Promise.allSettled(both);
  const [refused] = ended.flatMap(one => (one.status === 'rejected' ? [String(one.reason)] : []));
  expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(refused).toContain(`is in use by ringneck restore with PID ${process.pid}`);
  expect(readdirSync(settings.data)).toEqual(['accounts.secret', 'inbox', 'mirror-tokens.json', 'secret.key', 'warehouse.duckdb']);
});

test('an interrupted command leaves no backup, and a restore the folder as it was', async () => {
  const { harness, folder } = await openFilled('interrupted');
  const stopped = AbortSignal.abort(new Error('stopped'));
  const context = { emit: () => undefined, signal: stopped };
  await expect(harness.commands.backup({ folder: join(folder, 'backup'), withoutKey: false }, context)).rejects.toThrow('stopped');
  expect(readdirSync(folder)).toEqual(['data']);
  const backup = join(folder, 'whole');
  await harness.commands.backup({ folder: backup, withoutKey: false });
  const data = join(folder, 'restored');
  await expect(restoreBackup(settingsOf(data), { folder: backup, asCopy: false }, stopped)).rejects.toThrow('stopped');
  expect(readdirSync(data)).toEqual([]);
});

test('a copy that lacks rows is no backup', async () => {
  const { harness, folder } = await openFilled('short');
  const { run } = DuckDBConnection.prototype;
  const lacking = vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...given) {
    const isLost = /^INSERT INTO "?snapshot"?\."sync"\."meta"/.test(given[0]);
    return run.apply(this, isLost ? [`${given[0]} LIMIT 1`] : given);
  });
  const short = harness.commands.backup({ folder: join(folder, 'backup'), withoutKey: false });
  await expect(short).rejects.toThrow('not copied whole: sync.meta; nothing was replaced');
  lacking.mockRestore();
  expect(readdirSync(folder)).toEqual(['data']);
  expect(basename((await harness.commands.backup({ folder: join(folder, 'backup'), withoutKey: false })).path)).toBe('backup');
});
