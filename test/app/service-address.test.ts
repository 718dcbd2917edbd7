import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;

/** A service that has nothing, and the tokens that it was shown. */
async function serve() {
  const shown: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    shown.push(request.headers.authorization);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(request.url?.includes('personal_info') ? { id: 'p1' } : { data: [], next_token: null }));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, shown };
}

function commands() {
  const data = join(folder, `d${++folders}`);
  // `doctor` ends its process.
  return (url: string, args: string[], input = '') =>
    runHere(args, {
      env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: url, RINGNECK_LOG_LEVEL: 'silent' },
      input,
    });
}

const DAY = ['--from', '2025-01-01', '--to', '2025-01-01'];

test('another address gets no token, until its giver says so', async () => {
  const [given, other] = [await serve(), await serve()];
  const run = commands();
  await run(given.url, ['account', 'add', 'ada'], 'token-of-ada');
  const why =
    `the token was given for ${given.url}, and this service is ${other.url}: ringneck account add ada ` +
    '(with --keep-token: the same token for this address)';

  expect(await run(other.url, ['backfill', ...DAY])).toMatchObject({
    code: 1,
    stderr: `ringneck: nobody can be asked: ada is without_token (${why})\n`,
  });
  expect(await run(other.url, ['nightly'])).toMatchObject({ code: 1 });
  expect(JSON.parse((await run(other.url, ['account', 'list', '--json'])).stdout)).toMatchObject([{ state: 'without_token', reason: why }]);
  expect(JSON.parse((await run(other.url, ['status', '--json'])).stdout).accounts).toMatchObject([{ state: 'without_token', reason: why }]);
  expect((await run(other.url, ['doctor'])).stdout).toContain(why);
  expect(other.shown.filter(Boolean)).toEqual([]);

  // At its own address nothing has changed.
  expect(JSON.parse((await run(given.url, ['account', 'list', '--json'])).stdout)).toMatchObject([{ state: 'active', reason: null }]);
  expect(await run(given.url, ['backfill', ...DAY])).toMatchObject({ code: 0 });

  expect(await run(other.url, ['account', 'add', 'ada', '--keep-token'])).toMatchObject({ code: 0, stdout: 'ada active\n' });
  expect(await run(other.url, ['backfill', ...DAY, '--refresh'])).toMatchObject({ code: 0 });
  expect(new Set(other.shown.filter(Boolean))).toEqual(new Set(['Bearer token-of-ada']));
  expect((await run(given.url, ['account', 'list'])).stdout).toContain('without_token');
});

test('a new token replaces one for another address; --keep-token needs one that can be kept', async () => {
  const [given, other] = [await serve(), await serve()];
  const run = commands();
  expect(await run(given.url, ['account', 'add', 'ada', '--keep-token'])).toMatchObject({
    code: 2,
    stderr: 'ringneck: ada has no token that could be kept: give one without --keep-token\n',
  });
  await run(given.url, ['account', 'add', 'ada'], 'first');
  await run(other.url, ['account', 'add', 'ada'], 'second');
  expect(new Set(other.shown)).toEqual(new Set(['Bearer second']));
  expect(await run(other.url, ['account', 'add', 'ada', '--keep-token', '--token-file', 'x'])).toMatchObject({ code: 2 });
});
