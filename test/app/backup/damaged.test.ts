import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { type Manifest, readManifest, writeManifest } from '../../../src/app/backup/manifest.ts';
import { restoreBackup } from '../../../src/app/backup/restore.ts';
import { readSettings } from '../../../src/base/config.ts';
import { createAccept } from '../../../src/sync/events/accept-event.ts';
import { openHarness } from '../../support/harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const whole = join(folder, 'whole');
let cases = 0;

let made: Promise<void> | undefined;

async function makeWhole(): Promise<void> {
  const { app, commands, close } = await openHarness(join(folder, 'data'), 'http://127.0.0.1:9');
  app.secrets.put('ada', 'a-token');
  const accept = createAccept({ warehouse: app.warehouse, inbox: await app.inbox() });
  await accept({ event_type: 'create', data_type: 'sleep', object_id: 's', event_time: '2025-01-02T08:00:00+01:00', user_id: 'u' });
  await commands.backup({ folder: whole, withoutKey: false });
  await close();
}

/** A copy of the whole backup, and a place to restore it to. */
async function newCase() {
  made ??= makeWhole();
  await made;
  const backup = join(folder, `b${++cases}`);
  cpSync(whole, backup, { recursive: true });
  const data = join(folder, `d${cases}`);
  const change = (edit: (manifest: Manifest & { sha256: string }) => void) => {
    const path = join(backup, 'manifest.json');
    const manifest = JSON.parse(readFileSync(path, 'utf8'));
    edit(manifest);
    const { sha256: _, ...said } = manifest;
    writeFileSync(path, writeManifest(said));
  };
  const restore = (from = backup) =>
    restoreBackup(readSettings({ RINGNECK_DATA: data }), { folder: from, asCopy: false }, new AbortController().signal);
  return { backup, data, change, restore };
}

function flipByte(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = bytes.readUInt8(at) ^ 1;
  writeFileSync(path, bytes);
}

test('all that is damaged in a backup is named, and nothing of it is restored', async () => {
  const { backup, data, restore } = await newCase();
  flipByte(join(backup, 'warehouse.duckdb'), 300_000);
  truncateSync(join(backup, 'inbox/0000000001.journal'), 10);
  rmSync(join(backup, 'secret.key'));
  await expect(restore()).rejects.toThrow(
    new RegExp(
      `^${backup} is damaged: inbox/0000000001.journal has 10 bytes, and had \\d+; secret.key is missing; ` +
        'warehouse.duckdb has changed: another SHA-256. Nothing was restored$',
    ),
  );
  expect(readdirSync(data)).toEqual([]);
});

test.each([
  ['is cut off', '{"format": 1, "made_at"', 'cannot be read'],
  ['is no object', '[]', 'is damaged'],
  ['lacks what it should say', '{"format": 1}', 'is damaged (made_at, ringneck, duckdb, warehouse, key, events, files, sha256)'],
])('a manifest that %s is named', async (_, text, said) => {
  const { backup, data, restore } = await newCase();
  writeFileSync(join(backup, 'manifest.json'), text);
  await expect(restore()).rejects.toThrow(`${join(backup, 'manifest.json')} ${said}`);
  expect(existsSync(data)).toBe(false);
});

test.each(['../outside', '/etc/passwd', 'inbox/../../outside', 'queue/x', 'inbox/0000000001.journal/../x', '.env'])(
  'a manifest that lists %s is damaged: nothing but the parts of a backup is taken out of it',
  async path => {
    const { change, data, restore } = await newCase();
    change(manifest => manifest.files.push({ path, bytes: 0, sha256: '0'.repeat(64) }));
    await expect(restore()).rejects.toThrow(/manifest\.json is damaged \(files\.\d+\.path\): nothing was restored/);
    expect(existsSync(data)).toBe(false);
  },
);

test('a manifest without the warehouse is damaged: who began in what comes of it would begin with an empty one', async () => {
  const { change, data, restore } = await newCase();
  change(manifest => {
    manifest.files = manifest.files.filter(({ path }) => path !== 'warehouse.duckdb');
  });
  await expect(restore()).rejects.toThrow('manifest.json is damaged (files): nothing was restored');
  expect(existsSync(data)).toBe(false);
});

