import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { App } from '../../src/app/app.ts';
import { commandsOf } from '../../src/app/commands.ts';
import { keepCompact, keepFileCompact } from '../../src/app/compaction/schedule.ts';
import { readSettings } from '../../src/base/config.ts';
import { RingneckError } from '../../src/base/errors.ts';
import { createLog } from '../../src/base/log.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { NOW, openWarehouse, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';

const folder = tempFolder();
const HOUR = 6;

/** Looks until so many have passed; before each what `each` does. */
async function keepFor(
  looks: number,
  world: { isDue?: boolean; isReading?: boolean; isShort?: boolean; isStoring?: boolean; failure?: Error; each?: (look: number) => void },
) {
  const said: string[] = [];
  const done: number[] = [];
  let commits = 0;
  let look = 0;
  let end = () => {};
  const ended = new Promise<void>(resolve => {
    end = resolve;
  });
  const schedule = keepCompact({
    warehouse: {
      path: folder,
      get commits() {
        return commits;
      },
      size: async () => ({ bytes: 100, rows: 1, compacted: undefined, isDue: world.isDue ?? true }),
      compact: async () => {
        done.push(look);
        if (world.failure) throw world.failure;
        world.isDue = false;
        return { at: 0, bytes: 40, rows: 1 };
      },
    },
    isReading: () => world.isReading ?? false,
    log: {
      info: ((_: object, text: string) => void said.push(text)) as never,
      warn: (({ reason }: { reason: string }) => void said.push(reason)) as never,
    },
    ensureRoom: (_, bytes) => {
      if (world.isShort) throw new RingneckError(`no room for ${bytes} bytes`);
    },
    sleep: async () => {
      await Promise.resolve();
      if (look === looks) return end();
      look++;
      world.each?.(look);
      if (world.isStoring) commits++;
    },
  });
  await ended;
  await schedule.close();
  return { said, done };
}

test('a file that is due is compacted at the next look, once, and that is said', async () => {
  expect(await keepFor(10, {})).toEqual({ said: ['the warehouse was compacted'], done: [1] });
  expect(await keepFor(10, { isDue: false })).toEqual({ said: [], done: [] });
});

test('it waits for the end of a run, and for ten minutes in which nothing is stored, for a day at most', async () => {
  const world = { isReading: true };
  expect(await keepFor(30 * HOUR, world)).toEqual({ said: [], done: [] });
  expect((await keepFor(30 * HOUR, { isStoring: true })).done).toEqual([24 * HOUR + 1]);
});

test('while the disk is short it is not begun: that is said once, and it is done when there is room', async () => {
  const world: Parameters<typeof keepFor>[1] = { isShort: true };
  world.each = look => {
    if (look === 5) world.isShort = false;
  };
  expect(await keepFor(10, world)).toEqual({ said: ['no room for 130 bytes', 'the warehouse was compacted'], done: [5] });
});

test('what fails is said once and tried again six hours later', async () => {
  const world = { failure: new RingneckError('too much is being stored') };
  expect(await keepFor(14 * HOUR, world)).toEqual({ said: ['too much is being stored'], done: [1, 38, 75] });
});

test('what DuckDB says of rows is not logged', async () => {
  const failure = new Error('Constraint Error: Violates foreign key constraint because key "code: a secret" does not exist');
  expect((await keepFor(2, { failure })).said).toEqual(['Constraint Error']);
  expect((await keepFor(2, { failure: Object.assign(new Error('a secret'), { code: 'ENOSPC' }) })).said).toEqual(['ENOSPC']);
  expect((await keepFor(2, { failure: new TypeError('a secret: Error: no') })).said).toEqual(['TypeError']);
});

test('who owns the folder compacts a file that days have left too large, says so, and shows it in status', async () => {
  const data = join(folder, 'data');
  const path = join(data, 'warehouse.duckdb');
  const now = () => NOW;
  const MET = Array.from({ length: 1440 }, (_, i) => Math.abs(Math.sin(i * 12.9898) * 43_758.5453) % 10);
  const warehouse = await openWarehouse(path, { now });
  for (let n = 0; n < 150; n++) {
    const day = new Date(Date.UTC(2025, 0, 1 + n)).toISOString().slice(0, 10);
    const met = { interval: 60, items: MET.map(value => value + n), timestamp: `${day}T04:00:00+02:00` };
    await Promise.all(
      Array.from({ length: 10 }, (_, i) => store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: `${n} ${i}`, day, met }])),
    );
  }
  await warehouse.close();
  const before = statSync(path).size;

  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(line) } });
  const settings = readSettings({ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' });
  const app = await App.open({ settings, log, now });
  const schedule = await keepFileCompact(app, () => setTimeout(10));
  await expect.poll(() => lines.map(line => JSON.parse(line).msg)).toContain('the warehouse was compacted');
  await schedule.close();
  const bytes = statSync(path).size;
  expect(bytes).toBeLessThan(before);
  const status = await commandsOf(() => app).status({});
  expect(status.warehouse).toEqual({ bytes: expect.any(Number), compacted_at: '2025-06-01T00:00:00.000Z' });
  expect((await app.warehouse.size()).isDue).toBe(false);
  expect(lines.filter(line => line.includes('compacted'))).toHaveLength(1);
  await app.close();
});
