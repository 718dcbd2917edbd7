import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../queue/redis-server.ts';
import { signed } from '../receiver/signed.ts';
import { hasChromium, openChromium } from '../support/chromium.ts';
import { type Running, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placeWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();
const SECRET = 'a-client-secret';

/** A real `up` with its console, whose service can lose a night. */
async function startAll() {
  const gone = new Set<string>();
  const sandbox = await startSandbox({
    ...{ count: 1, from: '2025-01-01', to: '2025-01-10' },
    wrap: source => ({
      ...source,
      list: async (...asked) => (await source.list(...asked)).filter(({ id }) => !gone.has(String(id))),
      find: async (user, resource, id) => (gone.has(id) ? undefined : source.find(user, resource, id)),
    }),
  });
  onTestFinished(() => sandbox.close());
  const data = join(folder, 'data');
  placeWarehouse(join(data, 'warehouse.duckdb'));
  const [port, consolePort] = [await freePort(), await freePort()];
  const env = {
    ...{ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: String(port), RINGNECK_CONSOLE_PORT: String(consolePort) },
    ...{ RINGNECK_CALLBACK_URL: `http://127.0.0.1:${port}/webhook`, RINGNECK_CLIENT_ID: 'id', RINGNECK_CLIENT_SECRET: SECRET },
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-the-test',
    RINGNECK_LOG_LEVEL: 'debug',
  };
  const up = async (): Promise<Running> => {
    const running = startRingneck(['up'], { env });
    await running.said('"msg":"up"');
    return running;
  };
  const person = sandbox.people[0]!;
  const tell = (event: object) => {
    const { timestamp, signature, body } = signed(
      JSON.stringify({ user_id: person.userId, ...event }),
      String(Math.floor(Date.now() / 1000)),
      SECRET,
    );
    const headers = { 'content-type': 'application/json', 'x-service-timestamp': timestamp, 'x-service-signature': signature };
    return fetch(env.RINGNECK_CALLBACK_URL, { method: 'POST', headers, body });
  };
  return { sandbox, person, gone, env, up, tell, url: `http://127.0.0.1:${consolePort}` };
}

test.skipIf(!hasChromium)('what up stores and deletes is seen in all tabs without a reload; a restart is said', async () => {
  const { sandbox, person, gone, env, up: start, tell, url } = await startAll();
  const up = await start();
  const cli = (args: string[], input = '') => runHere(args, { env, input });
  expect((await cli(['account', 'add', 'ada'], person.token)).code).toBe(0);
  expect((await cli(['backfill', '--from', '2025-01-01', '--to', '2025-01-10', '--json'])).code).toBe(0);
  const context = await (await openChromium()).newContext({ viewport: { width: 1440, height: 900 } });
  const streams: string[] = [];
  context.on('request', request => request.url().endsWith('/api/stream') && streams.push(request.url()));
  const complaints: string[] = [];
  const open = async (path: string): Promise<Page> => {
    const page = await context.newPage();
    page.on('pageerror', error => complaints.push(error.message));
    await page.goto(path);
    return page;
  };
  const one = await open((await cli(['console', '--no-open'])).stdout.trim());
  await one.waitForURL(`${url}/`);
  const day = '2025-01-08';
  await one.goto(`${url}/people/ada?day=${day}`);
  const two = await open(`${url}/people/ada?day=${day}`);
  for (const page of [one, two]) await page.locator('figure.night svg').waitFor({ timeout: 30_000 });
  // The first page has left its stream at its reload; the two of now share one.
  await one.waitForTimeout(500);
  const before = streams.length;
  expect(before).toBeLessThanOrEqual(2);

  const night = sandbox.source.documents(person.userId, 'sleep', day).find(({ type }) => type === 'long_sleep')!;
  // A route that has answered is believed at once, also when it says that a document is gone.
  const [other] = sandbox.source.documents(person.userId, 'sleep', '2025-01-07');
  await tell({ event_type: 'update', data_type: 'sleep', object_id: other!.id, event_time: '2025-01-08T11:00:00+00:00' });
  await up.said('"outcome":"unchanged"');
  for (const document of sandbox.source.documents(person.userId, 'sleep', day)) gone.add(String(document.id));
  for (const id of gone)
    expect((await tell({ event_type: 'delete', data_type: 'sleep', object_id: id, event_time: '2025-01-08T12:00:00+00:00' })).ok).toBe(
      true,
    );
  for (const page of [one, two]) await page.getByText('No night.').first().waitFor({ timeout: 40_000 });
  gone.clear();
  expect((await tell({ event_type: 'create', data_type: 'sleep', object_id: night.id, event_time: '2025-01-08T13:00:00+00:00' })).ok).toBe(
    true,
  );
  for (const page of [one, two]) await page.locator('figure.night svg').waitFor({ timeout: 40_000 });

  up.kill('SIGTERM');
  await up.end();
  for (const page of [one, two]) await page.getByText('Connection lost, trying again.').waitFor({ timeout: 40_000 });
  // What was there stays.
  expect(await one.locator('figure.night svg').isVisible()).toBe(true);
  await start();
  for (const page of [one, two]) await page.getByText('Connection lost, trying again.').waitFor({ state: 'detached', timeout: 30_000 });
  await expect.poll(() => two.locator('[role=alert]').count()).toBe(0);
  await two.keyboard.press('ArrowLeft');
  await expect.poll(() => two.locator('h1').textContent()).toBe('ada · Tuesday 7 January');
  expect(complaints).toEqual([]);
});