test('a manifest of which any byte has changed by a bit is no manifest any more, or still says the same', async () => {
  const { backup } = await newCase();
  const path = join(backup, 'manifest.json');
  const [bytes, said] = [readFileSync(path), readManifest(backup)];
  const accepted: unknown[] = [];
  for (const [at, byte] of bytes.entries()) {
    const changed = Buffer.from(bytes);
    changed[at] = byte ^ (1 << (at % 8));
    writeFileSync(path, changed);
    try {
      accepted.push(readManifest(backup));
    } catch (error) {
      expect(String(error)).toMatch(/manifest\.json (is damaged|cannot be read)|has format \d+/);
    }
  }
  // A space may have become another one.
  expect(accepted.every(one => isDeepStrictEqual(one, said))).toBe(true);
  expect(accepted.length).toBeLessThan(bytes.length);
  writeFileSync(path, bytes.toString().replace('"events": 1', '"events": 3'));
  expect(() => readManifest(backup)).toThrow(`${path} is damaged (it has changed: another SHA-256): nothing was restored`);
});

test('a manifest that counts events and lists no inbox is damaged', async () => {
  const { change, data, restore } = await newCase();
  change(manifest => {
    manifest.files = manifest.files.filter(({ path }) => !path.startsWith('inbox/'));
  });
  await expect(restore()).rejects.toThrow('manifest.json is damaged (1 events, and no inbox): nothing was restored');
  expect(existsSync(data)).toBe(false);
});

test('a backup, or a warehouse in it, of a later version is refused with what to do', async () => {
  const later = await newCase();
  later.change(manifest => Object.assign(manifest, { format: 2, ringneck: '9.1.0' }));
  await expect(later.restore()).rejects.toThrow(
    `${later.backup} has format 2, this program knows 1 at most: restore it with Ringneck 9.1.0 or later`,
  );
  const inIt = await newCase();
  inIt.change(manifest => Object.assign(manifest, { warehouse: { id: 'x', format: 99 } }));
  await expect(inIt.restore()).rejects.toThrow(/^the warehouse has format 99, this program knows \d+ at most: update Ringneck/);
  expect([existsSync(later.data), existsSync(inIt.data)]).toEqual([false, false]);
});

test('what is no backup is told from one', async () => {
  const { backup, restore } = await newCase();
  await expect(restore(join(folder, 'nowhere'))).rejects.toThrow(`${join(folder, 'nowhere')} is no folder: name that of a backup`);
  await expect(restore(join(backup, 'manifest.json'))).rejects.toThrow('is no folder');
  await expect(restore(join(folder, 'data'))).rejects.toThrow('is no whole backup: it has no manifest.json, which is written last');
});

test.each([
  ['warehouse.duckdb', 'holds a warehouse already'],
  ['accounts.secret', 'holds accounts.secret already'],
  ['inbox/0000000007.journal', 'holds inbox already'],
  ['queue/database', 'holds queue already'],
  ['moving.json', 'holds moving.json already'],
  ['erasing.json', 'holds erasing.json already'],
  ['erasing-events.json', 'holds erasing-events.json already'],
])('a folder with %s is left as it is', async (name, said) => {
  const { data, restore } = await newCase();
  mkdirSync(join(data, name, '..'), { recursive: true, mode: 0o700 });
  writeFileSync(join(data, name), 'of somebody');
  await expect(restore()).rejects.toThrow(`${data} ${said}: move the folder away, or name another one by RINGNECK_DATA`);
  expect(readdirSync(data)).toEqual([name.split('/')[0]]);
  expect(readFileSync(join(data, name), 'utf8')).toBe('of somebody');
});

test('another key than that of the backup is left as it is, the same one is no hindrance, nor are files of others', async () => {
  const other = await newCase();
  mkdirSync(other.data, { mode: 0o700 });
  writeFileSync(join(other.data, 'secret.key'), 'another key of somebody');
  await expect(other.restore()).rejects.toThrow(`${join(other.data, 'secret.key')} is another key than that of the backup: move it away`);
  expect(readdirSync(other.data)).toEqual(['secret.key']);
  const same = await newCase();
  mkdirSync(join(same.data, 'lost+found'), { recursive: true, mode: 0o700 });
  mkdirSync(join(same.data, 'inbox'));
  cpSync(join(whole, 'secret.key'), join(same.data, 'secret.key'));
  expect(await same.restore()).toMatchObject({ events: 1, tokens_closed: null });
  expect(readdirSync(same.data)).toEqual(['accounts.secret', 'inbox', 'lost+found', 'secret.key', 'warehouse.duckdb']);
});
