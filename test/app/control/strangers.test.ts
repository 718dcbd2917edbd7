import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connectControl } from '../../../src/app/control/connect-control.ts';
import { serveControl } from '../../../src/app/control/serve-control.ts';
import { silentLog } from '../../../src/base/log.ts';
import { version as packageVersion } from '../../../src/base/version.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;
/** A data folder whose socket has a short path or one that is too long for it. */
function dataFolder(length: 'short' | 'long'): string {
  const path = join(folder, `${++folders}${length === 'long' ? 'd'.repeat(100) : ''}`);
  mkdirSync(path);
  writeFileSync(join(path, 'warehouse.duckdb'), path);
  return path;
}

async function own(at: string) {
  const control = await serveControl({ folder: at, commands: { where: async () => at }, log: silentLog });
  onTestFinished(() => control.close());
  return control;
}

const whereOf = async (at: string) =>
  (await connectControl<{ where: (input: undefined) => Promise<string> }>(at))?.call('where', undefined);

test('a copy of a folder with a long path does not speak to the owner of the original', async () => {
  const original = dataFolder('long');
  await own(original);
  const copy = join(folder, 'copy'.repeat(30));
  cpSync(original, copy, { recursive: true, verbatimSymlinks: true });
  expect(readlinkSync(join(copy, 'control.sock'))).toBe(readlinkSync(join(original, 'control.sock')));
  expect(await whereOf(original)).toBe(original);
  expect(await whereOf(copy)).toBeUndefined();
  await own(copy);
  expect([await whereOf(original), await whereOf(copy)]).toEqual([original, copy]);
});

test('a short path is never a link to somebody else', async () => {
  const original = dataFolder('short');
  await own(original);
  const other = dataFolder('short');
  symlinkSync(join(original, 'control.sock'), join(other, 'control.sock'));
  expect(await whereOf(other)).toBeUndefined();
});

test('an owner at our own path who works with another warehouse is refused', async () => {
  const original = dataFolder('short');
  await own(original);
  const { linkSync } = await import('node:fs');
  const other = dataFolder('short');
  linkSync(join(original, 'control.sock'), join(other, 'control.sock'));
  await expect(whereOf(other)).rejects.toThrow(
    `The process that answers at ${join(other, 'control.sock')} (PID ${process.pid}) owns another warehouse than ${other}: stop it, or remove that socket.`,
  );
  expect(await whereOf(original)).toBe(original);
});

test('an owner that does not tell its warehouse is refused: it is of an older version, and is to be restarted', async () => {
  const data = dataFolder('short');
  const older = createServer((_, response) => response.end(JSON.stringify({ version: packageVersion, pid: 4711 })));
  await new Promise<void>(resolve => older.listen(join(data, 'control.sock'), resolve));
  onTestFinished(() => void older.close());
  const refused = whereOf(data);
  await expect(refused).rejects.toThrow(
    `The process that answers at ${join(data, 'control.sock')} (PID 4711) is an older ringneck, which does not tell its warehouse: restart \`ringneck up\`.`,
  );
  await expect(refused).rejects.toMatchObject({ exitCode: 75 });
});

test('the same folder by another name, a link, has the same owner', async () => {
  const original = dataFolder('short');
  await own(original);
  const name = join(folder, 'name');
  symlinkSync(original, name);
  expect(await whereOf(name)).toBe(original);
});

test.each(['short', 'long'] as const)('a planted link makes nobody delete what it leads to (%s path)', async length => {
  const data = dataFolder(length);
  const victim = join(folder, `ringneck-control-victim${++folders}`);
  mkdirSync(join(victim, 'photos'), { recursive: true });
  writeFileSync(join(victim, 'photos/1.jpg'), 'x');
  writeFileSync(join(victim, 's'), 'a file, and no socket');
  symlinkSync(join(victim, 's'), join(data, 'control.sock'));
  await (await own(data)).close();
  expect(readdirSync(victim).sort()).toEqual(['photos', 's']);
  expect(readdirSync(join(victim, 'photos'))).toEqual(['1.jpg']);
});

test('of a place that bears our name only a socket goes, and the place where it is empty then', async () => {
  const data = dataFolder('long');
  const control = await own(data);
  const place = dirname(readlinkSync(join(data, 'control.sock')));
  writeFileSync(join(place, 'photo'), 'x');
  await control.close();
  expect(readdirSync(place)).toEqual(['photo']);
});

test('a folder or file called control.sock is not cleared away', async () => {
  const data = dataFolder('short');
  mkdirSync(join(data, 'control.sock'));
  writeFileSync(join(data, 'control.sock/kept'), '');
  await expect(own(data)).rejects.toThrow(`${join(data, 'control.sock')} is no socket: move it away.`);
  expect(existsSync(join(data, 'control.sock/kept'))).toBe(true);
});

test('a link into a place that somebody else made is not followed', async () => {
  const data = dataFolder('long');
  await own(data);
  const link = readlinkSync(join(data, 'control.sock'));
  expect(await whereOf(data)).toBe(data);
  const place = dirname(link);
  chmodSync(place, 0o777);
  expect(await whereOf(data)).toBeUndefined();
  chmodSync(place, 0o700);
  expect(await whereOf(data)).toBe(data);
  if (process.getuid?.() !== 0) return;
  const { lchownSync } = await import('node:fs');
  lchownSync(place, 12345, 12345);
  expect(await whereOf(data)).toBeUndefined();
  lchownSync(place, 0, 0);
});

test('a dead owner’s place is cleared away by the next one of the same folder only', async () => {
  const data = dataFolder('long');
  await own(data);
  const former = dirname(readlinkSync(join(data, 'control.sock')));
  const copy = join(folder, 'kopy'.repeat(30));
  cpSync(data, copy, { recursive: true, verbatimSymlinks: true });
  await own(copy);
  expect(lstatSync(join(former, 's')).isSocket()).toBe(true);
  await own(data);
  expect(existsSync(former)).toBe(false);
});
