import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { readPeopleFile } from '../../../src/app/people-file.ts';
import { TryLaterError } from '../../../src/base/errors.ts';
import { openEnrolment } from '../../support/enrolment-harness.ts';
import { openHarness } from '../../support/harness.ts';
import { runHere } from '../../support/run-here.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();

function readPeople(...lines: string[]) {
  const path = join(folder, 'people.csv');
  writeFileSync(path, lines.join('\n'));
  return readPeopleFile(path, { withTokens: false }).people;
}

test('everybody of a file who needs a link has one; a second run ends none of them', async () => {
  let now = Date.parse('2025-06-01T12:00:00Z');
  const { harness, enrol, publicUrl } = await openEnrolment(folder, 'many', { now: () => now });
  const { commands } = harness;
  const people = readPeople('name,group_name', 'p01,training', 'p02,control', 'p03,control');
  const { people: first } = await commands.inviteAccounts({ people: people.slice(0, 2), days: 7, replace: false });
  expect(first).toEqual(
    ['p01', 'p02'].map((name, i) => ({
      ...{ line: i + 2, user_id: name, result: 'invited', reason: null, expires_at: '2025-06-08T12:00:00.000Z' },
      url: expect.stringMatching(new RegExp(`^${publicUrl}/connect/[\\w-]{43}$`)),
    })),
  );
  expect((await enrol(first[0]!.url!, 'ada')).title).toBe('Thank you');

  const { people: second } = await commands.inviteAccounts({ people, days: 7, replace: false });
  expect(second.map(({ user_id, result, url, reason }) => [user_id, result, url === null, reason])).toEqual([
    ['p01', 'unchanged', true, 'is read already'],
    ['p02', 'unchanged', true, 'has a link until 2025-06-08T12:00Z; ringneck account invite p02 makes another in its place'],
    ['p03', 'invited', false, null],
  ]);
  await commands.pauseAccount({ name: 'p01' });
  expect((await commands.inviteAccounts({ people: people.slice(0, 1), days: 7, replace: false })).people[0]).toMatchObject({
    ...{ result: 'failed', reason: 'p01 is paused and has not to sign in again: ringneck account resume p01' },
  });
  // Whose links were lost before they were sent.
  const { people: again } = await commands.inviteAccounts({ people: people.slice(1, 2), days: 7, replace: true });
  expect(again).toMatchObject([{ user_id: 'p02', result: 'invited' }]);
  expect((await fetch(first[1]!.url!)).status).toBe(404);
  expect((await enrol(again[0]!.url!, 'ben')).title).toBe('Thank you');
  now += 8 * 86_400_000;
  expect((await commands.inviteAccounts({ people: people.slice(2), days: 7, replace: false })).people[0]).toMatchObject({
    result: 'invited',
  });
  expect(await harness.read('SELECT user_id, group_name FROM participants ORDER BY user_id')).toEqual([
    ['p01', 'training'],
    ['p02', 'control'],
    ['p03', 'control'],
  ]);
});

test('the links of a file are stored together, or none is', async () => {
  const { harness } = await openEnrolment(folder, 'together');
  const { commands, app } = harness;
  const people = readPeople('name', 'p01', 'p02');
  const { warehouse } = app;
  const record = warehouse.record.bind(warehouse);
  const fail = vi.spyOn(warehouse, 'record').mockImplementation(async (entries, options) => {
    if (entries.some(({ row }) => row?.user_id === 'p02')) throw new TryLaterError('the disk is full');
    return record(entries, options);
  });
  await expect(commands.inviteAccounts({ people, days: 7, replace: false })).rejects.toThrow('the disk is full');
  fail.mockRestore();
  expect(await commands.listInvitations({})).toEqual([]);
  expect(await commands.inviteAccounts({ people, days: 7, replace: false })).toMatchObject({
    people: [
      { user_id: 'p01', result: 'invited' },
      { user_id: 'p02', result: 'invited' },
    ],
  });
});

test('who has withdrawn or was removed has no other link by the same file, until they are erased', async () => {
  const { harness, enrol, sandbox } = await openEnrolment(folder, 'left');
  const { commands } = harness;
  const people = readPeople('name', 'p01', 'p02');
  const { people: first } = await commands.inviteAccounts({ people, days: 7, replace: false });
  await enrol(first[0]!.url!, 'ada');
  await enrol(first[1]!.url!, 'ben');
  const { url } = await commands.makeWithdrawalLink({ name: 'p01' });
  await fetch(url, { method: 'POST' });
  await commands.removeAccount({ name: 'p02' });
  const { people: second } = await commands.inviteAccounts({ people, days: 7, replace: false });
  expect(second.map(({ user_id, result, url, reason }) => [user_id, result, url, reason])).toEqual([
    ['p01', 'unchanged', null, 'has withdrawn: ringneck account invite p01 invites them all the same'],
    ['p02', 'unchanged', null, 'was removed: ringneck account invite p02 invites them all the same'],
  ]);
  // Who was invited all the same keeps that link.
  const invited = await commands.inviteAccount({ name: 'p01', days: 7 });
  const until = `${invited.expires_at.slice(0, 16)}Z`;
  const { people: third } = await commands.inviteAccounts({ people: people.slice(0, 1), days: 7, replace: true });
  expect(third).toMatchObject([
    {
      ...{ user_id: 'p01', result: 'unchanged', url: null },
      reason: `has withdrawn, and has a link until ${until}, which stays; ringneck account invite p01 makes another in its place`,
    },
  ]);
  expect((await fetch(invited.url)).status).toBe(200);
  // Nothing of who was erased is kept, nor that they were invited before.
  await commands.removeAccount({ name: 'p01' });
  await commands.eraseAccount({ name: 'p01' });
  const { settings } = harness.app;
  const opened = await openHarness(settings.data, sandbox.url, { settings });
  const { people: erased } = await opened.commands.inviteAccounts({ people: people.slice(0, 1), days: 7, replace: false });
  expect(erased).toMatchObject([{ user_id: 'p01', result: 'invited' }]);
});

test('the links are a CSV file of their own; a wrong line, or a study without a name, makes none', async () => {
  const env = {
    RINGNECK_DATA: join(folder, 'links'),
    RINGNECK_SERVICE_URL: 'http://127.0.0.1:9',
    RINGNECK_CLIENT_ID: 'client',
    RINGNECK_CLIENT_SECRET: 'secret-of-the-client',
    RINGNECK_PUBLIC_URL: 'https://ring.example.org',
    RINGNECK_STUDY_NAME: 'The Night Study',
    RINGNECK_STUDY_CONTACT: 'night@example.org',
  };
  readPeople('name,birth_year', 'p01,1984', 'p02,84');
  const file = join(folder, 'people.csv');
  const invite = (changes: Record<string, string> = {}) => runHere(['account', 'invite', '--file', file], { env: { ...env, ...changes } });
  expect(await invite()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('line 3, birth_year "84": wanted') });
  readPeople('name,birth_year', 'p01,1984', 'p02,1985');
  expect(await invite({ RINGNECK_STUDY_NAME: '' })).toMatchObject({ code: 2, stdout: '' });
  const { code, stdout, stderr } = await invite();
  expect([code, stderr]).toEqual([0, `2 in ${file}: 2 invited, 0 unchanged, 0 failed\n`]);
  expect(stdout).toMatch(
    /^name,url\np01,https:\/\/ring\.example\.org\/connect\/[\w-]{43}\np02,https:\/\/ring\.example\.org\/connect\/[\w-]{43}\n$/,
  );
  expect(await invite()).toMatchObject({ code: 0, stdout: 'name,url\n' });
});
