import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { openHarness } from '../support/harness.ts';
import { ringneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const DAYS = ['--from', '2025-01-01', '--to', '2025-01-02'];
const COUNT = ['sql', 'SELECT count(*) AS n FROM daily_activity', '--format', 'json'];

/** A data folder with what two days of one person bring (three days have a document: each window is widened), and its copy. */
async function copyFolder(name: string, more: Record<string, string> = {}) {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const envOf = (data: string) => ({ RINGNECK_DATA: join(folder, data), RINGNECK_SERVICE_URL: sandbox.url, ...more });
  const env = envOf(name);
  expect(await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token })).toMatchObject({ code: 0 });
  expect(await runHere(['backfill', ...DAYS], { env })).toMatchObject({ code: 0 });
  const copy = envOf(`${name}-copy`);
  cpSync(env.RINGNECK_DATA, copy.RINGNECK_DATA, { recursive: true });
  return { env, copy };
}

const SUBSCRIPTIONS =
  'the service keeps one set of subscriptions per client: before you start up here, set another client than the original has ' +
  '(RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET), or leave RINGNECK_CALLBACK_URL unset; else its events come here, and no longer to the original\n';

test.skipIf(!hasRedis)(
  'a copied folder whose queues are another’s works again after ringneck adopt, with the rows and the ledger that it has',
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    const { env, copy } = await copyFolder('redis', { RINGNECK_QUEUE_URL: redis.url });
    const harness = await openHarness(env.RINGNECK_DATA, env.RINGNECK_SERVICE_URL, { settings: { queueUrl: redis.url } });
    await harness.app.pipeline();

    const refused = await runHere(['backfill', ...DAYS, '--refresh'], { env: copy });
    expect(refused.code).toBe(75);
    expect(refused.stderr).toContain('`ringneck adopt`');

    const adopted = await runHere(['adopt', '--json'], { env: copy });
    expect(adopted).toMatchObject({ code: 0, stderr: SUBSCRIPTIONS });
    const { id, before } = JSON.parse(adopted.stdout) as { id: string; before: string };
    expect(await harness.read("SELECT value FROM sync.meta WHERE key = 'id'")).toEqual([[before]]);
    expect(id).toMatch(/^[0-9a-f]{8}$/);
    expect(id).not.toBe(before);

    expect(JSON.parse((await runHere(COUNT, { env: copy })).stdout)).toEqual([{ n: 3 }]);
    // What the copy knows to be read is not read again by its ledger.
    expect(JSON.parse((await runHere(['backfill', ...DAYS, '--json'], { env: copy })).stdout)).toMatchObject({ requests: 1 });
    expect(await runHere(['backfill', ...DAYS, '--refresh'], { env: copy })).toMatchObject({ code: 0 });
    expect((await harness.backfill({ from: '2025-01-01', to: '2025-01-02', refresh: true })).state).toBe('complete');
  },
  60_000,
);

test('adopt leaves the renewing of sign-ins to the original', async () => {
  const data = join(folder, 'signed-in');
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' };
  await (await openHarness(data, env.RINGNECK_SERVICE_URL)).close();
  const secrets = new Secrets({ folder: data, address: env.RINGNECK_SERVICE_URL });
  const signIn = {
    id: 'x',
    accessToken: 'access',
    refreshToken: 'refresh',
    expiresAt: 1,
    refreshedAt: 0,
    scopes: ['daily'],
    previous: 'before',
  };
  secrets.putSignIn('ada', signIn);
  secrets.put('ben', 'a-token-alone');
  const adopted = await runHere(['adopt', '--json'], { env: { RINGNECK_DATA: data } });
  expect(JSON.parse(adopted.stdout)).toMatchObject({ sign_in_again: ['ada'] });
  expect(adopted.stderr).toBe(
    `${SUBSCRIPTIONS}the original goes on to renew the sign-in of ada: to read them here too, ringneck account login NAME\n`,
  );
  expect([secrets.findSignIn('ada'), secrets.find('ben')]).toEqual([
    { ...signIn, refreshToken: null, previous: null, isLeftToOriginal: true },
    'a-token-alone',
  ]);
});

test('two folders of which one is a copy, each with the queue in it, work side by side', async () => {
  const { env, copy } = await copyFolder('embedded');
  const again = (env: Record<string, string>) => ringneck(['backfill', ...DAYS, '--refresh', '--json'], { env });
  const ended = await Promise.all([again(env), again(copy)]);
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  const [first, second] = ended.map(({ stdout }) => JSON.parse(stdout) as { windows: { planned: number; done: number } });
  expect(first!.windows.done).toBe(first!.windows.planned);
  expect(second!.windows).toEqual(first!.windows);
});

test('where there is no warehouse none is made', async () => {
  const data = join(folder, 'empty');
  const refused = {
    code: 2,
    stdout: '',
    stderr: `ringneck: there is no warehouse in ${data}: to begin here, ringneck account add NAME; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it\n`,
  };
  expect(await runHere(['adopt'], { env: { RINGNECK_DATA: data } })).toEqual(refused);
  expect(existsSync(data)).toBe(false);
  mkdirSync(data);
  expect(await runHere(['adopt'], { env: { RINGNECK_DATA: data } })).toEqual(refused);
  expect(readdirSync(data)).toEqual([]);
});
