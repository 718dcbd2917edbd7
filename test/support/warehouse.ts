import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { DuckDBInstance } from '@duckdb/node-api';
import { resources } from '../../schema/index.ts';
import type { Resource } from '../../schema/resource.ts';
import type { WarehouseOptions } from '../../src/warehouse/warehouse.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';

/** 2025-06-01T00:00:00Z in milliseconds: the clock of these tests stands still, each request is a microsecond later. */
export const NOW = 1_748_736_000_000;

let files = 0;

export const newPath = (folder: string) => join(folder, `w${++files}`, 'warehouse.duckdb');

export function openWarehouse(path: string, options: Partial<WarehouseOptions> = {}): Promise<Warehouse> {
  return Warehouse.open({ path, resources, now: () => NOW, ...options });
}

let empty: Promise<Buffer> | undefined;

/** Puts an empty warehouse where there is no file yet: opening it takes a third of the time of making one. */
export async function placeWarehouse(path: string): Promise<void> {
  if (existsSync(path)) return;
  empty ??= makeEmpty();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, await empty, { mode: 0o600 });
}

async function makeEmpty(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-'));
  try {
    const path = join(folder, 'warehouse.duckdb');
    await (await openWarehouse(path)).close();
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export const resourceNamed = (name: string): Resource => resources.find(resource => resource.name === name)!;

/** Stores documents as one answer to a request that is sent now. */
export async function store(warehouse: Warehouse, name: string, documents: readonly unknown[], removed: readonly string[] = []) {
  const requestedAt = warehouse.clock.lease();
  try {
    return await warehouse.storeDocuments({ userId: 'ann', resource: warehouse.mapping(name).resource, requestedAt, documents, removed });
  } finally {
    warehouse.clock.release(requestedAt);
  }
}

/** Opens a file that nobody else has open, as plain DuckDB would, and closes it again. */
export async function withDuckDB<T>(
  path: string,
  work: (connection: DuckDBConnection) => Promise<T>,
  config: Record<string, string> = {},
): Promise<T> {
  const instance = await DuckDBInstance.create(path, config);
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Rows as objects of text, numbers and nulls, as DuckDB's own cast to JSON gives them. */
export async function rowsOf(connection: DuckDBConnection, sql: string): Promise<unknown[]> {
  const reader = await connection.runAndReadAll(`SELECT to_json(t)::VARCHAR FROM (${sql}) t`);
  return reader.getRows().map(([text]) => JSON.parse(text as string));
}

/** Rows of a warehouse that is open, as objects. */
export async function rows(warehouse: Warehouse, sql: string): Promise<unknown[]> {
  return (await warehouse.read(`SELECT to_json(t)::VARCHAR FROM (${sql}) t`)).map(([text]) => JSON.parse(text as string));
}
