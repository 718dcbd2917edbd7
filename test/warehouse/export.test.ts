import { join } from 'node:path';
import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { planParts, selectPart } from '../../src/warehouse/readers/export/parts.ts';
import { type ExportTable, openExportSource, runOver } from '../../src/warehouse/readers/export/source.ts';
import { unitOf } from '../../src/warehouse/readers/export/write.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();
const path = join(folder, 'warehouse.duckdb');
const everything = { users: null, from: null, to: null };
const open = () => openExportSource(path, resources, { out: join(folder, 'out'), spill: join(folder, 'spill') });

test('a part’s content tells its rows, not where they lie', async () => {
  const contents: string[] = [];
  const days = ['2025-01-31', '2025-02-01', '2025-02-28'];
  for (const order of [days, days.toReversed()]) {
    const warehouse = await openWarehouse(path);
    await store(warehouse, 'daily_stress', [], days);
    await store(
      warehouse,
      'daily_stress',
      order.map(day => ({ ...STRESS, id: day, day })),
    );
    await warehouse.close();
    const source = await open();
    const { columns, ...rest } = source.tables.get('daily_stress')!;
    // Which version of a document it is and when it came differ by design.
    const table: ExportTable = { ...rest, columns: columns.filter(({ name }) => name !== 'sk' && name !== 'fetched_at') };
    const parts = await planParts(source, table, 'parquet', everything);
    expect(parts.map(({ month, rows }) => [month, rows])).toEqual([
      ['2025-01', 1],
      ['2025-02', 2],
    ]);
    contents.push(JSON.stringify(parts.map(({ content }) => content)));
    expect((await planParts(source, table, 'csv', everything)).map(({ month, rows }) => [month, rows])).toEqual([[null, 3]]);
    const read = await source.connection.runAndReadAll(selectPart(parts[1]!, everything, ['id']));
    expect(read.getRows()).toEqual([['2025-02-01'], ['2025-02-28']]);
    source.close();
  }
  expect(contents[0]).toBe(contents[1]);
});

test('what needs more memory than usual is tried again with more', async () => {
  const source = await open();
  const table = source.tables.get('sleep')!;
  const large = () => source.connection.runAndReadAll(`SELECT length(string_agg(repeat('x', 1000), ''))::INTEGER FROM range(100000)`);
  await expect(large()).rejects.toThrow(/Out of Memory/i);
  expect((await runOver(source, table, large)).getRows()).toEqual([[100_000_000]]);
  await expect(runOver(source, table, () => source.connection.run('SELECT nothing'))).rejects.toThrow(/nothing/);
  source.close();
});

test.each([
  ['Heart rate [beats/min]', 'beats/min'],
  ['Bedtime [s]: when recording started, UTC', 's'],
  ['Identifier of the document', null],
  [null, null],
])('the unit of %j is %j', (comment, unit) => {
  expect(unitOf(comment)).toBe(unit);
});
