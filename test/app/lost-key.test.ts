import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkAccounts } from '../../src/app/doctor/accounts.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { openSignedInHarness } from '../sign-in/signed-in-harness.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const DAYS = { from: '2025-01-01', to: '2025-01-02' };
const BEN = 'the token was sealed with another key than there is now: put that one back, or ringneck account add ben';

const states = async ({ commands }: Harness) =>
  (await commands.listAccounts({})).map(({ user_id, state, reason }) => [user_id, state, reason]);

/** A folder of ada and ben, whose key is gone. */
async function loseKey(name: string) {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const harness = await openHarness(join(folder, name), sandbox.url);
  const [ada, ben] = sandbox.people.map(({ token }) => token);
  await harness.add([
    { name: 'ada', token: ada! },
    { name: 'ben', token: ben! },
  ]);
  rmSync(join(folder, name, 'secret.key'));
  return { harness, tokens: { ada: ada!, ben: ben! } };
}

test('where the key is lost accounts are added again, one after the other, and the others say so until then', async () => {
  const { harness, tokens } = await loseKey('again');
  await expect(harness.backfill(DAYS)).rejects.toThrow(
    /was sealed with a key that is missing.* Where it is lost: ringneck account add NAME/,
  );
  expect(await harness.commands.addAccount({ name: 'ada', token: tokens.ada })).toMatchObject({
    state: 'active',
    warning: 'what ben gave was sealed with another key than there is now: put that one back, or add them again, one after the other',
  });
  expect(await states(harness)).toEqual([
    ['ada', 'active', null],
    ['ben', 'without_token', BEN],
  ]);
  const report = await harness.backfill(DAYS);
  expect([report.failures, report.not_asked]).toEqual([[], [{ user_id: 'ben', collection: null, state: 'without_token', reason: BEN }]]);
  expect(await harness.commands.addAccount({ name: 'ben', token: tokens.ben })).toMatchObject({ state: 'active', warning: null });
  expect((await harness.backfill(DAYS)).not_asked).toEqual([]);
});

test.each(['before anybody has signed in', 'while somebody is read'])('with a key that is damaged %s no code is exchanged', async when => {
  const { harness, server, login } = await openSignedInHarness(folder, `damaged-${when.length}`);
  if (when.includes('read')) await login('ada');
  const before = server.asked.length;
  const path = join(harness.app.settings.data, 'secret.key');
  writeFileSync(path, 'short');
  await expect(login('ben')).rejects.toThrow(
    `${path} is damaged (fewer than 16 characters): restore it from a copy, or set RINGNECK_SECRET_KEY.`,
  );
  expect(server.asked.length).toBe(before);
});

