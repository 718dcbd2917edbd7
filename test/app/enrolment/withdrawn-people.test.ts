import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { withdraw } from '../../../src/app/enrolment/withdrawal.ts';
import { Client } from '../../../src/client/client.ts';
import { ServiceError } from '../../../src/client/error.ts';
import { changeAccounts, getAccount, setAccountState } from '../../../src/ledger/accounts.ts';
import { linkEntry, withdrawalLink } from '../../../src/ledger/links.ts';
import { openSignedInHarness } from '../../sign-in/signed-in-harness.ts';
import { Browser, openEnrolment, sharePlace, withdrawLinkOf } from '../../support/enrolment-harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { rowsOf, withDuckDB } from '../../support/warehouse.ts';

const folder = tempFolder();
const shared = sharePlace(folder);
const context = { emit: () => undefined, signal: new AbortController().signal };
const OWN_WORD =
  'the person of p01 has withdrawn, and is read again only after another sign-in of theirs: ringneck account invite p01, or ringneck account login p01';

/** The first time that the service is asked whose a token is, it does not answer. */
function missFirstAnswer(): void {
  const { personalInfo } = Client.prototype;
  let asked = 0;
  const spy = vi.spyOn(Client.prototype, 'personalInfo').mockImplementation(async function (this: Client, ...rest) {
    if (asked++ === 0) throw new Error('503');
    return personalInfo.apply(this, rest);
  });
  onTestFinished(() => spy.mockRestore());
}

/** Ada agrees as p01 and withdraws. */
async function withdrawn(name: string) {
  const enrolment = await openEnrolment(folder, name, shared);
  const link = withdrawLinkOf(await enrolment.enrol(await enrolment.invite('p01'), 'ada'));
  const token = enrolment.sandbox.people[0]?.token ?? '';
  return { ...enrolment, token, withdraw: () => new Browser().open(link, { method: 'POST' }) };
}

