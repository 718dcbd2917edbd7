import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resources } from '../../../schema/index.ts';
import { writeWhole } from '../../../src/app/export/folder.ts';
import { planParts } from '../../../src/warehouse/readers/export/parts.ts';
import { openExportSource } from '../../../src/warehouse/readers/export/source.ts';
import { writePart } from '../../../src/warehouse/readers/export/write.ts';
import { runHere } from '../../support/run-here.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openWarehouse, store } from '../../support/warehouse.ts';
import { STRESS } from '../../support/wire.ts';

const folder = tempFolder();
const data = join(folder, 'data');
const small = join(folder, 'small');
const large = join(folder, 'large');
// A disk of our own takes the right to mount.
const mount = (size: string, path: string) => {
  mkdirSync(path);
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]).status === 0;
};
const able = mount('256k', small) && mount('600m', large);
afterAll(() => {
  if (able) for (const path of [small, large]) execFileSync('umount', ['--lazy', path]);
});

beforeAll(async () => {
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  const documents = Array.from({ length: 2_000 }, (_, i) => ({ ...STRESS, id: `a-rather-long-name-of-a-document-${i}` }));
  await store(warehouse, 'daily_stress', documents);
  await warehouse.close();
});

test.runIf(able).each(['parquet', 'csv', 'ndjson'] as const)('a disk that becomes full leaves no half %s, and says so', async format => {
  const source = await openExportSource(join(data, 'warehouse.duckdb'), resources, { out: small, spill: join(folder, 'spill') });
  const everything = { users: null, from: null, to: null };
  execFileSync('fallocate', ['-l', '224k', join(small, 'fill')]);
  try {
    const [part] = await planParts(source, source.tables.get('daily_stress')!, format, everything);
    expect(part!.rows).toBe(2_000);
    const writing = writeWhole(small, `daily_stress/x.${format}`, path => writePart(source, part!, format, everything, path));
    await expect(writing).rejects.toThrow(/^the disk is full: .* cannot be written\. Make room, and the same command continues$/);
    expect(readdirSync(join(small, 'daily_stress'))).toEqual([]);
  } finally {
    source.close();
    rmSync(join(small, 'fill'));
  }
});

test.runIf(able)('before the disk is full an export stops, and goes on when there is room', async () => {
  const out = join(large, 'out');
  const args = ['export', '--out', out, '--table', 'daily_stress', '--json'];
  execFileSync('fallocate', ['-l', '120m', join(large, 'fill')]);
  const { code, stdout, stderr } = await runHere(args, { env: { RINGNECK_DATA: data } });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain(`The disk of ${out} is almost full`);
  expect(readdirSync(out)).toEqual(['export.json']);
  rmSync(join(large, 'fill'));
  expect(JSON.parse((await runHere(args, { env: { RINGNECK_DATA: data } })).stdout)).toMatchObject({ files: 1, rows: 2_000, skipped: 0 });
});
