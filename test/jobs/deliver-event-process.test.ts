import { expect, onTestFinished, test } from 'vitest';
import { isSignedBy } from '../../src/base/signature.ts';
import { agree, agreeThen, startCallback } from '../service/webhooks/callback.ts';
import { makeFolder } from '../service/webhooks/webhook-service.ts';
import { startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { openSandboxHere } from '../support/sandbox-here.ts';
import { until } from '../support/until.ts';

test('killed while deliveries wait and fail, a service delivers all of them after its restart', async () => {
  const callback = await startCallback(agreeThen(503));
  const env = { RINGNECK_DATA: makeFolder(), RINGNECK_LOG_LEVEL: 'warn' };
  const people = ['--people', '1', '--from', '2025-01-01', '--to', '2025-01-10'];
  const quick = ['--delivery-delay', '1', '--time-scale', '15', '--allow-callback', '127.0.0.0/8'];
  const start = () => startRingneck(['service', ...people, '--port', '0', '--json', ...quick], { env });

  const service = await start();
  const { url, client, control } = JSON.parse(await service.line());
  const credentials = { 'x-client-id': client.id, 'x-client-secret': client.secret, 'content-type': 'application/json' };
  for (const data_type of ['daily_activity', 'daily_readiness', 'sleep']) {
    const body = JSON.stringify({ callback_url: callback.url, verification_token: 'word', event_type: 'create', data_type });
    expect((await fetch(`${url}/v2/webhook/subscription`, { method: 'POST', headers: credentials, body })).status).toBe(201);
  }
  const authorization = `Bearer ${control.secret}`;
  const advance = () =>
    fetch(`${control.url}/clock`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ advance: 86_400 }),
    });
  expect((await advance()).status).toBe(200);
  await until('the first has failed', () => callback.events().length > 0);
  expect((await advance()).status).toBe(200);
  service.kill('SIGKILL');
  await service.end();

  callback.answer = agree;
  const failed = callback.events().length;
  const again = await start();
  expect(JSON.parse(await again.line()).client).toEqual({ id: client.id, secret: null });
  const delivered = () => callback.received.filter(({ method }) => method === 'POST').slice(failed);
  const activities = () =>
    new Set(
      delivered()
        .filter(({ body }) => body.includes('"daily_activity"'))
        .map(({ body }) => body),
    );
  // Each of the two days has one.
  await until('both days', () => activities().size === 2);
  for (const { body, headers } of delivered()) {
    const signature = String(headers['x-service-signature']);
    expect(isSignedBy([client.secret], String(headers['x-service-timestamp']), Buffer.from(body), signature)).toBe(true);
    expect(signature).toMatch(/^[0-9A-F]{64}$/);
  }
  again.kill('SIGTERM');
  expect((await again.end()).code).toBe(0);
});

test('no private address is called unless one is allowed', async () => {
  const mapped = await runHere(['service', '--allow-callback', '::ffff:127.0.0.0/104'], { env: { RINGNECK_DATA: makeFolder() } });
  expect([mapped.code, mapped.stdout]).toEqual([2, '']);
  expect(mapped.stderr).toContain('these hold IPv4 addresses and open nothing: expected the block of IPv4 itself, like 127.0.0.0/8');
  const wrong = await runHere(['service', '--allow-callback', '127.0.0.1'], { env: { RINGNECK_DATA: makeFolder() } });
  expect([wrong.code, wrong.stdout]).toEqual([2, '']);
  expect(wrong.stderr).toContain('expected a block of addresses, like 127.0.0.0/8 or fd00::/8');

  const { url, client, close } = await openSandboxHere(makeFolder(), { people: 1, to: '2025-01-10', allowCallback: [] });
  onTestFinished(close);
  const callback = await startCallback();
  const refused = await fetch(`${url}/v2/webhook/subscription`, {
    method: 'POST',
    headers: { 'x-client-id': client.id, 'x-client-secret': client.secret, 'content-type': 'application/json' },
    body: JSON.stringify({ callback_url: callback.url, verification_token: 'word', event_type: 'create', data_type: 'sleep' }),
  });
  expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('an address that is not public')]);
  expect(callback.connections()).toBe(0);
});
