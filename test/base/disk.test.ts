import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { ensureDiskReserve } from '../../src/base/disk.ts';
import { RingneckError } from '../../src/base/errors.ts';

const MB = 1024 * 1024;

test('too little free space is an error that names the folder, what is free and what to do', () => {
  const full = () => 511.9 * MB;
  expect(() => ensureDiskReserve('/data/full', undefined, full)).toThrow(RingneckError);
  expect(() => ensureDiskReserve('/data/full', undefined, full)).toThrow(
    'The disk of /data/full is almost full: 511 MB free, and 512 MB are kept in reserve. ' +
      'Make room (or use a larger disk): what waits goes on, and what ended continues where it was when it is started again.',
  );
});

test('what is free is looked at every time, so a disk that fills between two groups stops the second', () => {
  let free = 600 * MB;
  ensureDiskReserve('/data', undefined, () => free);
  free = 0;
  expect(() => ensureDiskReserve('/data', undefined, () => free)).toThrow(/0 MB free/);
});

test('a file system that does not tell is no reason to stop', () => {
  ensureDiskReserve('/data/unknown', undefined, () => undefined);
});

test('the real disk: one byte is free, all the bytes of the world are not', () => {
  ensureDiskReserve(tmpdir(), 1);
  expect(() => ensureDiskReserve(tmpdir(), Number.MAX_SAFE_INTEGER)).toThrow(/is almost full/);
  expect(() => ensureDiskReserve('/nowhere/at/all')).toThrow(/The free space of \/nowhere\/at\/all cannot be read: .*ENOENT/);
});
