import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { RecentEvents } from '../../src/app/recent-events.ts';
import { silentLog } from '../../src/base/log.ts';
import { Live } from '../../src/console/server/live.ts';
import { freePort } from '../queue/redis-server.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse } from '../support/warehouse.ts';
import { placeCoverage } from './coverage-warehouse.ts';

const folder = tempFolder();

/** Follows as a browser does; `said` grows. */
async function follow(url: string, headers: Record<string, string>) {
  const asked = request(`${url}/api/stream`, { headers }).end();
  onTestFinished(() => void asked.destroy());
  const [response] = await once(asked, 'response');
  const stream = { status: response.statusCode, type: response.headers['content-type'], said: '', hasEnded: false };
  response.setEncoding('utf8');
  response.on('data', (text: string) => {
    stream.said += text;
  });
  response.on('close', () => {
    stream.hasEnded = true;
  });
  return stream;
}

async function publish(data: string): Promise<void> {
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
}

test('who follows is told of each snapshot, and what was missed when they come again', async () => {
  const data = join(folder, 'snapshot');
  await placeCoverage(data);
  const served = await openConsoleHere(data);
  const { cookie } = await served.enter({ role: 'reader' });
  const first = await follow(served.url, { cookie });
  expect([first.status, first.type]).toEqual([200, 'text/event-stream; charset=utf-8']);
  await expect.poll(() => first.said).toBe('retry: 2000\n\n');
  await publish(data);
  await expect.poll(() => first.said, { timeout: 10_000 }).toMatch(/id: \w+-1\nevent: snapshot\ndata: \{\}\n\n$/);
  const [, id = ''] = /id: (\S+)/.exec(first.said) ?? [];
  await publish(data);
  await expect.poll(() => first.said, { timeout: 10_000 }).toMatch(/id: \w+-2\n/);
  const again = await follow(served.url, { cookie, 'last-event-id': id });
  await expect.poll(() => again.said).toMatch(/^retry: 2000\n\nid: \w+-2\nevent: snapshot\ndata: \{\}\n\n$/);
  // Of another process nobody knows what was missed: all is asked for anew.
  const stranger = await follow(served.url, { cookie, 'last-event-id': 'another-7' });
  await expect.poll(() => stranger.said).toContain('event: snapshot');
});

test('a service that cannot be reached is said, and who follows is told to ask', async () => {
  const data = join(folder, 'unreachable');
  const harness = await openHarness(data, `http://127.0.0.1:${await freePort()}`);
  const served = await openConsoleHere(data, { commands: harness.commands });
  const reader = await served.enter({ role: 'reader' });
  expect((await reader.ask('GET session')).body.freshness).toBe('followed');
  const stream = await follow(served.url, { cookie: reader.cookie });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  expect((await reader.ask('GET session')).body.freshness).toBe('unreachable');
  await expect.poll(() => stream.said, { timeout: 15_000 }).toContain('event: account');
});

test('a session follows ten times at most, and keeps nobody else from it', async () => {
  const served = await openConsoleHere(join(folder, 'many'));
  const [one, other] = [await served.enter({ role: 'reader' }), await served.enter({ role: 'reader' })];
  for (let count = 0; count < 10; count++) expect((await follow(served.url, { cookie: one.cookie })).status).toBe(200);
  expect((await follow(served.url, { cookie: one.cookie })).status).toBe(503);
  expect((await follow(served.url, { cookie: other.cookie })).status).toBe(200);
});

test('who asks for the stream by HEAD is answered, and takes no place', async () => {
  const served = await openConsoleHere(join(folder, 'head'));
  const { cookie } = await served.enter({ role: 'reader' });
  for (let count = 0; count < 10; count++) {
    const asked = request(`${served.url}/api/stream`, { method: 'HEAD', headers: { cookie } }).end();
    onTestFinished(() => void asked.destroy());
    const [response] = await once(asked, 'response');
    await once(response.resume(), 'end');
    expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
  }
  expect((await follow(served.url, { cookie })).status).toBe(200);
});

test('whose session ends as something is told is let go, and nothing but that happens', async () => {
  const responses: ServerResponse[] = [];
  const server = createServer((_request, raw) => {
    raw.writeHead(200).flushHeaders();
    responses.push(raw);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [over, unreadable, other] = [await follow(url, {}), await follow(url, {}), await follow(url, {})];
  let stamp = 'a';
  let isOver = false;
  const unread = () => {
    if (isOver) throw new Error('EMFILE');
    return true;
  };
  const live = new Live({ commands: undefined, log: silentLog }, () => stamp);
  onTestFinished(() => live.close());
  const failures: Error[] = [];
  for (const [at, raw] of responses.entries()) {
    raw.on('error', error => failures.push(error));
    live.follow({ raw, session: String(at), isPerson: false, isOpen: [() => !isOver, unread, () => true][at] ?? unread }, undefined);
  }
  await live.tick();
  isOver = true;
  stamp = 'b';
  await expect.poll(() => other.said, { timeout: 10_000 }).toContain('event: snapshot');
  for (const gone of [over, unreadable]) {
    await expect.poll(() => gone.hasEnded).toBe(true);
    expect([failures, gone.said]).toEqual([[], 'retry: 2000\n\n']);
  }
});

test('nobody follows without a session', async () => {
  const served = await openConsoleHere(join(folder, 'nobody'));
  expect((await follow(served.url, {})).status).toBe(401);
});

test('of events those are told that came since', () => {
  const recent = new RecentEvents();
  const line = (object_id: string) =>
    ({ at: '', event_type: 'create', data_type: 'sleep', user_id: 'ada', object_id, outcome: 'stored', ms: 1 }) as const;
  recent.add(line('s-0'));
  expect(recent.since(undefined)).toEqual({ count: 1, events: [] });
  recent.add(line('s-1'));
  recent.add(line('s-2'));
  expect(recent.since(1)).toEqual({ count: 3, events: [line('s-1'), line('s-2')] });
  expect(recent.since(3)).toEqual({ count: 3, events: [] });
  for (let count = 0; count < 500; count++) recent.add(line('s-3'));
  expect(recent.since(0).events).toHaveLength(100);
});
