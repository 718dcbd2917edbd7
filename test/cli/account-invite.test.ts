import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placeWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();

const env = (name: string, more: Record<string, string> = {}) => ({
  RINGNECK_DATA: join(folder, name),
  RINGNECK_SERVICE_URL: 'http://127.0.0.1:1',
  RINGNECK_CLIENT_ID: 'client',
  RINGNECK_CLIENT_SECRET: 'secret',
  RINGNECK_PUBLIC_URL: 'https://example.org/ring/',
  RINGNECK_STUDY_NAME: 'The Night Study',
  RINGNECK_STUDY_CONTACT: 'zoe@example.org',
  ...more,
});

test('a link is printed alone, listed without its secret, and revoked', async () => {
  const cli = (...args: string[]) => runHere(['account', ...args], { env: env('whole') });
  const { code, stdout, stderr } = await cli('invite', 'p01', '--days', '14');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^https:\/\/example\.org\/ring\/connect\/[\w-]{43}\n$/);
  expect(stderr).toMatch(
    /^For p01, to be used once until \d{4}-\d\d-\d\dT\d\d:\d\dZ, while `ringneck up` runs\. Send it to this person alone:\n$/,
  );
  const again = JSON.parse((await cli('invite', 'p01', '--json')).stdout);
  expect(again).toEqual({ user_id: 'p01', url: expect.any(String), expires_at: expect.any(String), replaced: true });
  const listed = await cli('invitations', '--json');
  expect(JSON.parse(listed.stdout)).toEqual([
    { user_id: 'p01', state: 'open', created_at: expect.any(String), expires_at: again.expires_at, problem: null },
  ]);
  expect(listed.stdout).not.toContain(again.url.slice(-43));
  expect((await cli('invitations')).stdout).toMatch(/^account {2}state .*\np01 {6}open {3}\S+Z {2}\S+Z *\n$/);
  expect((await runHere(['status'], { env: env('whole') })).stdout).toContain(
    '\ninvitations: 1 open, 0 expired (ringneck account invitations)\n',
  );
  expect(await cli('invite', 'p01', '--revoke')).toEqual({ code: 0, stdout: 'the invitation of p01 is revoked\n', stderr: '' });
  expect(await cli('invitations')).toEqual({ code: 0, stdout: '', stderr: 'no invitation: ringneck account invite NAME\n' });
});

test.each([
  ['RINGNECK_STUDY_NAME', '', /nobody can be invited: set RINGNECK_STUDY_NAME, RINGNECK_STUDY_CONTACT, and RINGNECK_PUBLIC_URL/],
  ['RINGNECK_PUBLIC_URL', '', /nobody can be invited/],
  ['RINGNECK_PUBLIC_URL', 'http://example.org', /RINGNECK_PUBLIC_URL is http: on another host/],
  ['RINGNECK_CLIENT_ID', '', /RINGNECK_CLIENT_ID/],
  ['RINGNECK_STUDY_TEXT', '/nowhere/text', /RINGNECK_STUDY_TEXT cannot be read: ENOENT/],
  ['RINGNECK_STUDY_TEXT', '/usr/bin', /RINGNECK_STUDY_TEXT cannot be read: \/usr\/bin is no regular file/],
  ['RINGNECK_STUDY_NAME', 'two\nlines', /RINGNECK_STUDY_NAME is "two\\nlines": expected one line of at most 200 characters/],
])('with %s=%j nobody is invited, and it is said why', async (name, value, why) => {
  const { code, stdout, stderr } = await runHere(['account', 'invite', 'p01'], { env: env('unset', { [name]: value }) });
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(why)]);
});

test.each([
  [['invite', 'p01', '--days', '0'], '--days'],
  [['invite', 'p01', '--days', '2', '--revoke'], '--days and --revoke exclude each other'],
  [['invite', 'a/b'], '"a/b" cannot name an account'],
  [['invite', 'p01', '--revoke'], 'p01 has no invitation'],
])('account %j is wrong usage', async (args, why) => {
  const given = env('usage');
  placeWarehouse(join(given.RINGNECK_DATA, 'warehouse.duckdb'));
  const { code, stderr } = await runHere(['account', ...args], { env: given });
  expect([code, stderr]).toEqual([2, expect.stringContaining(why)]);
});
