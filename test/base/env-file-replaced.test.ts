import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { readSettings } from '../../src/base/config.ts';
import { loadEnvFile } from '../../src/base/env-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const meanwhile = vi.hoisted(() => ({ act: () => {}, actBefore: () => {} }));
vi.mock('node:fs', async load => {
  const fs = await load<typeof import('node:fs')>();
  const readFileSync = (...given: Parameters<typeof fs.readFileSync>) => {
    meanwhile.actBefore();
    const read = fs.readFileSync(...given);
    meanwhile.act();
    return read;
  };
  return { ...fs, readFileSync };
});

test('a file that others can write is refused also where one of the user’s own is put in its place once it was read', () => {
  const [path, own] = [join(folder, '.env'), join(folder, 'own')];
  writeFileSync(own, 'PATH=/nowhere\n', { mode: 0o600 });
  writeFileSync(path, 'RINGNECK_ON_FAILURE=/tmp/of-somebody-else\n');
  chmodSync(path, 0o666);
  meanwhile.act = () => {
    meanwhile.act = () => {};
    renameSync(own, path);
  };
  const env = {};
  expect(() => loadEnvFile(env, path)).toThrow(`${path} is writable by others (0666): chmod go= ${path}`);
  expect(env).toEqual({});
});

test('a secret is taken from the file that was looked at, whatever is put in its place before it is read', () => {
  const [path, other] = [join(folder, 'secret'), join(folder, 'other')];
  writeFileSync(path, 'of-the-user', { mode: 0o600 });
  writeFileSync(other, 'of-somebody-else');
  chmodSync(other, 0o666);
  meanwhile.actBefore = () => {
    meanwhile.actBefore = () => {};
    renameSync(other, path);
  };
  const settings = readSettings({ RINGNECK_SERVICE_URL: 'https://a.example', RINGNECK_CLIENT_ID: 'x', RINGNECK_CLIENT_SECRET_FILE: path });
  expect(settings.signIn?.clientSecret).toBe('of-the-user');
});
