import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startCallback } from '../service/webhooks/callback.ts';
import { makeFolder } from '../service/webhooks/webhook-service.ts';
import { startRingneck } from '../support/ringneck.ts';
import { until } from '../support/until.ts';

/** How long after a sync was answered the service is killed: before, while and after it delivers. */
const KILLS_MS = [0, 2, 5, 9, 14, 25, 40, 70, 120, 0];
const DATA_TYPES = ['daily_activity', 'daily_readiness', 'daily_sleep', 'sleep'];

interface Announced {
  event_type: string;
  data_type: string;
  object_id: string;
  event_time: string;
}

test('killed while it delivers, again and again, a service delivers each event that a sync was answered with, usual rate limits', async () => {
  const callback = await startCallback();
  const env = { RINGNECK_DATA: makeFolder(), RINGNECK_LOG_LEVEL: 'warn' };
  const people = ['--people', '1', '--from', '2025-01-01', '--to', '2025-01-10'];
  const quick = ['--delivery-delay', '0', '--time-scale', '100', '--allow-callback', '127.0.0.0/8'];
  const start = async () => {
    const service = startRingneck(['service', ...people, '--port', '0', '--json', ...quick], { env });
    const { url, client, control } = JSON.parse(await service.line());
    return { service, url, client, control };
  };
  const ask = async (control: { url: string; secret: string }, path: string, body: object): Promise<{ events: Announced[] }> => {
    const headers = { authorization: `Bearer ${control.secret}`, 'content-type': 'application/json' };
    const answer = await fetch(`${control.url}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    expect(answer.status).toBe(200);
    return (await answer.json()) as { events: Announced[] };
  };

  let running = await start();
  const { control, client } = running;
  const credentials = { 'x-client-id': client.id, 'x-client-secret': client.secret, 'content-type': 'application/json' };
  for (const data_type of DATA_TYPES) {
    for (const event_type of ['create', 'update', 'delete']) {
      const body = JSON.stringify({ callback_url: callback.url, verification_token: 'word', event_type, data_type });
      expect((await fetch(`${running.url}/v2/webhook/subscription`, { method: 'POST', headers: credentials, body })).status).toBe(201);
    }
  }
  const announced: Announced[] = [];
  for (const ms of KILLS_MS) {
    // A ring that has not synced for a while has something to tell of.
    await ask({ ...control, url: running.control.url }, 'clock', { advance: 36_000 });
    const { events } = await ask({ ...control, url: running.control.url }, 'sync', { person: 'ada' });
    announced.push(...events.filter(({ data_type }) => DATA_TYPES.includes(data_type)));
    if (ms) await sleep(ms);
    running.service.kill('SIGKILL');
    await running.service.end();
    running = await start();
  }
  expect(announced.length).toBeGreaterThan(10);
  const keyOf = ({ event_type, data_type, object_id, event_time }: Announced) => `${event_type} ${data_type} ${object_id} ${event_time}`;
  const missing = () => {
    const delivered = new Set((callback.events() as Announced[]).map(keyOf));
    return announced.filter(event => !delivered.has(keyOf(event)));
  };
  await until('all are delivered', () => missing().length === 0, 20_000).catch(() => undefined);
  expect(missing()).toEqual([]);
}, 180_000);
