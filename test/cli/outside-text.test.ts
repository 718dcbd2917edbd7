import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
const BAD = '\u001b[2J\u009b\u061c\u200e\u202e\u2066\u2028';
const DANGEROUS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

test('no command passes on what could steer a terminal, and --json keeps the value', async () => {
  const data = join(folder, 'data');
  const path = join(data, 'warehouse.duckdb');
  await (await openWarehouse(path)).close();
  await withDuckDB(path, async connection => {
    await connection.run(`INSERT INTO sync.accounts VALUES ('ada', '${BAD}', 'parked', 'forbidden: ${BAD}', now()::TIMESTAMP)`);
    await connection.run(`INSERT INTO sync.subscriptions (event_type, data_type, id, callback_url, state, reason, since)
      VALUES ('create', 'sleep', 'x', 'https://${BAD}', 'refused', '${BAD}', now()::TIMESTAMP)`);
  });
  const env = { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'info' };
  for (const args of [
    ['account', 'list'],
    ['status'],
    ['coverage'],
    ['sql', 'FROM sync.accounts'],
    ['sql', '--format', 'json', 'FROM sync.accounts'],
    ['sql', '--format', 'ndjson', 'FROM sync.subscriptions'],
    ['account', 'list', '--json'],
  ]) {
    const { stdout, stderr } = await runHere(args, { env });
    expect(`${stdout}${stderr}`.replaceAll('\n', ''), args.join(' ')).not.toMatch(DANGEROUS);
    const cure =
      'give it a new token: ringneck account add ada, or ringneck account login ada; or, if it was fixed there: ringneck account resume ada';
    if (args.includes('--json')) expect(JSON.parse(stdout)).toMatchObject([{ service_user_id: BAD, reason: `forbidden: ${BAD}: ${cure}` }]);
  }
});

test('what the service says of a person, an event or a failure begins no line of its own', async () => {
  const data = join(folder, 'lines');
  const path = join(data, 'warehouse.duckdb');
  await (await openWarehouse(path)).close();
  await withDuckDB(path, async connection => {
    const forged = "'x' || chr(13) || chr(10) || 'FORGED: active'";
    await connection.run(`INSERT INTO sync.accounts VALUES ('ada', ${forged}, 'parked', ${forged}, now()::TIMESTAMP)`);
    await connection.run(`INSERT INTO sync.events (received_at, service_user_id, event_type, data_type, outcome)
      VALUES (now()::TIMESTAMP, 'u2' || ${forged}, 'create', 'sleep', 'unknown_user')`);
    await connection.run(`INSERT INTO sync.subscriptions (event_type, data_type, id, callback_url, state, reason, since)
      VALUES ('create', 'sleep', 'x', 'https://example.org', 'refused', ${forged}, now()::TIMESTAMP)`);
  });
  const env = {
    RINGNECK_DATA: data,
    RINGNECK_CALLBACK_URL: 'https://example.org/webhook',
    RINGNECK_CLIENT_ID: 'client',
    RINGNECK_CLIENT_SECRET: 'secret-of-the-client',
    RINGNECK_VERIFICATION_TOKEN: 'verification-token',
  };
  for (const args of [['account', 'list'], ['status'], ['coverage']]) {
    const { stdout, stderr } = await runHere(args, { env });
    const said = `${stdout}${stderr}`;
    expect(said, args.join(' ')).not.toMatch(/^\s*FORGED|\r/m);
    expect(said, args.join(' ')).toContain('x\\r\\nFORGED: active');
    if (args[0] === 'status')
      expect(said).toContain('  1 of u2x\\r\\nFORGED: active, whom no account is known to be: ringneck account map NAME');
  }
});
