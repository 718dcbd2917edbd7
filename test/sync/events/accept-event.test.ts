import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { WebhookEvent } from '../../../schema/webhook.ts';
import { Journal } from '../../../src/base/journal.ts';
import { silentLog } from '../../../src/base/log.ts';
import { accountEntry } from '../../../src/ledger/accounts.ts';
import { openReceiver } from '../../../src/receiver/receiver.ts';
import { createAccept, eventQueue, openInbox } from '../../../src/sync/events/accept-event.ts';
import { createForgotten, rememberErased } from '../../../src/sync/events/erased-ids.ts';
import { collectQueue } from '../../../src/sync/runs/runs.ts';
import { RequestClock } from '../../../src/warehouse/request-clock.ts';
import { signed } from '../../receiver/signed.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { NOW, newPath, openWarehouse } from '../../support/warehouse.ts';

const folder = tempFolder();
let inboxes = 0;
const newInbox = () => join(folder, `inbox-${++inboxes}`);

const event = (id: string): WebhookEvent => ({
  event_type: 'update',
  data_type: 'sleep',
  object_id: id,
  event_time: '2025-05-31T23:59:30+00:00',
  user_id: 'c6b1c8a4',
});

const warehouseAt = (ms: number) => ({ clock: new RequestClock(0, () => ms) });

test('two warehouses have queues of their own, each beside that of its windows', async () => {
  const [one, other] = [await openWarehouse(newPath(folder)), await openWarehouse(newPath(folder))];
  expect(await eventQueue(one)).toMatch(/^events-[0-9a-f]{8}$/);
  expect(await eventQueue(one)).toBe(await eventQueue(one));
  expect(await eventQueue(one)).toBe((await collectQueue(one)).replace('collect', 'events'));
  expect(await eventQueue(other)).not.toBe(await eventQueue(one));
  await Promise.all([one.close(), other.close()]);
});

test('an accepted event is in the inbox, with its moment, before its sender hears of it', async () => {
  const path = newInbox();
  const inbox = new Journal(path);
  onTestFinished(() => inbox.close());
  const told: string[] = [];
  const accept = createAccept({ warehouse: warehouseAt(NOW), inbox }, key => told.push(key));
  const strange = event('a\u0000b\ud800"\\ü😀');
  await accept(event('first'));
  await Promise.all([accept(strange), accept(event('third'))]);
  // Another process reads what lies there.
  const kept = new Journal(path);
  expect(kept.keys().map(key => [key, kept.find(key)])).toEqual([
    [
      '1748736000000000',
      '{"event_type":"update","data_type":"sleep","object_id":"first","event_time":"2025-05-31T23:59:30+00:00","user_id":"c6b1c8a4"}',
    ],
    ['1748736000000001', JSON.stringify(strange)],
    ['1748736000000002', JSON.stringify(event('third'))],
  ]);
  expect(JSON.parse(kept.find('1748736000000001')!)).toEqual(strange);
  expect(told).toEqual(kept.keys());
});

test('of somebody who was erased no byte is kept, and once there is such an account all is', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  onTestFinished(() => warehouse.close());
  const tokens = { digest: (text: string) => `digest of ${text}` };
  await rememberErased(warehouse, tokens, ['c6b1c8a4']);
  const path = newInbox();
  const inbox = new Journal(path);
  onTestFinished(() => inbox.close());
  const accept = createAccept({ warehouse: warehouseAt(NOW), inbox, isForgotten: createForgotten({ warehouse, tokens }) });
  await accept(event('first'));
  await accept({ ...event('second'), user_id: 'somebody-else' });
  expect(inbox.keys().map(key => JSON.parse(inbox.find(key)!).object_id)).toEqual(['second']);
  expect(readdirSync(path).map(name => readFileSync(join(path, name), 'utf8').includes('c6b1c8a4'))).toEqual([false]);
  await warehouse.record([accountEntry({ userId: 'ada', serviceUserId: 'c6b1c8a4', state: 'active', reason: null, since: 1 })]);
  await accept(event('third'));
  expect(inbox.keys().map(key => JSON.parse(inbox.find(key)!).object_id)).toEqual(['second', 'third']);
});

test('a thousand events at once are each there once', async () => {
  const inbox = new Journal(newInbox());
  onTestFinished(() => inbox.close());
  const accept = createAccept({ warehouse: warehouseAt(NOW), inbox });
  const ids = Array.from({ length: 1_000 }, (_, i) => `n-${i}`);
  await Promise.all(ids.map(id => accept(event(id))));
  expect(inbox.keys().map(key => JSON.parse(inbox.find(key)!).object_id)).toEqual(ids);
});

test('what the ledger has is not in the inbox any more', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  onTestFinished(() => warehouse.close());
  const path = newInbox();
  const before = new Journal(path);
  onTestFinished(() => before.close());
  for (const key of [NOW * 1000, NOW * 1000 + 1, NOW * 1000 + 2]) await before.append(String(key), '{}');
  await warehouse.record([{ table: 'sync.events', key: { received_at: NOW * 1000 + 1 }, row: { outcome: 'stored' } }]);
  const inbox = await openInbox(path, warehouse, silentLog);
  onTestFinished(() => inbox.close());
  expect(inbox.keys()).toEqual(['1748736000000000', '1748736000000002']);
});

test('503 when the inbox cannot be written, and only then', async () => {
  const path = newInbox();
  const inbox = new Journal(path, { fileBytes: 1 });
  const receiver = await openReceiver(
    {
      ready: async () => {},
      webhook: {
        verificationToken: 'w',
        secrets: ['a-client-secret'],
        headerPrefix: 'x-service-',
        windowMs: 300_000,
        accept: createAccept({ warehouse: warehouseAt(NOW), inbox }),
        now: () => NOW,
        log: silentLog,
      },
    },
    { host: '127.0.0.1', port: 0 },
  );
  onTestFinished(async () => {
    await receiver.close();
    await inbox.close();
  });
  const send = async (id: string) => {
    const { timestamp, signature, body } = signed(JSON.stringify(event(id)));
    const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature };
    return (await fetch(`${receiver.url}/webhook`, { method: 'POST', headers, body: new Uint8Array(body) })).status;
  };
  expect(await send('a')).toBe(204);
  rmSync(path, { recursive: true });
  // A disk that takes nothing.
  writeFileSync(path, '');
  expect(await Promise.all(['b', 'c'].map(send))).toEqual([503, 503]);
  expect(inbox.size).toBe(1);
  rmSync(path);
  expect(await Promise.all(['b', 'c'].map(send))).toEqual([204, 204]);
  expect(receiver.refusals()).toEqual({ unavailable: 2 });
});
