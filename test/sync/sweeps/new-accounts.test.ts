import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { NewAccounts } from '../../../src/sync/sweeps/new-accounts.ts';
import { startSweep } from '../../../src/sync/sweeps/sweep.ts';
import { startFaultService } from '../../support/fault-service.ts';
import { type Harness, type HarnessOptions, openHarness } from '../../support/harness.ts';
import { startSandbox } from '../../support/sandbox.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-08T12:00:00Z');

/** Two people, of whom nobody has an account yet, and a way to open their folder again. */
async function setUp(name: string) {
  const sandbox = await startSandbox({ count: 2, from: '2025-03-01', to: '2025-03-08', now: () => NOON });
  onTestFinished(() => sandbox.close());
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const open = (options: HarnessOptions = {}) => openHarness(join(folder, name), service.url, { now: () => NOON, ...options });
  const [ada, ben] = sandbox.people.map(({ token }, i) => ({ name: ['ada', 'ben'][i]!, token }));
  return { open, service, ada: ada!, ben: ben! };
}

const runs = (harness: Harness) =>
  harness.read("SELECT kind, request->>'users', request->>'from', request->>'to', state FROM sync.runs ORDER BY ALL");

const untilRead = (harness: Harness, count = 1) =>
  until('it is read', async () => (await runs(harness)).filter(run => run[4] === 'complete').length === count);

const READ_ADA = ['backfill', '["ada"]', '2025-03-05', '2025-03-09', 'complete'];

test('the last days of an account that was never read are read, once, and it is said how to get more', async () => {
  const { open, ada, ben } = await setUp('new');
  const said: string[] = [];
  const log = { debug() {}, info: (_: unknown, line: string) => void said.push(line), warn() {}, error() {}, fatal() {} };
  const harness = await open({ log: log as never });
  const pipeline = await harness.app.pipeline();
  const newAccounts = new NewAccounts(pipeline, 5);
  await newAccounts.look();
  expect(await runs(harness)).toEqual([]);
  await harness.add([ada]);
  // Whoever adds it may be about to read it.
  await newAccounts.look();
  expect(await runs(harness)).toEqual([]);
  await newAccounts.look();
  await untilRead(harness);
  expect(await runs(harness)).toEqual([READ_ADA]);
  expect(await harness.read('SELECT min(day)::VARCHAR, max(day)::VARCHAR FROM daily_readiness')).toEqual([['2025-03-03', '2025-03-08']]);
  await until('it is said', () => said.includes('new accounts were read; for more: ringneck backfill --user ada --from 2024-03-05'));

  await harness.add([ben]);
  for (let looks = 0; looks < 3; looks++) await newAccounts.look();
  await untilRead(harness, 2);
  await newAccounts.look();
  expect(await runs(harness)).toEqual([READ_ADA, ['backfill', '["ben"]', '2025-03-05', '2025-03-09', 'complete']]);
});

test('a process that ends between the adding and the reading, or in the middle of it, leaves the reading to the next one, once', async () => {
  const { open, service, ada } = await setUp('killed');
  const first = await open();
  await first.add([ada]);
  await first.close();

  const second = await open();
  let isAsked = false;
  service.on('/v2/usercollection/sleep', () => {
    isAsked = true;
    return { status: 503, json: { detail: 'Not now.' } };
  });
  await new NewAccounts(await second.app.pipeline(), 5).look();
  await until('a page is asked for', () => isAsked);
  await second.close();

  service.on('/v2/usercollection/sleep', () => undefined);
  const third = await open();
  expect((await runs(third)).map(run => run[4])).toEqual(['running']);
  const newAccounts = new NewAccounts(await third.app.pipeline(), 5);
  await newAccounts.look();
  await newAccounts.look();
  await untilRead(third);
  expect(await runs(third)).toEqual([READ_ADA]);
});

test('an account that somebody has read, a night or a sweep too, is not read again; one of which heart rate was swept alone is', async () => {
  const { open, ada, ben } = await setUp('read');
  const harness = await open();
  await harness.add([ada]);
  await harness.backfill({ from: '2025-03-01', to: '2025-03-02', collections: ['heart_rate'] });
  await harness.add([ben]);
  const pipeline = await harness.app.pipeline();
  const sweep = async (collections?: string[]) =>
    (await startSweep(pipeline, { kind: 'sweep', days: 1, users: ['ben'], ...(collections && { collections }) })).run.done;
  await sweep(['heart_rate']);
  const before = await runs(harness);
  await new NewAccounts(pipeline, 5).look();
  await untilRead(harness, before.length + 1);
  const after = await runs(harness);
  expect(after.filter(run => !before.some(other => String(other) === String(run)))).toEqual([
    ['backfill', '["ben"]', '2025-03-05', '2025-03-09', 'complete'],
  ]);
  await new NewAccounts(pipeline, 5).look();
  expect(await runs(harness)).toEqual(after);
});

