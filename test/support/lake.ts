import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { resources } from '../../schema/index.ts';
import { findFreePort } from '../../src/app/free-port.ts';
import { type LakeAddress, parseLakeAddress } from '../../src/base/lake-address.ts';
import { initLake, type LakeOptions } from '../../src/warehouse/lake.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { hasPostgres, startPostgres, type TestPostgres } from './postgres.ts';

/** Where DuckDB's extensions lie: tests fetch nothing. */
export const extensions = process.env.DUCKDB_TEST_EXTENSIONS;
const hasExtensions = extensions !== undefined && existsSync(join(extensions, 'ducklake.duckdb_extension'));

/** Whether this machine has what a lake needs. DEMAND_TOOLS=1 turns its absence into a failure instead of skipped tests. */
export const hasLake = hasPostgres && hasExtensions;
/** And an S3 server, which not every machine can build: tests take a folder then. */
export const hasBucket = hasLake && spawnSync('versitygw', ['--version']).status === 0;
if (!hasLake && process.env.DEMAND_TOOLS === '1') {
  throw new Error('DEMAND_TOOLS=1 demands Postgres, and DuckDB’s extensions in the folder DUCKDB_TEST_EXTENSIONS');
}

const USER = 'ring';
const TEMPLATE = 'empty';

let server: TestPostgres | undefined;
let template: Promise<string> | undefined;
let lakes = 0;

/** The Postgres of this process. */
export function testPostgres(): TestPostgres {
  server ??= startPostgres();
  return server;
}

/** The settings of a lake that nobody has made. */
export const lakeSettings = (catalogue: string, data: string) => ({
  RINGNECK_WAREHOUSE: `ducklake:postgres://${USER}@/${catalogue}?host=${testPostgres().folder}&data=${data}`,
  RINGNECK_DUCKDB_EXTENSIONS: extensions ?? '',
});

export function lakePlace(catalogue: string, data: string, s3: LakeOptions['s3'] = { region: 'us-east-1' }): Omit<LakeOptions, 'owner'> {
  const address = parseLakeAddress(lakeSettings(catalogue, data).RINGNECK_WAREHOUSE)!;
  return { address, s3, extensions };
}

/** A catalogue in which there is no lake. */
export function newCatalogue(): LakeAddress {
  const catalogue = `lake${++lakes}`;
  const { psql } = testPostgres();
  psql('postgres', `DO $$ BEGIN CREATE ROLE ${USER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`);
  psql('postgres', `CREATE DATABASE ${catalogue} OWNER ${USER}`);
  return lakePlace(catalogue, '/nowhere').address;
}

/** Makes a lake of the tables of this version, in which nothing is stored: a copy of the catalogue of the first one. */
export async function newLake(folder: string): Promise<LakeOptions> {
  const { psql } = testPostgres();
  const base = join(testPostgres().folder, 'template');
  template ??= makeTemplate(base);
  const owner = await template;
  const catalogue = `lake${++lakes}`;
  const data = join(folder, catalogue);
  mkdirSync(data, { recursive: true });
  psql('postgres', `CREATE DATABASE ${catalogue} TEMPLATE ${TEMPLATE} OWNER ${USER}`);
  writeFileSync(join(data, 'ringneck-lake.csv'), 'lake,identity\nof a test,\n');
  psql(catalogue, `UPDATE ducklake_metadata SET value = '${data}/' WHERE key = 'data_path'`);
  return { ...lakePlace(catalogue, data), owner, learningMs: 0 };
}

async function makeTemplate(data: string): Promise<string> {
  mkdirSync(data);
  const place = lakePlace(TEMPLATE, data);
  await initLake(place, 'postgres');
  const owner = 'the folder of these tests';
  await (await Warehouse.open({ path: join(data, '..', 'template.duckdb'), lake: { ...place, owner }, resources })).close();
  return owner;
}

/** An S3 server over a folder, gone after the test. */
export async function startBucket(folder: string): Promise<LakeOptions['s3']> {
  const port = await findFreePort();
  mkdirSync(join(folder, 'bucket', 'ring'), { recursive: true });
  const key = { key: 'a-key', secret: 'a-secret-of-tests' };
  const parameters = ['--access', key.key, '--secret', key.secret, '--port', `127.0.0.1:${port}`, 'posix', join(folder, 'bucket')];
  const child = spawn('versitygw', parameters, { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const endpoint = `http://127.0.0.1:${port}`;
  while (
    !(await fetch(endpoint).then(
      () => true,
      () => false,
    ))
  )
    if (child.exitCode !== null) throw new Error('versitygw has ended');
  return { ...key, endpoint, region: 'us-east-1' };
}
