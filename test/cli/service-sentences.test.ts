import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const SENTENCE = 'Ada Example is behind with her payment.';

/** A service that answers everything alike. */
async function serve(answer: { status: number; allowed?: RegExp }): Promise<string> {
  const server = createServer((request, response) => {
    const fine = answer.allowed?.test(request.url ?? '');
    response.writeHead(fine ? 200 : answer.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(fine ? { data: [], next_token: null } : { detail: SENTENCE }));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** All that the ledger holds, as one text. */
async function ledgerOf(read: (sql: string) => Promise<unknown[][]>): Promise<string> {
  const tables = await read(`SELECT table_name FROM information_schema.tables WHERE table_schema = 'sync' AND table_type = 'BASE TABLE'`);
  const rows = [];
  for (const [table] of tables) rows.push(...(await read(`SELECT t::VARCHAR FROM sync."${table}" t`)));
  return JSON.stringify(rows);
}

test('what the service says is shown to who asked, and neither stored, logged nor told to RINGNECK_ON_FAILURE', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'trace', pretty: false, stream: { write: line => void lines.push(line) } });
  const url = await serve({ status: 400, allowed: /daily_readiness|daily_stress|sleep|session|personal_info/ });
  const harness = await openHarness(join(folder, 'one'), url, { log });
  const told: unknown[] = [];
  Object.assign(harness.app, { onFailure: Object.assign((failure: unknown) => told.push(failure), { close: async () => {} }) });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  const report = await harness.backfill({ from: '2025-01-01', to: '2025-01-02' });
  const refused = report.failures.find(({ collection }) => collection === 'daily_activity');
  expect(refused).toMatchObject({ message: 'GET /v2/usercollection/daily_activity: answered 400', detail: SENTENCE });
  expect(JSON.stringify(report.failures.map(({ detail, ...rest }) => rest))).not.toContain('Ada Example');
  expect(told.length).toBeGreaterThan(0);
  expect(JSON.stringify(told)).not.toContain('Ada Example');
  expect(await ledgerOf(harness.read)).toContain('answered 400');
  expect(await ledgerOf(harness.read)).not.toContain('Ada Example');
  expect(lines.join('')).not.toContain('Ada Example');
});

test('a refused token is parked by our words, and its giver is shown the service’s', async () => {
  const url = await serve({ status: 401 });
  const env = { RINGNECK_DATA: join(folder, 'two'), RINGNECK_SERVICE_URL: url, RINGNECK_LOG_LEVEL: 'warn' };
  const added = await runHere(['account', 'add', 'ada'], { env, input: 'token-of-ada' });
  expect(added.code).toBe(1);
  expect(added.stderr).toContain(SENTENCE);
  expect(added.stdout).toMatch(
    /^ada parked: unauthorized: GET \/v2\/usercollection\/\w+: answered 401: give it a new token: ringneck account add ada, or ringneck account login ada; /,
  );
  expect((await runHere(['status', '--json'], { env })).stdout).not.toContain('Ada Example');
  expect((await runHere(['doctor'], { env })).stdout).not.toContain('Ada Example');
  await runHere(['account', 'resume', 'ada'], { env });
  expect((await runHere(['doctor'], { env })).stdout).toContain(SENTENCE);
});