test('an account that is parked is read once the service takes its token; 0 days read nobody', async () => {
  const { open, ada } = await setUp('parked');
  const harness = await open();
  await harness.add([{ ...ada, token: 'dead' }]);
  const newAccounts = new NewAccounts(await harness.app.pipeline(), 5);
  await newAccounts.look();
  await newAccounts.look();
  expect(await runs(harness)).toEqual([]);
  await harness.add([ada]);
  const none = new NewAccounts(await harness.app.pipeline(), 0);
  none.start();
  await none.close();
  expect(await runs(harness)).toEqual([]);
  await newAccounts.look();
  await newAccounts.look();
  await untilRead(harness);
});

test('an account of whose first reading everything failed is read at the next start', async () => {
  const { open, service, ada } = await setUp('failed');
  const first = await open();
  await first.add([ada]);
  service.on('/v2/usercollection/*', () => ({ status: 500, json: { detail: 'Broken.' } }));
  const newAccounts = new NewAccounts(await first.app.pipeline(), 5);
  await newAccounts.look();
  await newAccounts.look();
  await until('it ends', async () => (await runs(first)).some(run => run[4] === 'failed'));
  for (let looks = 0; looks < 3; looks++) await newAccounts.look();
  expect((await runs(first)).map(run => run[4])).toEqual(['failed']);
  await first.close();

  service.on('/v2/usercollection/*', () => undefined);
  const second = await open();
  const again = new NewAccounts(await second.app.pipeline(), 5);
  await again.look();
  await again.look();
  await untilRead(second);
  await again.look();
  expect((await runs(second)).map(run => run[4]).sort()).toEqual(['complete', 'failed']);
});

test('an account whose first reading was refused altogether is read once the service takes its token, also by the process that was refused', async () => {
  const { open, service, ada, ben } = await setUp('refused');
  const harness = await open();
  await harness.add([ada, ben]);
  let isLapsed = true;
  service.on('/v2/usercollection/*', ({ token }) =>
    isLapsed && token === ada.token ? { status: 403, json: { detail: 'The membership has lapsed.' } } : undefined,
  );
  const newAccounts = new NewAccounts(await harness.app.pipeline(), 5);
  await newAccounts.look();
  await newAccounts.look();
  await until('it ends', async () => (await runs(harness)).some(run => run[4] === 'failed'));
  expect(await harness.read('SELECT user_id, state FROM sync.accounts ORDER BY ALL')).toEqual([
    ['ada', 'parked'],
    ['ben', 'active'],
  ]);
  for (let looks = 0; looks < 3; looks++) await newAccounts.look();
  isLapsed = false;
  await harness.commands.resumeAccounts({ names: ['ada'] });
  for (let looks = 0; looks < 3; looks++) await newAccounts.look();
  await untilRead(harness);
  expect((await runs(harness)).map(([kind, users, , , state]) => [kind, users, state])).toEqual([
    ['backfill', '["ada","ben"]', 'failed'],
    ['backfill', '["ada"]', 'complete'],
  ]);
  expect(await harness.read('SELECT user_id, count(*) > 0 FROM daily_readiness GROUP BY ALL ORDER BY ALL')).toEqual([
    ['ada', true],
    ['ben', true],
  ]);
});

test('while the first reading cannot be begun nothing else waits, and it is tried again after a minute', async () => {
  const { open, ada } = await setUp('later');
  let now = NOON;
  const harness = await open({ now: () => now });
  await harness.add([ada]);
  const pipeline = await harness.app.pipeline();
  const { runs: real } = pipeline;
  let tries = 0;
  const start = (...args: Parameters<typeof real.start>) => (++tries === 1 ? Promise.reject(new Error('no room')) : real.start(...args));
  const newAccounts = new NewAccounts({ ...pipeline, runs: Object.assign(Object.create(real), { start }) }, 5);
  await newAccounts.look();
  await newAccounts.look();
  expect(tries).toBe(1);
  now += 60_000;
  await newAccounts.look();
  await untilRead(harness);
  expect(tries).toBe(2);
});
