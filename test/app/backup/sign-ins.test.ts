import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { restoreBackup } from '../../../src/app/backup/restore.ts';
import { ensureOfThisWarehouse } from '../../../src/app/find-source.ts';
import { readSettings } from '../../../src/base/config.ts';
import { openSignedInHarness } from '../../sign-in/signed-in-harness.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { openHarness } from '../../support/harness.ts';
import { runHere } from '../../support/run-here.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2025-03-01T12:00:00Z') }));
afterEach(() => void vi.useRealTimers());

/** Ada signs in and is backed up; `renewed`: the original renews her sign-in afterwards. Gives the restored folder, a minute and a half later. */
async function restoreSignedIn(name: string, renewed: boolean, asCopy = false) {
  const { harness, server, service, login, loginAt } = await openSignedInHarness(folder, name);
  await login('ada');
  const backup = join(folder, `${name}-backup`);
  await harness.commands.backup({ folder: backup, withoutKey: false });
  vi.setSystemTime(Date.now() + 90_000);
  if (renewed) await (await harness.app.signIns()).renewDue();
  const data = join(folder, `${name}-restored`);
  await restoreBackup(readSettings({ RINGNECK_DATA: data }), { folder: backup, asCopy }, new AbortController().signal);
  const restored = await openHarness(data, service.url, { settings: { signIn: server.settings } });
  const renew = async (of = restored) => {
    await (await of.app.signIns()).renewDue();
    const [account] = await of.commands.listAccounts({});
    return { state: account?.state, reason: account?.reason };
  };
  return { original: harness, restored, renew, server, loginAt };
}

const ACTIVE = { state: 'active', reason: null };

test('a sign-in that nobody has renewed since the backup goes on in what is restored', async () => {
  const { restored, renew } = await restoreSignedIn('kept', false);
  const before = restored.app.secrets.findSignIn('ada');
  expect(await renew()).toEqual(ACTIVE);
  expect(restored.app.secrets.findSignIn('ada')?.refreshToken).not.toBe(before?.refreshToken);
});

test('one that was renewed since is over there: its account is parked, and says who has to sign in again', async () => {
  const { renew } = await restoreSignedIn('renewed', true);
  expect(await renew()).toEqual({ state: 'parked', reason: 'sign in again: ringneck account login ada' });
});

test('what is restored as a copy leaves the sign-in of the original alone, which goes on to be renewed', async () => {
  const { original, restored, renew } = await restoreSignedIn('copied', false, true);
  expect(restored.app.secrets.findSignIn('ada')?.refreshToken).toBe(null);
  expect(await renew()).toEqual(ACTIVE);
  const before = original.app.secrets.findSignIn('ada');
  expect(await renew(original)).toEqual(ACTIVE);
  expect(original.app.secrets.findSignIn('ada')?.refreshToken).not.toBe(before?.refreshToken);
});

test('an account that is removed in a copy keeps its sign-in in the original, which goes on to renew it', async () => {
  const { original, restored, renew, server } = await restoreSignedIn('removed', false, true);
  await restored.commands.removeAccount({ name: 'ada' });
  expect(restored.app.secrets.names()).toEqual([]);
  expect(await server.findPerson(original.app.secrets.find('ada') ?? '')).toBe('ada-1');
  expect(await renew(original)).toEqual(ACTIVE);
});

test('who signs in again in a copy has a sign-in of its own there, and that of the original lives on', async () => {
  const { original, restored, server, loginAt } = await restoreSignedIn('again', false, true);
  expect(await loginAt(restored, 'ada')).toMatchObject({ state: 'active', warning: null });
  expect(restored.app.secrets.findSignIn('ada')).toMatchObject({ refreshToken: expect.any(String) });
  expect(restored.app.secrets.findSignIn('ada')).not.toHaveProperty('isLeftToOriginal');
  expect(await server.findPerson(original.app.secrets.find('ada') ?? '')).toBe('ada-1');
});

test('who had come in to the console of what lay there before does not see what is restored', async () => {
  const { harness } = await openSignedInHarness(folder, 'entered');
  const backup = join(folder, 'entered-backup');
  await harness.commands.backup({ folder: backup, withoutKey: false });
  const data = join(folder, 'entered-restored');
  mkdirSync(data, { mode: 0o700 });
  const sessions = join(data, 'console-sessions');
  mkdirSync(sessions, { mode: 0o700 });
  writeFileSync(join(sessions, 'a.session'), '{"role":"person","person":"ada"}', { mode: 0o600 });
  await restoreBackup(readSettings({ RINGNECK_DATA: data }), { folder: backup, asCopy: false }, new AbortController().signal);
  expect(readdirSync(sessions)).toEqual([]);
});

