import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkUnknownPersons } from '../../../src/app/doctor/subscriptions.ts';
import type { Log } from '../../../src/base/log.ts';
import { silentLog } from '../../../src/base/log.ts';
import { accountEntry } from '../../../src/ledger/accounts.ts';
import { rememberErased } from '../../../src/sync/events/erased-ids.ts';
import { listUnknownPersons } from '../../../src/sync/events/unknown-person.ts';
import { shareRedis } from '../../queue/redis-server.ts';
import { spo2 } from '../../service/documents.ts';
import { openEventHarness } from '../../support/event-harness.ts';
import { openHarness } from '../../support/harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const newQueue = shareRedis();
const SPO2 = '/v2/usercollection/daily_spo2';

/** A harness in which one account is there, whose person's id at the service nobody knows. */
async function setUp() {
  const warnings: unknown[][] = [];
  const log = { ...silentLog, warn: (...said: unknown[]) => void warnings.push(said) } as unknown as Log;
  const harness = await openEventHarness(folder, {
    queueUrl: newQueue().RINGNECK_QUEUE_URL,
    log,
    delays: { unreadable: [1], confirm: 1, confirmDelete: 1, failed: [1, 2] },
    lookAgainMs: 5,
  });
  onTestFinished(() => harness.close());
  const ada = await harness.person('ada', { daily_spo2: [spo2('2025-03-09', 'spo2-1'), spo2('2025-03-08', 'spo2-2')] });
  await ada.account({ serviceUserId: null });
  const mapped = () => harness.rows('SELECT user_id, service_user_id, state FROM sync.accounts ORDER BY user_id');
  return { harness, ada, mapped, warnings };
}

const UNMAPPED = [{ user_id: 'ada', service_user_id: null, state: 'active' }];
const MAPPED = [{ user_id: 'ada', service_user_id: 'service-ada', state: 'active' }];

test('with one account alone an event whose document its token brings maps the id, and what waited is fetched again', async () => {
  const { harness, ada, mapped, warnings } = await setUp();
  // Said by nobody: a 404, a refusal, nothing at all, another document.
  for (const answer of [
    { status: 404, json: { detail: 'Not Found' } },
    { status: 403, json: { detail: 'no' } },
    { status: 500 },
    { json: spo2('2025-03-09', 'another') },
  ]) {
    harness.faults.on(`${SPO2}/spo2-1`, answer);
    expect(await ada.tell({})).toMatchObject({ outcome: 'unknown_user', user_id: null });
  }
  expect(await mapped()).toEqual(UNMAPPED);
  expect(await harness.rows('SELECT id FROM daily_spo2')).toEqual([]);
  expect(await listUnknownPersons(harness.pipeline.warehouse)).toMatchObject([{ service_user_id: 'service-ada', events: 4 }]);
  const told = warnings.filter(([, message]) => String(message).includes('account map'));
  expect(told).toEqual([
    [{ service_user_id: 'service-ada' }, 'events for a service user that no account is mapped to: ringneck account map NAME service-ada'],
  ]);

  harness.faults.on(`${SPO2}/spo2-1`, () => undefined);
  expect(await ada.tell({ object_id: 'spo2-2' })).toMatchObject({ outcome: 'stored', user_id: 'ada' });
  await harness.settled(9);
  expect(await mapped()).toEqual(MAPPED);
  expect(await harness.rows('SELECT id FROM daily_spo2 ORDER BY id')).toEqual([{ id: 'spo2-1' }, { id: 'spo2-2' }]);
  expect(await harness.rows(`SELECT count(*) AS unknown FROM sync.events WHERE outcome = 'unknown_user'`)).toEqual([{ unknown: 0 }]);
  expect(await listUnknownPersons(harness.pipeline.warehouse)).toEqual([]);
});

test('with two accounts, or one that has another id, nobody is asked and nothing is mapped', async () => {
  const { harness, ada, mapped } = await setUp();
  const asked = harness.faults.asked.length;
  await ada.account({ serviceUserId: 'somebody' });
  expect(await ada.tell({})).toMatchObject({ outcome: 'unknown_user' });
  await ada.account({ serviceUserId: null });
  await harness.person('ben', {});
  expect(await ada.tell({})).toMatchObject({ outcome: 'unknown_user' });
  expect(harness.faults.asked.length).toBe(asked);
  expect(await mapped()).toMatchObject([{ service_user_id: null }, { service_user_id: 'service-ben' }]);
});

test('an event about somebody who was erased is forgotten, and no account is taken for that person', async () => {
  const { harness, ada, mapped, warnings } = await setUp();
  await rememberErased(harness.pipeline.warehouse, harness.pipeline.tokens, ['service-ada']);
  const asked = harness.faults.asked.length;
  await ada.announce({});
  // Worked off after it.
  await ada.tell({ user_id: 'other', object_id: 'spo2-7' });
  expect(harness.faults.asked.slice(asked).map(({ path }) => path)).toEqual([`${SPO2}/spo2-7`]);
  expect(await mapped()).toEqual(UNMAPPED);
  expect(await harness.rows('SELECT service_user_id FROM sync.events')).toEqual([{ service_user_id: 'other' }]);
  expect(JSON.stringify(warnings)).not.toContain('service-ada');
});

test('status and doctor name the command for each of whom events wait, and account map has them fetched again', async () => {
  const harness = await openHarness(join(folder, 'mapped'), 'http://127.0.0.1:9', {
    settings: {
      webhooks: { callbackUrl: 'https://example.org/webhook', clientId: 'c', verificationToken: 'v', secrets: ['s'] } as never,
    },
  });
  const { warehouse } = harness.app;
  const waiting = (receivedAt: number, id: string) => ({
    table: 'sync.events',
    key: { received_at: receivedAt },
    row: { event_type: 'update', data_type: 'sleep', object_id: 'night', service_user_id: id, outcome: 'unknown_user' },
  });
  await warehouse.record([
    accountEntry({ userId: 'ada', serviceUserId: null, state: 'active', reason: null, since: 1 }),
    waiting(1_741_600_000_000_000, 'person-1'),
    waiting(1_741_600_000_000_001, 'person-1'),
    waiting(1_741_600_000_000_002, '\u001b[2Jx'),
  ]);
  expect((await harness.commands.status({})).webhooks!.unknown_users).toEqual([
    { service_user_id: '\u001b[2Jx', events: 1, last_event_at: '2025-03-10T09:46:40.000002Z' },
    { service_user_id: 'person-1', events: 2, last_event_at: '2025-03-10T09:46:40.000001Z' },
  ]);
  const results = await checkUnknownPersons(harness.app);
  expect(results.map(({ state, message, fix }) => [state, message, fix])).toEqual([
    ['warn', '1 of \\u001b[2Jx wait: no account is known to be that person', 'ringneck account map NAME <service_user_id>'],
    ['warn', '2 of person-1 wait: no account is known to be that person', 'ringneck account map NAME person-1'],
  ]);
  const { inbox } = await harness.app.pipeline();
  await harness.commands.mapAccount({ name: 'ada', serviceUser: 'person-1' });
  expect(inbox.keys()).toEqual(['1741600000000000', '1741600000000001']);
});
