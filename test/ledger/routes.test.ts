import { expect, test, vi } from 'vitest';
import { openRouteMemory } from '../../src/ledger/routes.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { warehouseWith } from '../support/literal-pipeline.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rows } from '../support/warehouse.ts';

const folder = tempFolder();
const HOUR = 3_600_000;
const START = Date.parse('2025-03-10T12:00:00Z');

const HERE = 'https://here.example';

async function memoryOf(warehouse: Warehouse, service = HERE) {
  const clock = { ms: START };
  const routes = await openRouteMemory(
    warehouse,
    service,
    () => clock.ms,
    error => {
      throw error;
    },
  );
  /** What is in the ledger once all notes are committed. */
  const noted = async () => {
    await warehouse.record([{ table: 'sync.meta', key: { key: 'test' }, row: { value: '' } }]);
    return rows(warehouse, 'SELECT route, last_status, last_200_at FROM sync.routes ORDER BY route');
  };
  return { clock, routes, noted };
}

test('a route has answered once it said 200, and that is kept', async () => {
  const warehouse = await warehouseWith(folder, []);
  const { routes, noted, clock } = await memoryOf(warehouse);
  expect(routes.hasAnswered('/v2/usercollection/sleep')).toBe(false);
  routes.note('/v2/usercollection/sleep', 404);
  expect(routes.hasAnswered('/v2/usercollection/sleep')).toBe(false);
  clock.ms += 1000;
  routes.note('/v2/usercollection/sleep', 200);
  expect(routes.hasAnswered('/v2/usercollection/sleep')).toBe(true);
  clock.ms += 1000;
  routes.note('/v2/usercollection/sleep', 404);
  expect(routes.hasAnswered('/v2/usercollection/sleep')).toBe(true);
  expect(await noted()).toEqual([{ route: '/v2/usercollection/sleep', last_status: 404, last_200_at: '2025-03-10 12:00:01' }]);
  const again = await memoryOf(warehouse);
  expect(again.routes.hasAnswered('/v2/usercollection/sleep')).toBe(true);
  expect(again.routes.hasAnswered('/v2/usercollection/session')).toBe(false);
});

test('the same answer is written once in an hour at most', async () => {
  const warehouse = await warehouseWith(folder, []);
  const { routes, noted, clock } = await memoryOf(warehouse);
  routes.note('/a', 200);
  const written = vi.spyOn(warehouse, 'record');
  clock.ms += HOUR - 1;
  routes.note('/a', 200);
  expect(await noted()).toEqual([{ route: '/a', last_status: 200, last_200_at: '2025-03-10 12:00:00' }]);
  // The one of `noted`.
  expect(written).toHaveBeenCalledTimes(1);
  clock.ms += 1;
  routes.note('/a', 200);
  expect(await noted()).toEqual([{ route: '/a', last_status: 200, last_200_at: '2025-03-10 13:00:00' }]);
});

test('a refusal that goes on is written once', async () => {
  const warehouse = await warehouseWith(folder, []);
  const { routes, noted, clock } = await memoryOf(warehouse);
  routes.note('/a', 404);
  await noted();
  const written = vi.spyOn(warehouse, 'record');
  clock.ms += 10 * HOUR;
  routes.note('/a', 404);
  expect(await noted()).toEqual([{ route: '/a', last_status: 404, last_200_at: null }]);
  expect(written).toHaveBeenCalledTimes(1);
});

test('a note that cannot be written is reported and nothing more', async () => {
  const warehouse = await warehouseWith(folder, []);
  const errors: unknown[] = [];
  const failing = { read: warehouse.read.bind(warehouse), record: () => Promise.reject(new Error('disk')) } as unknown as Warehouse;
  const routes = await openRouteMemory(
    failing,
    HERE,
    () => START,
    error => errors.push(error),
  );
  routes.note('/a', 200);
  await new Promise(setImmediate);
  expect(errors).toEqual([new Error('disk')]);
  expect(routes.hasAnswered('/a')).toBe(true);
});

test('what another service answered says nothing of this one', async () => {
  const warehouse = await warehouseWith(folder, []);
  const { routes, noted } = await memoryOf(warehouse);
  expect(routes.hasAnsweredAny()).toBe(false);
  routes.note('/a', 200);
  expect(routes.hasAnsweredAny()).toBe(true);
  await noted();
  const there = await memoryOf(warehouse, 'https://there.example');
  expect([there.routes.hasAnswered('/a'), there.routes.hasAnsweredAny()]).toEqual([false, false]);
  there.routes.note('/a', 404);
  await there.noted();
  expect(await rows(warehouse, 'SELECT service, route, last_status, last_200_at FROM sync.routes ORDER BY ALL')).toEqual([
    { service: 'https://here.example', route: '/a', last_status: 200, last_200_at: '2025-03-10 12:00:00' },
    { service: 'https://there.example', route: '/a', last_status: 404, last_200_at: null },
  ]);
  expect((await memoryOf(warehouse)).routes.hasAnswered('/a')).toBe(true);
});

test('what was noted before services were told apart belongs to the first that is asked', async () => {
  const warehouse = await warehouseWith(folder, []);
  await warehouse.record([{ table: 'sync.routes', row: { route: '/a', last_status: 404, last_200_at: START * 1000 } }]);
  expect((await memoryOf(warehouse)).routes.hasAnswered('/a')).toBe(true);
  expect((await memoryOf(warehouse, 'https://there.example')).routes.hasAnswered('/a')).toBe(false);
  expect(await rows(warehouse, 'SELECT service, route, last_status, last_200_at FROM sync.routes')).toEqual([
    { service: 'https://here.example', route: '/a', last_status: 404, last_200_at: '2025-03-10 12:00:00' },
  ]);
});
