import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { DuckDBInstance } from '@duckdb/node-api';
import { inject } from 'vitest';
import { resources } from '../../schema/index.ts';
import type { Resource } from '../../schema/resource.ts';
import { leaveHandover } from '../../src/warehouse/handover.ts';
import type { LakeOptions } from '../../src/warehouse/lake.ts';
import { Memory } from '../../src/warehouse/store/memory.ts';
import type { Store } from '../../src/warehouse/store/store.ts';
import type { WarehouseOptions } from '../../src/warehouse/warehouse.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { EMPTY_WAREHOUSE } from './build.ts';

/** 2025-06-01T00:00:00Z in milliseconds: the clock of these tests stands still, each request is a microsecond later. */
export const NOW = 1_748_736_000_000;

let files = 0;

export const newPath = (folder: string) => join(folder, `w${++files}`, 'warehouse.duckdb');

/** Opens a warehouse; where there is none, and unless other document types are told, it is a copy of an empty one. */
export async function openWarehouse(path: string, options: Partial<WarehouseOptions> = {}): Promise<Warehouse> {
  const lake = process.env.TEST_STORE === 'lake' ? { lake: await lakeAt(path) } : {};
  if (!options.resources && !lake.lake) placeWarehouse(path);
  return Warehouse.open({ path, resources, now: () => NOW, ...lake, ...options });
}

const lakesAt = new Map<string, Promise<LakeOptions>>();

/** The lake of a path: the tests of the project `lake` have each warehouse in one. */
async function lakeAt(path: string): Promise<LakeOptions> {
  const { newLake } = await import('./lake.ts');
  const made = lakesAt.get(path) ?? newLake(dirname(path));
  lakesAt.set(path, made);
  return made;
}

/** Puts an empty warehouse where there is no file yet, as the process that made it would have left it: opening it takes a tenth of making one. */
export function placeWarehouse(path: string): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const empty = join(inject('compiled'), EMPTY_WAREHOUSE);
  copyFileSync(empty, path);
  chmodSync(path, 0o600);
  leaveHandover(path, JSON.parse(readFileSync(`${empty}.handover`, 'utf8')));
}

/** What a writer needs of a store, where nothing is stored. */
export function storeOfNothing(): Pick<Store, 'memory' | 'transaction' | 'takeSks' | 'openAppender' | 'afterGroup' | 'samplesBesideLive'> {
  const memory = new Memory({ bytes: 80_000_000, threads: 2 });
  return {
    memory,
    samplesBesideLive: 40_000,
    transaction: (connection, work) => memory.transaction(connection, work),
    takeSks: async () => 1,
    openAppender: async (connection, { table }) => ({ appender: await connection.createAppender(table) }),
    afterGroup: async () => undefined,
  };
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