test('who has withdrawn and was removed is not added again by a token, nor by a file', async () => {
  const { harness, token, withdraw } = await withdrawn('removed');
  await withdraw();
  await harness.commands.removeAccount({ name: 'p01' });
  await expect(harness.commands.addAccount({ name: 'p01', token })).rejects.toThrow(OWN_WORD);
  expect(await harness.commands.addAccounts({ people: [{ line: 2, name: 'p01', token, facts: {}, extra: {} }] }, context)).toEqual({
    people: [
      {
        line: 2,
        user_id: 'p01',
        result: 'unchanged',
        state: 'removed',
        service_user_id: null,
        reason: 'has withdrawn: ringneck account invite p01, or ringneck account login p01',
      },
    ],
    bad: [],
  });
  expect(await harness.read('SELECT user_id, state, reason FROM sync.accounts')).toEqual([
    ['p01', 'removed', 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase'],
  ]);
});

test.each([
  ['be written', refuseTokens],
  ['be read for a moment', damageTokens],
])('of what is being read as its person withdraws nothing more is stored, also where their tokens cannot %s', async (name, damage) => {
  const { harness, login, answer } = await openSignedInHarness(folder, name);
  await login('ada');
  const secret = 'A'.repeat(43);
  await harness.app.warehouse.record([linkEntry(withdrawalLink('ada', secret, 1))]);
  const path = join(harness.app.settings.data, 'accounts.secret');
  let pages = 0;
  answer.now = async () => {
    if (++pages === 2) {
      const putRight = damage(path);
      expect(await withdraw(harness.app, secret)).toBe('left');
      putRight();
    }
    return { json: { data: [{ id: `s-${pages}`, day: '2025-01-02' }], next_token: pages < 5 ? `t${pages}` : null } };
  };
  await harness.backfill({ from: '2025-01-01', to: '2025-01-05', collections: ['sleep_time'] });
  expect(await harness.read('SELECT id FROM sleep_time')).toEqual([['s-1']]);
});

function refuseTokens(path: string): () => void {
  const { renameSync } = fs;
  const disk = vi.spyOn(fs, 'renameSync').mockImplementation((from, to) => {
    if (to === path) throw Object.assign(new Error('EROFS'), { code: 'EROFS' });
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  const putRight = () => {
    disk.mockRestore();
    syncBuiltinESMExports();
  };
  onTestFinished(putRight);
  return putRight;
}

function damageTokens(path: string): () => void {
  const whole = fs.readFileSync(path);
  fs.writeFileSync(path, whole.subarray(0, 50));
  return () => fs.writeFileSync(path, whole);
}

test('who has withdrawn is not added by another name, removed or not, and comes back by an invitation', async () => {
  const { harness, token, withdraw, enrol, invite } = await withdrawn('renamed');
  await withdraw();
  const refused = `${OWN_WORD} (the token given for p02 is theirs)`;
  await expect(harness.commands.addAccount({ name: 'p02', token })).rejects.toThrow(refused);
  await harness.commands.removeAccount({ name: 'p01' });
  await expect(harness.commands.addAccount({ name: 'p02', token })).rejects.toThrow(refused);
  missFirstAnswer();
  expect(await harness.commands.addAccount({ name: 'p02', token })).toMatchObject({
    state: 'parked',
    reason: 'the token is of the same person as the account p01: keep one of the two: ringneck account remove p02',
  });
  await harness.commands.removeAccount({ name: 'p02' });
  await enrol(await invite('p01'), 'ada');
  expect(await harness.read('SELECT user_id, state, reason FROM sync.accounts ORDER BY user_id')).toEqual([
    ['p01', 'active', null],
    ['p02', 'removed', null],
  ]);
});

test('who has withdrawn is not added by the id that the study gives with a token, nor by one that it gives to an account', async () => {
  const { harness, token, withdraw } = await withdrawn('by-id');
  const { commands, read } = harness;
  await withdraw();
  await commands.removeAccount({ name: 'p01' });
  const [[serviceUser]] = (await read('SELECT service_user_id FROM sync.accounts')) as [[string]];
  // The service tells nobody whose a token is.
  const spy = vi.spyOn(Client.prototype, 'personalInfo').mockRejectedValue(new ServiceError('forbidden', '/personal_info', 'answered 403'));
  onTestFinished(() => spy.mockRestore());
  const refused = `${OWN_WORD} (the token given for p02 is theirs)`;
  await expect(commands.addAccount({ name: 'p02', token, serviceUser })).rejects.toThrow(refused);
  expect(await commands.addAccount({ name: 'p02', token })).toMatchObject({ state: 'active', service_user_id: null });
  await expect(commands.mapAccount({ name: 'p02', serviceUser })).rejects.toThrow(refused);
});

test('an account that waits for being the same person is not resumed once they have withdrawn', async () => {
  const { harness, token, withdraw } = await withdrawn('twin');
  missFirstAnswer();
  expect((await harness.commands.addAccount({ name: 'p02', token })).state).toBe('parked');
  await withdraw();
  await expect(harness.commands.resumeAccounts({ names: ['p02'] })).rejects.toThrow(OWN_WORD);
  expect(await harness.commands.resumeAccounts({ parked: true })).toMatchObject([{ user_id: 'p02', state: 'parked' }]);
});

test('of who is erased no reason of another account has the name, and the other is told', async () => {
  const { harness, enrol, invite } = await openEnrolment(folder, 'erased', shared);
  await enrol(await invite('zelda-77'), 'ada');
  await enrol(await invite('p02'), 'ben');
  const { warehouse } = harness.app;
  await changeAccounts(warehouse, async () =>
    setAccountState(warehouse, await getAccount(warehouse, 'p02'), 'parked', 'the token is of the same person as the account zelda-77'),
  );
  const report = await harness.commands.eraseAccount({ name: 'zelda-77' });
  expect(report).toMatchObject({ same_person: ['p02'], found: [], unsearched: [] });
  await harness.close();
  const path = join(harness.app.settings.data, 'warehouse.duckdb');
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT user_id, reason FROM sync.accounts'))).toEqual([
    { user_id: 'p02', reason: 'the token is of the same person as the account that was erased' },
  ]);
});