test('where the key is lost no account is shown as one that is read', async () => {
  const { harness } = await loseKey('shown');
  await harness.backfill(DAYS).catch(() => undefined);
  const path = join(folder, 'shown');
  const reason =
    `${path}/accounts.secret was sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put ${path}/secret.key back from a copy. ` +
    'Where it is lost: ringneck account add NAME, or login, one account after the other.';
  expect(await states(harness)).toEqual([
    ['ada', 'without_token', reason],
    ['ben', 'without_token', reason],
  ]);
  const { accounts } = await harness.commands.status({});
  expect(accounts.map(({ state, reason }) => [state, reason])).toEqual([
    ['without_token', reason],
    ['without_token', reason],
  ]);
  expect((await harness.commands.why({ name: 'ada' })).sentences[0]).toMatch(
    /^ada is without_token since .*Z, and not read \(.*a key that is missing/,
  );
});

test('where the key is lost an account is removed, and added again with the key that there is', async () => {
  const { harness, tokens } = await loseKey('removed');
  expect(await harness.commands.removeAccount({ name: 'ben' })).toMatchObject({ state: 'removed' });
  expect(await harness.commands.addAccount({ name: 'ada', token: tokens.ada })).toMatchObject({ state: 'active', warning: null });
  expect(await harness.commands.addAccount({ name: 'ben', token: tokens.ben })).toMatchObject({ state: 'active', warning: null });
});

test('a token that is not taken leaves what the lost key had sealed as it was', async () => {
  const { harness } = await loseKey('refused');
  expect(await harness.commands.addAccount({ name: 'ada', token: 'no-token-of-anybody' })).toMatchObject({ state: 'parked' });
  expect(harness.app.secrets.names()).toEqual(['ada', 'ben']);
  expect(harness.app.secrets.namesElsewhere()).toEqual(['ben']);
});

test('a key that comes back opens what it had sealed, and not what was sealed without it', async () => {
  const { harness, tokens } = await loseKey('back');
  const data = join(folder, 'back');
  const address = harness.app.settings.serviceUrl!;
  const other = new Secrets({ folder: data, key: 'a key of more than sixteen letters', address });
  other.acceptKey();
  other.put('ada', 'token-of-ada');
  expect([other.find('ada'), other.find('ben'), other.namesElsewhere()]).toEqual(['token-of-ada', undefined, ['ben']]);
  await harness.commands.addAccount({ name: 'ben', token: tokens.ben });
  expect([other.find('ada'), other.find('ben')]).toEqual(['token-of-ada', undefined]);
  expect([harness.app.secrets.find('ada'), harness.app.secrets.find('ben')]).toEqual([undefined, tokens.ben]);
  expect(harness.app.secrets.whyMissing('ada')).toBe(BEN.replaceAll('ben', 'ada'));
});

test('where the key cannot be read it is said, and nobody is erased', async () => {
  const { harness } = await loseKey('closed');
  const data = join(folder, 'closed');
  mkdirSync(join(data, 'secret.key'));
  const reason =
    `${data}/secret.key cannot be read (EISDIR: illegal operation on a directory, read): ` +
    'make it readable for the user who runs ringneck, or restore it from a copy.';
  expect(await states(harness)).toEqual([
    ['ada', 'without_token', reason],
    ['ben', 'without_token', reason],
  ]);
  await expect(harness.commands.eraseAccount({ name: 'ada' })).rejects.toThrow(reason);
  expect(await checkAccounts(harness.app, harness.app.settings.serviceUrl ?? '')).toMatchObject([
    { state: 'fail', message: `2 accounts could not be tried (${reason})`, fix: 'do what it says' },
  ]);
  expect(existsSync(join(data, 'erasing.json'))).toBe(false);
});

test('nobody is erased while a file with what is to be forgotten cannot be read, and all stays as it was', async () => {
  const { harness, tokens } = await loseKey('unreadable');
  await harness.commands.addAccount({ name: 'ada', token: tokens.ada });
  const [path, marker] = ['accounts.secret', 'erasing.json'].map(name => join(folder, 'unreadable', name));
  const content = readFileSync(path!, 'utf8');
  writeFileSync(path!, content.slice(0, -40));
  await expect(harness.commands.eraseAccount({ name: 'ada' })).rejects.toThrow(
    /accounts\.secret cannot be read .*: put it back from a copy/,
  );
  expect(existsSync(marker!)).toBe(false);
  writeFileSync(path!, content);
  expect((await states(harness))[0]).toEqual(['ada', 'active', null]);
});

test('a token that is damaged is given again', async () => {
  const { harness, tokens } = await loseKey('damaged');
  await harness.commands.addAccount({ name: 'ada', token: tokens.ada });
  const path = join(folder, 'damaged', 'accounts.secret');
  const content = JSON.parse(readFileSync(path, 'utf8'));
  content.accounts[0][1] = Buffer.alloc(64, 7).toString('base64');
  writeFileSync(path, JSON.stringify(content));
  expect(() => harness.app.secrets.find('ada')).toThrow('Give it again: ringneck account add ada');
  expect(await harness.commands.addAccount({ name: 'ada', token: tokens.ada })).toMatchObject({ state: 'active' });
  expect(harness.app.secrets.find('ada')).toBe(tokens.ada);
});

test('where the key is lost people sign in again, one after the other', async () => {
  const setting = await openSignedInHarness(folder, 'sign-in');
  const { harness, server } = setting;
  await setting.login('ada');
  server.person = { id: 'ben-1' };
  await setting.login('ben');
  rmSync(join(harness.app.settings.data, 'secret.key'));
  expect(await setting.login('ben')).toMatchObject({
    state: 'active',
    warning: expect.stringMatching(/^what ada gave was sealed with another key/),
  });
  expect(await states(harness)).toEqual([
    ['ada', 'without_token', 'the sign-in was sealed with another key than there is now: put that one back, or ringneck account login ada'],
    ['ben', 'active', null],
  ]);
});
