import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import { startCallback } from '../service/webhooks/callback.ts';
import { makeFolder } from '../service/webhooks/webhook-service.ts';
import { openSandboxHere } from '../support/sandbox-here.ts';
import { until } from '../support/until.ts';

/** A service of one person whose activities are subscribed to by a callback. */
async function startSubscribed(...options: [Parameters<typeof openSandboxHere>[1]?, Parameters<typeof openSandboxHere>[2]?]) {
  const callback = await startCallback();
  const data = makeFolder();
  const [given, faults] = options;
  const service = await openSandboxHere(data, { people: 1, to: '2025-01-10', ...given }, faults);
  const { url, client, control, people } = service;
  const post = (place: string, headers: Record<string, string>, body: object) =>
    fetch(place, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const created = await post(
    `${url}/v2/webhook/subscription`,
    { 'x-client-id': client.id, 'x-client-secret': client.secret },
    { callback_url: callback.url, verification_token: 'word', event_type: 'create', data_type: 'sleep' },
  );
  expect(created.status).toBe(201);
  return {
    callback,
    folder: join(data, 'service'),
    client,
    /** A nap of ada, which is a new sleep; gives its id. */
    async nap(): Promise<string> {
      const answer = await post(`${control.url}/nap`, { authorization: `Bearer ${control.secret}` }, { person: 'ada' });
      return ((await answer.json()) as { id: string }).id;
    },
    async read(id: string): Promise<number> {
      const headers = { authorization: `Bearer ${people[0]!.token}` };
      return (await fetch(`${url}/v2/usercollection/sleep/${id}`, { headers })).status;
    },
    stop: () => service.close(),
  };
}

test('an event leaves 30 seconds after its change unless told otherwise (section 8)', async () => {
  const [usual, told] = await Promise.all([startSubscribed(), startSubscribed({ deliveryDelay: 1 })]);
  const napped = Date.now();
  const id = await usual.nap();
  await usual.stop();
  expect(usual.callback.events()).toEqual([]);
  const queues = await openQueues({ url: undefined, folder: join(usual.folder, 'queue'), prefix: 'service', log: silentLog });
  onTestFinished(() => queues.close({ graceMs: 0 }));
  const delayed = await queues.queue(`deliver-${usual.client.id}`).getDelayed();
  const job = delayed.find(({ data }) => (data as { event: { object_id: string } }).event.object_id === id)!;
  const { dueAt } = job.data as { dueAt: number };
  // What the nap itself took, on a slow machine.
  expect([dueAt - napped >= 30_000, dueAt - napped < 45_000]).toEqual([true, true]);
  expect(Math.abs(job.timestamp + job.opts.delay! - dueAt)).toBeLessThanOrEqual(1);

  const before = Date.now();
  const other = await told.nap();
  const arrived = () => told.callback.received.find(({ body }) => body.includes(other));
  await until('it has arrived', () => arrived() !== undefined);
  expect(arrived()!.at - before).toBeGreaterThanOrEqual(990);
  await told.stop();
});

test('with the fault unreadable a document can be read only so long after its event has left', async () => {
  const { callback, nap, read, stop } = await startSubscribed({ deliveryDelay: 1 }, { unreadable: '2' });
  const before = Date.now();
  const id = await nap();
  await until('it is told of', () => callback.received.some(({ body }) => body.includes(id)));
  expect(await read(id)).toBe(404);
  await until('it can be read', async () => (await read(id)) === 200);
  expect(Date.now() - before).toBeGreaterThanOrEqual(3_000);
  await stop();
});
