import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Interrupted } from '../../../src/base/interrupt.ts';
import { getAccount, setAccountState } from '../../../src/ledger/accounts.ts';
import { windowEntry } from '../../../src/ledger/windows.ts';
import { startFaultService } from '../../support/fault-service.ts';
import { openHarness } from '../../support/harness.ts';
import { at } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const PAGES = '/v2/usercollection/*';

/** Two accounts, of a service that gives no answer from now on. */
async function silentHarness(name: string) {
  const service = await startFaultService({
    [PAGES]: {},
    '/v2/usercollection/personal_info': ({ token }) => ({ json: { id: `s-${token}` } }),
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name), service.url);
  await harness.add([
    { name: 'ada', token: 'token-of-ada' },
    { name: 'ben', token: 'token-of-ben' },
  ]);
  service.on(PAGES, { fault: 'hang' });
  const before = service.asked.length;
  /** Stops a night as soon as it has asked for something. */
  const stopNight = async () => {
    const stopping = new AbortController();
    const ended = harness.commands.nightly({ days: 1 }, { emit: () => {}, signal: stopping.signal }).catch((error: unknown) => error);
    await until('the service was asked', () => service.asked.length > before);
    stopping.abort(new Interrupted());
    return ended;
  };
  return { harness, service, stopNight, asked: () => service.asked.length - before };
}

test('a night that is stopped while it asks for who was parked ends at once, and the next one asks again', async () => {
  const { harness, service, stopNight, asked } = await silentHarness('parked');
  const { warehouse } = harness.app;
  for (const name of ['ada', 'ben']) {
    await setAccountState(warehouse, await getAccount(warehouse, name), 'parked', 'forbidden: the membership has lapsed');
  }
  expect(await stopNight()).toBeInstanceOf(Interrupted);
  expect(asked()).toBe(1);
  expect(await harness.read('SELECT user_id, state, reason FROM sync.accounts ORDER BY user_id')).toEqual([
    ['ada', 'parked', 'forbidden: the membership has lapsed'],
    ['ben', 'parked', 'forbidden: the membership has lapsed'],
  ]);
  service.on(PAGES, {});
  expect(await harness.nightly(1)).toMatchObject({ state: 'complete', not_asked: [] });
  expect(await harness.read('SELECT state FROM sync.accounts')).toEqual([['active'], ['active']]);
});

test('a night that is stopped while it asks for what was refused ends at once, and it stays refused', async () => {
  const { harness, stopNight, asked } = await silentHarness('refused');
  const refused = (userId: string) =>
    windowEntry(
      { runId: 'r', userId, collection: 'daily_stress', startAt: at('2025-03-01T00:00:00Z'), endAt: at('2025-03-02T00:00:00Z') },
      { outcome: 'not_authorised', reason: 'no scope', committedAt: harness.app.warehouse.clock.next() },
    );
  await harness.app.warehouse.record([refused('ada'), refused('ben')]);
  expect(await stopNight()).toBeInstanceOf(Interrupted);
  expect(asked()).toBe(1);
  expect(await harness.read('SELECT outcome FROM sync.windows')).toEqual([['not_authorised'], ['not_authorised']]);
});
