import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RingneckError } from '../../src/base/errors.ts';
import { ensureFolder, realPath, writeFileAtomically } from '../../src/base/files.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const modeOf = (path: string) => statSync(path).mode & 0o777;

test('a folder is made with those above it, for its owner only, and one that is there stays as it is', () => {
  const open = join(folder, 'open');
  mkdirSync(open);
  chmodSync(open, 0o755);
  const deep = join(open, 'a', 'b', 'c');
  ensureFolder(deep);
  ensureFolder(deep);
  ensureFolder(open);
  expect([open, join(open, 'a'), join(open, 'a', 'b'), deep].map(modeOf)).toEqual([0o755, 0o700, 0o700, 0o700]);
});

test('a link to a folder is a folder', () => {
  mkdirSync(join(folder, 'target'));
  symlinkSync(join(folder, 'target'), join(folder, 'link'));
  ensureFolder(join(folder, 'link', 'x'));
  expect(modeOf(join(folder, 'target', 'x'))).toBe(0o700);
});

test('a file in its place or above it, and a link to nothing, are refused', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling'));
  for (const path of [file, join(file, 'x'), join(folder, 'dangling'), join(folder, 'dangling', 'x')]) {
    expect(() => ensureFolder(path)).toThrow(RingneckError);
    expect(() => ensureFolder(path)).toThrow(`cannot make the folder ${path}: E`);
  }
});

// Node's own recursive mkdir never comes back from there.
test.runIf(process.platform === 'linux')('below a folder that takes no others it is refused, and says which that is', () => {
  for (const path of ['/proc/ringneck', '/proc/ringneck/deeper']) {
    expect(() => ensureFolder(path)).toThrow(`cannot make the folder ${path}: /proc takes no folders: name another place`);
  }
});

test('a file is replaced whole, and whatever others have put where its new content might be written stays as it is', () => {
  const place = join(folder, 'shared');
  mkdirSync(place);
  const thesis = join(folder, 'thesis.txt');
  writeFileSync(thesis, 'theirs');
  symlinkSync(thesis, join(place, `export.json.${process.pid}.new`));
  for (const content of ['first', 'second']) writeFileAtomically(join(place, 'export.json'), content);
  expect(readFileSync(join(place, 'export.json'), 'utf8')).toBe('second');
  expect(readFileSync(thesis, 'utf8')).toBe('theirs');
  expect(readdirSync(place)).toEqual(['export.json', `export.json.${process.pid}.new`]);
});

test('a link that leads in a circle is told of, one that leads to a file which is yet to be made leads there', () => {
  symlinkSync('circle', join(folder, 'circle'));
  expect(() => realPath(join(folder, 'circle'))).toThrow('circle is a link that leads in a circle: remove it');
  symlinkSync('there', join(folder, 'here'));
  expect(realPath(join(folder, 'here'))).toBe(join(folder, 'there'));
});
