import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { spillFolder } from '../../../src/app/export/folder.ts';
import { lockFile } from '../../../src/warehouse/readers/export/lock.ts';
import { below, randomFrom } from '../../support/random-documents.ts';
import { ringneck, startRingneck } from '../../support/ringneck.ts';
import { openWarehouse, store } from '../../support/warehouse.ts';
import { isWhole } from '../../support/whole.ts';
import { STRESS } from '../../support/wire.ts';
import { filesIn, hashParquet, hashWarehouse, manifestOf, openExporting } from './exporting.ts';

const { folder, file, env, exported, exportHere } = await openExporting();
const parquet = join(folder, 'parquet');

beforeAll(async () => {
  await exportHere(parquet);
});

/** While an export runs: nothing is read. */
const countFinished = (out: string) =>
  readdirSync(out, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.parquet')).length;

test('a second run leaves what is right, fixes what is not, and follows what changed', async () => {
  const before = filesIn(parquet);
  const again = await exportHere(parquet);
  expect(again).toMatchObject({ files: Object.keys(before).length, skipped: Object.keys(before).length, removed: 0 });

  // Somebody damaged one, of the same length, removed one, and cut one.
  const [damaged, removed, cut] = Object.keys(before).filter(path => path.startsWith('sleep/')) as [string, string, string];
  const bytes = readFileSync(join(parquet, damaged));
  bytes[100] = bytes[100]! ^ 1;
  writeFileSync(join(parquet, damaged), bytes);
  rmSync(join(parquet, removed));
  truncateSync(join(parquet, cut), 10);
  writeFileSync(join(parquet, 'notes.txt'), 'mine');
  const fixed = await exportHere(parquet);
  expect(fixed).toMatchObject({ files: Object.keys(before).length, skipped: Object.keys(before).length - 3 });
  const { 'notes.txt': notes, ...files } = filesIn(parquet);
  expect(notes).toBeDefined();
  expect(files).toEqual(before);

  const warehouse = await openWarehouse(file);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'new', day: '2032-02-02' }]);
  await warehouse.close();
  const grown = await exportHere(parquet);
  expect(grown).toMatchObject({
    files: Object.keys(before).length + 1,
    skipped: Object.keys(before).length,
    removed: 0,
  });
  expect(Object.keys(filesIn(parquet))).toContain('daily_stress/daily_stress-2032-02.parquet');
  const back = await openWarehouse(file);
  await store(back, 'daily_stress', [], ['new']);
  await back.close();
  const shrunk = await exportHere(parquet);
  expect(shrunk).toMatchObject({ files: Object.keys(before).length, skipped: Object.keys(before).length, removed: 1 });
  expect(await hashParquet(parquet)).toEqual(await hashWarehouse(file));
});

test('an export that was killed, at any moment, is continued to what an undisturbed one gives', async () => {
  const undisturbed = filesIn(parquet);
  delete undisturbed['notes.txt'];
  const total = Object.keys(undisturbed).length;
  const random = randomFrom(5);
  let counted = 0;
  for (let round = 0; counted < (isWhole ? 10 : 1); round++) {
    expect(round).toBeLessThan(isWhole ? 40 : 12);
    const out = join(folder, `killed-${round}`);
    const running = startRingneck(['export', '--out', out], { env });
    while (!existsSync(join(out, 'export.json')) && running.process.exitCode === null) await sleep(5);
    const at = below(random, total);
    while (countFinished(out) < at && running.process.exitCode === null) await sleep(1);
    running.kill('SIGKILL');
    if ((await running.end()).code === 'SIGKILL') counted++;
    // What bears its own name is whole.
    for (const [path, hash] of Object.entries(filesIn(out))) if (path.endsWith('.parquet')) expect(hash).toBe(undisturbed[path]);
    await exportHere(out);
    expect(filesIn(out)).toEqual(undisturbed);
    expect(readdirSync(out).filter(name => name.startsWith('.'))).toEqual([]);
    expect(manifestOf(out).finished_at).not.toBeNull();
  }
});

