import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, withDuckDB } from '../support/warehouse.ts';
import { runHere } from './run-here.ts';

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
    if (args.includes('--json')) expect(JSON.parse(stdout)).toMatchObject([{ service_user_id: BAD, reason: `forbidden: ${BAD}` }]);
  }
});
