import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import type { WebhookEvent } from '../../schema/webhook.ts';
import type { AppCommands } from '../../src/app/commands.ts';
import { connectControl } from '../../src/app/control/connect-control.ts';
import { freePort } from '../queue/redis-server.ts';
import { SUBSCRIPTIONS } from '../support/declared.ts';
import { openHarness } from '../support/harness.ts';
import { type Running, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { openSandboxHere } from '../support/sandbox-here.ts';
import type { OpenSandbox } from '../support/sandbox-process.ts';
import { inspectFile } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { rowsOf, withDuckDB } from '../support/warehouse.ts';
import { ask, COLLECTIONS, readCollection } from '../support/wire-reader.ts';

const folder = tempFolder();
const started: Running[] = [];

afterEach(async () => {
  for (const running of started.splice(0).reverse()) await stop(running);
});

async function stop(running: Running) {
  running.kill('SIGTERM');
  return running.end();
}

/** A day so long ago. */
const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

const FAULTS = { lose: '0.4', repeat: '3', shuffle: true, delay: '1', unreadable: '1' } as const;

async function startService(): Promise<OpenSandbox> {
  const service = await openSandboxHere(join(folder, 'service'), { from: ago(20), to: ago(9), deliveryDelay: 0 }, FAULTS);
  onTestFinished(() => service.close());
  return service;
}

/** A data folder with an account for each person. */
async function openData(name: string, { url, people }: OpenSandbox, more: Record<string, string> = {}) {
  const data = join(folder, name);
  const harness = await openHarness(data, url);
  await harness.add(people);
  await harness.close();
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: url, RINGNECK_LOG_LEVEL: 'info', ...more };
  const run = async (...command: string[]) => {
    const ended = await runHere([...command, '--json'], { env });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    return JSON.parse(ended.stdout);
  };
  return { data, env, run };
}

async function control({ control: { url, secret } }: OpenSandbox, path: string, body: object): Promise<WebhookEvent[]> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.status, `${path} ${JSON.stringify(body)} ${answer.ok || (await answer.clone().text())}`).toBe(200);
  const { events = [] } = (await answer.json()) as { events?: WebhookEvent[] };
  return events;
}

/** Some days of everybody, with nights that are changed afterwards. Gives the events that we see raised. */
async function live(sandbox: OpenSandbox): Promise<WebhookEvent[]> {
  const raised: WebhookEvent[] = [];
  const deleted = new Set<string>();
  const act = async (path: string, body: object) => void raised.push(...(await control(sandbox, path, body)));
  for (let day = 0; day < 3; day++) {
    await act('clock', { advance: 86_400 });
    for (const { name: person, token } of sandbox.people) {
      await act('sync', { person });
      await act('nap', { person, minutes: 20 });
      const nights = await readCollection(sandbox.url, COLLECTIONS.sleep!, token, { start_date: ago(17), end_date: ago(11) });
      // One that was deleted a moment ago may still be shown, and whether the ring was worn depends on the day.
      const [first, second] = (nights as { id: string; day: string }[]).filter(({ id }) => !deleted.has(id));
      deleted.add(first!.id);
      await act('edit', { person, kind: 'delete-sleep', day: first!.day, id: first!.id });
      await act('edit', { person, kind: 'edit-bedtime', day: second!.day, id: second!.id, startShift: 900, endShift: -600 });
      // A night without the ring has nothing to be analysed: one of the days after has.
      const later = await readCollection(sandbox.url, COLLECTIONS.sleep!, token, { start_date: ago(13), end_date: ago(9) });
      await act('edit', {
        person,
        kind: 'reanalyse-day',
        day: (later as { id: string; day: string }[]).find(({ id }) => !deleted.has(id))!.day,
      });
    }
  }
  return raised;
}

/** What came, each event once for each of its arrivals. */
const readArrivals = (data: string): Promise<string[]> =>
  withDuckDB(join(data, 'warehouse.duckdb'), async connection => {
    const rows = await rowsOf(connection, 'SELECT event_type, data_type, object_id FROM sync.events');
    return (rows as Record<string, string>[]).map(({ event_type, data_type, object_id }) => `${event_type} ${data_type} ${object_id}`);
  });

test('events are lost, repeated, late, shuffled, and come before their documents: after one sweep the tables are those of a plain backfill', async () => {
  const sandbox = await startService();
  const port = await freePort();
  const followed = await openData('followed', sandbox, {
    RINGNECK_PORT: String(port),
    RINGNECK_CALLBACK_URL: `http://127.0.0.1:${port}/webhook`,
    RINGNECK_CLIENT_ID: sandbox.client.id,
    RINGNECK_CLIENT_SECRET: sandbox.client.secret,
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
  });
  await followed.run('backfill', '--last', '30');
  const up = startRingneck(['up'], { env: followed.env });
  started.push(up);
  await up.said('"msg":"up"');
  const upControl = (await connectControl<AppCommands>(followed.data))!;
  const webhooks = async () => (await upControl.call('status', {})).webhooks!;
  await until('every subscription is active', async () => (await webhooks()).active === SUBSCRIPTIONS);

  const raised = await live(sandbox);
  // Those that are taken up again later, or looked at once more, must change nothing.
  let settled = 0;
  let still = 0;
  await until('most events are applied', async () => {
    const { untold_events: untold } = (await ask(sandbox.control.url, '', sandbox.control.secret)).body;
    const { events_24h: outcomes } = await webhooks();
    const before = settled;
    settled = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
    still = untold === 0 && settled === before ? still + 1 : 0;
    return still >= 8 && (outcomes.stored ?? 0) > 30 && (outcomes.removed ?? 0) > 0;
  });
  // From here on everything can be read.
  await control(sandbox, 'faults', { unreadable: null });
  const swept = await followed.run('nightly', '--days', '30');
  expect(swept).toMatchObject({ state: 'complete', failures: [] });
  expect(swept.documents, 'the sweep brings what was lost').toBeGreaterThan(0);
  expect((await stop(up)).code).toBe(0);

  const plain = await openData('plain', sandbox);
  await plain.run('backfill', '--last', '30');
  const [told, read] = [await inspectFile(followed.data), await inspectFile(plain.data)];
  expect(told.broken).toEqual([]);
  expect(told.hashes).toEqual(read.hashes);
  expect(read.rows).toBeGreaterThan(20_000);
  const arrivals = await readArrivals(followed.data);
  const lost = raised.filter(event => !arrivals.includes(`${event.event_type} ${event.data_type} ${event.object_id}`));
  expect(lost.length, 'events that never came').toBeGreaterThan(0);
  expect(arrivals.length).toBeGreaterThan(2 * new Set(arrivals).size);
}, 300_000);