test('half of a manifest that a killed export left is in nobody’s way, and is removed', async () => {
  const out = join(folder, 'half');
  const half = 'export.json.4242.0123456789abcdef.new';
  mkdirSync(out);
  writeFileSync(join(out, half), '{"ringneck_export"');
  await exportHere(out, { tables: ['sleep'] });
  expect(readdirSync(out).sort()).toEqual(['export.json', 'sleep']);
  writeFileSync(join(out, half), '');
  writeFileSync(join(out, 'export.json.bak.new'), 'mine');
  await exportHere(out, { tables: ['sleep'] });
  expect(readdirSync(out).sort()).toEqual(['export.json', 'export.json.bak.new', 'sleep']);
});

test('Ctrl-C ends with 130 and keeps what is finished', async () => {
  const out = join(folder, 'interrupted');
  const running = startRingneck(['export', '--out', out], { env });
  while (!existsSync(join(out, 'export.json')) || countFinished(out) < 5) await sleep(1);
  running.kill('SIGINT');
  expect(await running.end()).toMatchObject({ code: 130, stdout: '', stderr: 'ringneck: interrupted\n' });
  expect(Object.keys(filesIn(out)).filter(path => !path.endsWith('.parquet'))).toEqual([]);
  const kept = manifestOf(out).files.filter(({ sha256 }: { sha256: string | null }) => sha256 !== null).length;
  expect(kept).toBeGreaterThanOrEqual(4);
  expect(await exportHere(out)).toMatchObject({ skipped: kept });
});

test('a folder that holds anything else, or another export, is refused and left as it is', async () => {
  const strange = join(folder, 'strange');
  mkdirSync(strange);
  writeFileSync(join(strange, 'thesis.txt'), 'mine');
  expect(await exported('--out', strange)).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: --out ${strange} holds thesis.txt and is not an export that Ringneck wrote: name an empty folder, or one that does not exist yet\n`,
  });
  expect(readdirSync(strange)).toEqual(['thesis.txt']);
  writeFileSync(join(strange, 'export.json'), '{"ringneck_export": 2}');
  await expect(exportHere(strange)).rejects.toThrow(`${join(strange, 'export.json')} cannot be read`);

  const before = filesIn(parquet);
  expect(await exported('--out', parquet, '--format', 'csv', '--user', 'ann')).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: --out ${parquet} holds another export (format: parquet, not csv; users: all, not ann): name another folder, or remove that one if it has served\n`,
  });
  expect(filesIn(parquet)).toEqual(before);
});

