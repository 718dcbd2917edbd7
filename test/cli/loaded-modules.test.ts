import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startFaultService } from '../support/fault-service.ts';
import { ringneck, startRingneck } from '../support/ringneck.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placeWarehouse } from '../support/warehouse.ts';

const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  dependencies: Record<string, string>;
};

/** Of which of our dependencies a command loads something: Node's coverage lists every script of a process. */
async function packagesLoadedBy(args: readonly string[], data: string, more: Record<string, string> = {}): Promise<string[]> {
  const folder = tempFolder();
  const command = startRingneck(args, { env: { RINGNECK_DATA: data, NODE_V8_COVERAGE: folder, ...more } });
  await command.end();
  const [file] = readdirSync(folder).filter(name => name.startsWith(`coverage-${command.process.pid}-`));
  const { result } = JSON.parse(readFileSync(join(folder, file!), 'utf8')) as { result: { url: string }[] };
  const packages = new Set(
    result.map(({ url }) => {
      const [, asItIs, bundled] = /.*\/(?:node_modules\/((?:@[^/]+\/)?[^/]+)|bundle\/([^/]+)-[^/]{8}\.js$)/.exec(url) ?? [];
      return asItIs ?? bundled?.replace(/^(@[^_]+)_/, '$1/');
    }),
  );
  return Object.keys(dependencies).filter(name => packages.has(name));
}

test.each([['--help'], ['--version'], ['bakfill']])('%s loads what reads a command line and no other package', async argument => {
  expect(await packagesLoadedBy([argument], tempFolder())).toEqual(['commander', 'ipaddr.js']);
});

test('a command that opens the warehouse loads no queue, no client and no server', async () => {
  const data = join(tempFolder(), 'data');
  placeWarehouse(join(data, 'warehouse.duckdb'));
  const opened = ['@duckdb/node-api', '@duckdb/node-bindings', 'commander', 'ipaddr.js', 'pino', 'zod'];
  expect(await packagesLoadedBy(['account', 'list'], data)).toEqual(opened);
  expect(await packagesLoadedBy(['status', '--json'], data)).toEqual(opened);
  expect(await packagesLoadedBy(['coverage'], data)).toEqual(opened);
});

test('a query’s own process is the one that loads DuckDB', async () => {
  const data = join(tempFolder(), 'data');
  placeWarehouse(join(data, 'warehouse.duckdb'));
  expect(await packagesLoadedBy(['sql', 'SELECT 1'], data)).toEqual(['commander', 'ipaddr.js', 'pino']);
});

test('a command that reads by itself loads the client, and no queue', async () => {
  // A route that is not there is asked again after seconds.
  const service = await startFaultService({
    '/v2/usercollection/personal_info': { json: { id: 'ada' } },
    '/v2/usercollection/*': { json: { data: [], next_token: null } },
  });
  onTestFinished(() => service.close());
  const data = join(tempFolder(), 'data');
  const env = { RINGNECK_SERVICE_URL: service.url };
  await ringneck(['account', 'add', 'ada'], { env: { ...env, RINGNECK_DATA: data }, input: 'token' });
  const loaded = await packagesLoadedBy(['backfill', '--last', '3'], data, env);
  expect(loaded).toContain('undici');
  expect(loaded.filter(name => ['bullmq', 'ioredis', '@electric-sql/pglite'].includes(name))).toEqual([]);
});
