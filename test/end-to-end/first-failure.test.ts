import { EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { type Script, startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const range = { from: '2025-03-05', to: '2025-03-06' };

let sandbox: Sandbox;
let harnesses = 0;

beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, from: '2025-03-04', to: '2025-03-07' });
});
afterAll(() => sandbox.close());

const open = async (url: string, options: Parameters<typeof openHarness>[2] = {}) => {
  const harness = await openHarness(join(folder, `h${++harnesses}`), url, options);
  await harness.add(sandbox.people);
  return harness;
};

/** A server that does this with each connection. */
async function serve(onConnection: Parameters<typeof createServer>[1]): Promise<{ url: string; server: Server }> {
  const server = createServer(onConnection as never);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, server };
}

async function findFreePort(): Promise<number> {
  const { url, server } = await serve(() => {});
  await new Promise(resolve => server.close(resolve));
  return Number(new URL(url).port);
}

test('where nobody listens a run of several accounts ends with one sentence, and goes on once somebody does', async () => {
  const port = await findFreePort();
  const harness = await open(`http://127.0.0.1:${port}`);
  await expect(harness.backfill(range)).rejects.toMatchObject({
    exitCode: 1,
    message: `the service cannot be reached: nobody listens at http://127.0.0.1:${port} (ECONNREFUSED): is it running, and is the port of RINGNECK_SERVICE_URL right?`,
  });
  expect(await harness.read('SELECT DISTINCT outcome FROM sync.windows')).toEqual([[null]]);
  expect(await harness.read('SELECT state FROM sync.runs')).toEqual([['running']]);
  const { settings } = harness.app;
  await harness.close();
  const again = await openHarness(settings.data, sandbox.url);
  await again.add(sandbox.people);
  expect(await again.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
  expect(await again.read('SELECT count(*) FROM sync.runs')).toEqual([[1]]);
});

test('what keeps running takes it up again by itself', async () => {
  const port = await findFreePort();
  const harness = await open(`http://127.0.0.1:${port}`);
  await expect(harness.backfill(range)).rejects.toThrow('ECONNREFUSED');
  const faults = await startFaultService({}, { upstream: sandbox.url, port });
  onTestFinished(() => faults.close());
  const { runs } = await harness.app.pipeline();
  await runs.takeUp();
  expect(runs.active()).toHaveLength(1);
  expect(await runs.active()[0]!.done).toMatchObject({ state: 'complete' });
});

test.each<[string, string, (socket: import('node:net').Socket) => void, string]>([
  [
    'plain HTTP where TLS is spoken',
    'http',
    socket => socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 70])),
    'is https:// meant in RINGNECK_SERVICE_URL?',
  ],
  [
    'plain HTTP where nginx speaks TLS',
    'http',
    socket =>
      socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 54\r\n\r\n<html>The plain HTTP request was sent to HTTPS port</html>'),
    'is https:// meant in RINGNECK_SERVICE_URL?',
  ],
  [
    'plain HTTP that is redirected',
    'http',
    socket => socket.end('HTTP/1.1 301 Moved\r\nlocation: https://127.0.0.1/\r\ncontent-length: 0\r\n\r\n'),
    'is https:// meant in RINGNECK_SERVICE_URL?',
  ],
  [
    'TLS where plain HTTP is spoken',
    'https',
    socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    'is http:// meant in RINGNECK_SERVICE_URL?',
  ],
])('%s is said at once, with its cure', async (_, protocol, answer, cure) => {
  const { url } = await serve((socket: import('node:net').Socket) => {
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  const harness = await open(url.replace('http', protocol));
  await expect(harness.backfill(range)).rejects.toThrow(cure);
});

/** A harness whose accounts nobody has asked for yet. */
async function openUnasked(url: string, options: Parameters<typeof openHarness>[2]) {
  const harness = await openHarness(join(folder, `h${++harnesses}`), url, options);
  for (const { name, token } of sandbox.people) {
    harness.app.secrets.put(name, token);
    await harness.app.warehouse.record([
      { table: 'sync.accounts', key: { user_id: name }, row: { state: 'active', since: harness.app.warehouse.clock.next() } },
    ]);
  }
  return harness;
}

test('a service that takes connections and says nothing ends the run when its first requests have had their time', async () => {
  const { url } = await serve((socket: import('node:net').Socket) => void socket.on('error', () => {}));
  const harness = await openUnasked(url, { unreachedMs: 500, client: { deadlineMs: 1_000 } });
  const began = performance.now();
  await expect(harness.backfill(range)).rejects.toThrow('gives no answer (ETIMEDOUT)');
  expect(performance.now() - began).toBeLessThan(10_000);
});

test('a run that was taken up and meets a service that is away is told in the log, once', async () => {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const first = await openUnasked(url, { unreachedMs: 300 });
  await expect(first.backfill(range)).rejects.toThrow('the service cannot be reached');
  await first.close();
  const lines: string[] = [];
  const log = createLog({ level: 'warn', pretty: false, stream: { write: text => void lines.push(JSON.parse(text).msg) } });
  const harness = await openHarness(join(folder, `h${harnesses}`), url, { unreachedMs: 300, log });
  const { runs } = await harness.app.pipeline();
  await until('the run is broken off', () => !runs.active().length);
  await runs.takeUp();
  await until('the run is broken off again', () => !runs.active().length);
  expect(lines.filter(line => line.includes('run'))).toEqual(['backfill run is broken off, and goes on when the service answers']);
});

test('a service whose first answers are slow is read', async () => {
  const faults = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  const harness = await openUnasked(faults.url, { unreachedMs: 500 });
  const slow = sleep(1_500);
  faults.on('/v2/usercollection/*', async () => {
    await slow;
    return undefined;
  });
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
});

test('a service that is slow after it refused connections is read', async () => {
  const port = await findFreePort();
  const refused = new EventEmitter();
  const listens = once(refused, 'and listens now');
  const wait = async () => {
    refused.emit('once');
    await listens;
  };
  const harness = await openUnasked(`http://127.0.0.1:${port}`, { unreachedMs: 500, client: { sleep: wait } });
  const isRefused = once(refused, 'once');
  const run = harness.backfill(range);
  await isRefused;
  const faults = await startFaultService({}, { upstream: sandbox.url, port });
  onTestFinished(() => faults.close());
  const slow = sleep(1_000);
  faults.on('/v2/usercollection/*', async () => {
    await slow;
    return undefined;
  });
  refused.emit('and listens now');
  expect(await run).toMatchObject({ state: 'complete', failures: [] });
});

test('where a connection never comes about that is said soon, asked for a range of days and for the last days', async () => {
  // It takes the connection, and never answers the first word of TLS.
  const { url } = await serve((socket: import('node:net').Socket) => void socket.on('error', () => {}));
  const [ofDays, ofLast] = await Promise.all(
    [1, 2].map(() => openUnasked(url.replace('http', 'https'), { unreachedMs: 500, client: { connectMs: 300 } })),
  );
  const began = performance.now();
  const runs = [ofDays!.backfill(range), ofLast!.nightly(2)];
  await Promise.all(runs.map(run => expect(run).rejects.toThrow('gives no answer (UND_ERR_CONNECT_TIMEOUT)')));
  expect(performance.now() - began).toBeLessThan(10_000);
}, 60_000);

test('a service that has answered in a run is one that can be reached: what fails later is told window by window', async () => {
  const away: Script = (_, nth) => (nth > 1 ? { fault: 'reset' } : undefined);
  const faults = await startFaultService({ '/v2/usercollection/sleep': away }, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  const harness = await open(faults.url);
  faults.on('/v2/usercollection/sleep', { fault: 'reset' });
  const report = await harness.backfill(range);
  expect(report).toMatchObject({ state: 'failed' });
  expect(new Set(report.failures.map(({ collection }) => collection))).toEqual(new Set(['sleep']));
});

test('where one route alone is broken, a run that asks for nothing else fails as others do: the service is there', async () => {
  const service = await startFaultService({ '/v2/usercollection/daily_stress': { fault: 'reset' } }, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const harness = await open(service.url);
  expect(await harness.backfill(range)).toMatchObject({
    state: 'failed',
    failures: [{ collection: 'daily_stress' }, { collection: 'daily_stress' }],
  });
  const { settings } = harness.app;
  await harness.close();
  // Another process, which has had no answer yet.
  const again = await openHarness(settings.data, service.url);
  expect(await again.backfill({ ...range, collections: ['daily_stress'], refresh: true })).toMatchObject({
    state: 'failed',
    windows: { planned: 2, failed: 2 },
  });
  expect(await again.read(`SELECT DISTINCT state FROM sync.runs`)).toEqual([['failed']]);
  expect(await again.commands.status({})).toMatchObject({ service_unreachable: null });
});

test('who stops a command while the service’s clock is asked waits for no answer', async () => {
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const harness = await open(service.url);
  service.on('/v2/usercollection/daily_readiness', { fault: 'hang' });
  const before = service.asked.length;
  const stopped = new AbortController();
  const backfill = harness.backfill({ last: 3 }, stopped.signal);
  await until('the clock is asked', () => service.asked.length > before);
  stopped.abort(new Error('stopped by its user'));
  await expect(backfill).rejects.toThrow('stopped by its user');
});