test('a link in place of a table’s folder, or of the lock, is refused, and nothing behind it is touched', async () => {
  const home = join(folder, 'home');
  mkdirSync(home);
  for (const name of ['notes.txt', 'sleep.csv', 'sleep.csv.new']) writeFileSync(join(home, name), 'mine');
  const received = join(folder, 'received');
  const request = { format: 'csv', tables: ['daily_stress'] } as const;
  await exportHere(received, request);
  const path = join(received, 'export.json');
  const manifest = manifestOf(received);
  const planted = { ...manifest.files[0], path: 'z/notes.txt', table: 'z' };
  writeFileSync(path, JSON.stringify({ ...manifest, files: [...manifest.files, planted] }));
  symlinkSync(home, join(received, 'z'));
  const before = readFileSync(path, 'utf8');
  expect(await exported('--out', received, '--format', 'csv', '--table', 'daily_stress')).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: ${join(received, 'z')} is a link, and what it points to may not be an export: remove the link, or export into another folder\n`,
  });
  expect(readFileSync(path, 'utf8')).toBe(before);

  // The same where the next export would write.
  const due = join(folder, 'due');
  await exportHere(due, { format: 'csv', tables: ['sleep'] });
  rmSync(join(due, 'sleep'), { recursive: true });
  symlinkSync(home, join(due, 'sleep'));
  await expect(exportHere(due, { format: 'csv', tables: ['sleep'] })).rejects.toThrow(`${join(due, 'sleep')} is a link`);
  rmSync(join(due, 'sleep'));
  symlinkSync(join(home, 'lock'), join(due, '.export.lock'));
  await expect(exportHere(due, { format: 'csv', tables: ['sleep'] })).rejects.toThrow(`${join(due, '.export.lock')} is a link`);
  expect(readdirSync(home).map(name => [name, readFileSync(join(home, name), 'utf8')])).toEqual([
    ['notes.txt', 'mine'],
    ['sleep.csv', 'mine'],
    ['sleep.csv.new', 'mine'],
  ]);
});

test('a folder that others can write to is refused before anything is written: they would make our files before us, and read them', async () => {
  const shared = join(folder, 'shared');
  mkdirSync(shared);
  for (const mode of [0o777, 0o1777, 0o770]) {
    chmodSync(shared, mode);
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    expect(await exported('--out', shared, '--table', 'sleep')).toEqual({
      code: 2,
      stdout: '',
      stderr: `ringneck: --out ${shared} is writable by others (${octal}): export into another folder, or chmod go-w ${shared}\n`,
    });
    expect(readdirSync(shared)).toEqual([]);
  }
  // One of our own in it is nobody else's to fill.
  const own = join(shared, 'own');
  await exportHere(own, { tables: ['sleep'] });
  const sleep = join(own, 'sleep');
  rmSync(sleep, { recursive: true });
  mkdirSync(sleep);
  chmodSync(sleep, 0o777);
  await expect(exportHere(own, { tables: ['sleep'] })).rejects.toThrow(
    `${sleep} is writable by others (0777): export into another folder, or chmod go-w ${sleep}`,
  );
  expect(readdirSync(sleep)).toEqual([]);
  chmodSync(sleep, 0o755);
  expect(await exportHere(own, { tables: ['sleep'] })).toMatchObject({ skipped: 0 });
});

test.runIf(process.getuid?.() === 0)('a table’s folder that is another user’s is refused', async () => {
  const out = join(folder, 'taken');
  mkdirSync(join(out, 'sleep'), { recursive: true, mode: 0o700 });
  chownSync(join(out, 'sleep'), 4242, 4242);
  const sleep = join(out, 'sleep');
  writeFileSync(join(out, 'export.json'), JSON.stringify({ ...manifestOf(parquet), tables: ['sleep'], files: [] }));
  await expect(exportHere(out, { tables: ['sleep'] })).rejects.toThrow(
    `${sleep} is another user’s (uid 4242): export into another folder, or chown 0 ${sleep}`,
  );
  expect(readdirSync(sleep)).toEqual([]);
});

test('what is advised where the manifest cannot be read can be done', async () => {
  const out = join(folder, 'unreadable');
  const path = join(out, 'export.json');
  const { files } = await exportHere(out, { tables: ['sleep'] });
  const manifest = readFileSync(path);
  truncateSync(path, 100);
  const refused = await exported('--out', out, '--table', 'sleep');
  expect([refused.code, refused.stdout]).toEqual([1, '']);
  expect(refused.stderr).toMatch(
    /^ringneck: \S+unreadable\/export\.json cannot be read \(.*\): put it back from a copy, or export into another folder\.\n$/,
  );
  expect(await exportHere(join(folder, 'another'), { tables: ['sleep'] })).toMatchObject({ files, skipped: 0 });
  writeFileSync(path, manifest);
  expect(await exportHere(out, { tables: ['sleep'] })).toMatchObject({ files, skipped: files });
});

test('two exports into one folder: the second is refused and names the first', async () => {
  const unlock = await lockFile(join(parquet, '.export.lock'));
  const { code, stdout, stderr } = await ringneck(['export', '--out', parquet], { env });
  unlock();
  expect([code, stdout]).toEqual([75, '']);
  expect(stderr).toContain(`(PID ${process.pid})`);
  // A lock that a killed export left half made.
  writeFileSync(join(parquet, '.export.lock'), 'half');
  expect(await exportHere(parquet)).toMatchObject({ removed: 0 });
});

test('nobody can know before where what does not fit into memory is put, and what a killed export left there goes', async () => {
  const out = join(folder, 'spilled');
  const spill = spillFolder(out);
  expect(basename(spill)).toMatch(/^\.export\.\d+\.[0-9a-f]{16}\.tmp$/);
  expect(spillFolder(out)).not.toBe(spill);
  mkdirSync(spill, { recursive: true });
  writeFileSync(join(spill, 'part'), 'half');
  await exportHere(out, { tables: ['sleep'] });
  expect(readdirSync(out).sort()).toEqual(['export.json', 'sleep']);
});

test.runIf(process.platform === 'linux')('a place that takes no folders is refused', async () => {
  expect(await exported('--out', '/proc/ringneck/out')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'ringneck: cannot make the folder /proc/ringneck/out: /proc takes no folders: name another place\n',
  });
});