test('what readers had of the warehouse that lay here before is gone with it, or named; dated snapshots stay', async () => {
  const { harness } = await openSignedInHarness(folder, 'read');
  const backup = join(folder, 'read-backup');
  await harness.commands.backup({ folder: backup, withoutKey: false });
  const { path: published } = await harness.commands.snapshot({});
  const restoreInto = async (name: string, place: (data: string) => void, env: Record<string, string> = {}) => {
    const data = join(folder, name);
    mkdirSync(data, { mode: 0o700 });
    place(data);
    const settings = readSettings({ RINGNECK_DATA: data, ...env });
    const { removed, left } = await restoreBackup(settings, { folder: backup, asCopy: false }, new AbortController().signal);
    return { data, removed, left };
  };
  const gone = await restoreInto('read-gone', data => {
    for (const name of ['person-files', 'snapshots']) mkdirSync(join(data, name), { mode: 0o700 });
    for (const name of ['snapshot.duckdb', 'person-files/ada.duckdb', 'snapshots/ringneck-2025-01-04T0000Z.duckdb']) {
      copyFileSync(published, join(data, name));
    }
  });
  expect([gone.removed, gone.left]).toEqual([[join(gone.data, 'person-files'), join(gone.data, 'snapshot.duckdb')], []]);
  expect(gone.removed.filter(path => existsSync(path))).toEqual([]);
  expect(readdirSync(join(gone.data, 'snapshots'))).toEqual(['ringneck-2025-01-04T0000Z.duckdb']);

  const held = await restoreInto('read-held', data => mkdirSync(join(data, 'snapshot.duckdb/x'), { recursive: true }));
  const publishes = 'may show who was here before: ringneck snapshot publishes what was restored';
  expect([held.removed, held.left]).toEqual([[], [expect.stringContaining(publishes)]]);

  const elsewhere = await restoreInto('read-elsewhere', () => undefined, { RINGNECK_SNAPSHOT: published });
  expect([elsewhere.removed, elsewhere.left, existsSync(published)]).toEqual([[], [`${published} (RINGNECK_SNAPSHOT) ${publishes}`], true]);
});

test('a console that looks alone refuses what a snapshot elsewhere has of another warehouse, until this one is published', async () => {
  const { harness } = await openSignedInHarness(folder, 'former');
  const backup = join(folder, 'former-backup');
  await harness.commands.backup({ folder: backup, withoutKey: false });
  const { path: published } = await harness.commands.snapshot({});
  const env = { RINGNECK_DATA: join(folder, 'former-copied'), RINGNECK_SNAPSHOT: published };
  const settings = readSettings(env);
  await restoreBackup(settings, { folder: backup, asCopy: true }, new AbortController().signal);
  expect(await runHere(['console', '--no-open'], { env })).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: ${published} (RINGNECK_SNAPSHOT) is of another warehouse than the one in ${env.RINGNECK_DATA}, and may show who was here before: ringneck snapshot publishes this one\n`,
  });
  await runHere(['snapshot'], { env });
  await expect(ensureOfThisWarehouse(settings)).resolves.toBeUndefined();
});

test('a console beside commands shows nothing of a snapshot elsewhere that is of another warehouse, until this one is published', async () => {
  const { harness, login, service } = await openSignedInHarness(folder, 'shown');
  const backup = join(folder, 'shown-backup');
  await harness.commands.backup({ folder: backup, withoutKey: false });
  await login('ada');
  const { path: snapshot } = await harness.commands.snapshot({});
  const data = join(folder, 'shown-copied');
  await restoreBackup(readSettings({ RINGNECK_DATA: data }), { folder: backup, asCopy: true }, new AbortController().signal);
  const { commands } = await openHarness(data, service.url, { settings: { snapshot } });
  const visitor = await (await openConsoleHere(data, { commands, settings: { snapshot } })).enter();
  const shown = async () => JSON.stringify((await visitor.ask('GET people')).body).includes('ada');
  expect([await shown(), (await visitor.ask('GET session')).status]).toEqual([false, 200]);
  await commands.snapshot({});
  expect([await shown(), (await visitor.ask('GET people')).status]).toEqual([false, 200]);
});
