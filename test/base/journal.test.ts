import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { TryLaterError } from '../../src/base/errors.ts';
import { Journal, type JournalOptions, listDamaged } from '../../src/base/journal.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = tempFolder();
let folders = 0;
const newFolder = () => join(root, `j${++folders}`);
const opened: Journal[] = [];
const openJournal = (folder: string, options?: JournalOptions) => {
  const journal = new Journal(folder, options);
  opened.push(journal);
  return journal;
};
afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.close();
});
const held = (folder: string) => {
  const journal = openJournal(folder);
  return journal.keys().map(key => [key, journal.find(key)]);
};

test('what was appended is there when it is opened again, in its order, whatever ended the process', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  await journal.append('1748736000000001', '{"object_id":"ü😀\\u0000"}');
  await Promise.all(['b', 'c', 'd'].map(key => journal.append(key, `text of ${key}`)));
  journal.finish('c');
  // Never closed, as after a kill. What is settled its own ledger knows.
  const again = openJournal(folder);
  expect(again.keys()).toEqual(['1748736000000001', 'b', 'c', 'd']);
  expect(again.find('1748736000000001')).toBe('{"object_id":"ü😀\\u0000"}');
  expect([again.find('c'), again.size, again.has('c'), again.has('e')]).toEqual(['text of c', 4, true, false]);
});

test('its files are for their owner alone', async () => {
  const folder = newFolder();
  await openJournal(folder).append('a', 'x');
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(readdirSync(folder).map(name => [name, statSync(join(folder, name)).mode & 0o777])).toEqual([['0000000001.journal', 0o600]]);
});

test('all that wait at one moment share one sync', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  await journal.append('first', 'x');
  const { FileHandle } = await import('node:fs/promises').then(async ({ open }) => {
    const file = await open(join(folder, '0000000001.journal'));
    await file.close();
    return { FileHandle: Object.getPrototypeOf(file) as { datasync(): Promise<void> } };
  });
  const sync = vi.spyOn(FileHandle, 'datasync');
  await Promise.all(Array.from({ length: 300 }, (_, i) => journal.append(`n-${i}`, 'x')));
  expect(sync.mock.calls.length).toBeLessThanOrEqual(2);
  sync.mockRestore();
  expect(journal.size).toBe(301);
});

test('a line that a crash has torn is ignored, and so is one that the disk has spoilt; what comes later is kept', async () => {
  for (const length of [2, 5, 12, 17]) {
    const folder = newFolder();
    const file = join(folder, '0000000001.journal');
    const journal = openJournal(folder);
    await journal.append('a', 'whole');
    await journal.append('b', 'torn');
    truncateSync(file, statSync(file).size - length);
    const again = openJournal(folder);
    expect(again.keys()).toEqual(['a']);
    await again.append('c', 'later');
    expect(held(folder)).toEqual([
      ['a', 'whole'],
      ['c', 'later'],
    ]);
  }
  const folder = newFolder();
  const journal = openJournal(folder);
  for (const key of ['a', 'b', 'c']) await journal.append(key, `text of ${key}`);
  const file = join(folder, '0000000001.journal');
  writeFileSync(file, readFileSync(file, 'utf8').replace('text of b', 'text of B'));
  appendFileSync(file, Buffer.alloc(4_096));
  expect(held(folder)).toEqual([
    ['a', 'text of a'],
    ['c', 'text of c'],
  ]);
});

test('a file goes as soon as everything in it is settled', async () => {
  const folder = newFolder();
  const journal = openJournal(folder, { fileBytes: 60 });
  for (const key of ['a', 'b', 'c', 'd', 'e']) await journal.append(key, 'x'.repeat(20));
  expect(readdirSync(folder)).toHaveLength(3);
  journal.finish('c');
  expect(readdirSync(folder)).toHaveLength(3);
  journal.finish('d');
  expect(readdirSync(folder)).toEqual(['0000000001.journal', '0000000003.journal']);
  for (const key of ['a', 'b', 'e']) journal.finish(key);
  await journal.close();
  expect(readdirSync(folder)).toEqual([]);
});

test('where it notes itself what is settled, that is known when it is opened again', async () => {
  const folder = newFolder();
  const open = () => openJournal(folder, { notesFinished: true, fileBytes: 60 });
  const journal = open();
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) await journal.append(key, 'x'.repeat(20));
  for (const key of ['f', 'd', 'c', 'b']) journal.finish(key);
  await journal.close();
  const again = open();
  expect(again.keys()).toEqual(['a', 'e']);
  again.finish('a');
  again.finish('e');
  await again.close();
  expect(open().keys()).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

test('a file that is just being made is kept, though the last of what was before it is settled meanwhile', async () => {
  const folder = newFolder();
  const before = openJournal(folder, { notesFinished: true });
  await before.append('a', '1');
  await before.append('b', '2');
  await before.close();
  const journal = openJournal(folder, { notesFinished: true });
  journal.finish('a');
  // Its note goes into a new file, which the disk has not made yet when these have passed.
  for (let n = 0; n < 10; n++) await Promise.resolve();
  journal.finish('b');
  await journal.append('c', '3');
  expect(journal.find('c')).toBe('3');
  await journal.close();
  expect(held(folder)).toEqual([['c', '3']]);
});

test('what is appended after it was written anew is kept', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  await journal.append('a', '1');
  await journal.append('b', '2');
  journal.rewrite(key => key === 'a');
  await journal.append('c', '3');
  await journal.close();
  expect(held(folder)).toEqual([
    ['a', '1'],
    ['c', '3'],
  ]);
});

test('when it cannot be written its caller is told, and the next that can be is', async () => {
  const folder = newFolder();
  const journal = openJournal(folder, { fileBytes: 1 });
  await journal.append('a', 'x');
  // A file in its place, also to root.
  const aside = `${folder}.aside`;
  mkdirSync(aside);
  copyFileSync(join(folder, '0000000001.journal'), join(aside, '0000000001.journal'));
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  const failed = await Promise.allSettled([journal.append('b', 'x'), journal.append('c', 'x')]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(journal.append('d', 'x')).rejects.toThrow(TryLaterError);
  expect([journal.has('b'), journal.has('d')]).toEqual([false, false]);
  rmSync(folder);
  mkdirSync(folder);
  chmodSync(folder, 0o700);
  copyFileSync(join(aside, '0000000001.journal'), join(folder, '0000000001.journal'));
  await journal.append('b', 'y');
  expect(held(folder)).toEqual([
    ['a', 'x'],
    ['b', 'y'],
  ]);
});

test('written anew it holds no byte of what is settled or was not to be kept, also when that was interrupted', async () => {
  const folder = newFolder();
  const journal = openJournal(folder, { fileBytes: 60 });
  for (const key of ['a', 'b', 'c', 'd']) await journal.append(key, `of somebody called ${key}`);
  journal.finish('a');
  await journal.close();
  const other = openJournal(folder);
  other.finish('a');
  other.rewrite((key, text) => key !== 'c' && text.startsWith('of'));
  expect(other.keys()).toEqual(['b', 'd']);
  expect(other.find('d')).toBe('of somebody called d');
  const bytes = readdirSync(folder).map(name => readFileSync(join(folder, name), 'utf8'));
  expect(bytes.join('')).not.toMatch(/called [ac]/);
  // The old files are still there beside the new one, which is half written.
  writeFileSync(join(folder, '0000000001.journal'), bytes.join(''));
  const halves = ['0000000009.journal.77.new', '0000000009.journal.77.0123456789abcdef.new'];
  for (const half of halves) writeFileSync(join(folder, half), 'of somebody called c');
  expect(openJournal(folder).keys()).toEqual(['b', 'd']);
  for (const half of halves) expect(existsSync(join(folder, half))).toBe(false);
  expect(readdirSync(folder)).toHaveLength(1);
});

test('files of others in its folder, which may be a link, stay whatever they are called', async () => {
  const folder = newFolder();
  await openJournal(folder).append('a', 'x');
  const theirs = ['1.journal.77.new', '0000000009.journal.new', 'mail.new', 'thesis.77.new'];
  for (const name of theirs) writeFileSync(join(folder, name), 'theirs');
  expect(openJournal(folder).keys()).toEqual(['a']);
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(theirs));
});

test('a key is kept once, however often and at whatever moment it is appended', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  await Promise.all([journal.append('a', 'x'), journal.append('a', 'x')]);
  await journal.append('a', 'y');
  expect([journal.size, journal.find('a')]).toEqual([1, 'x']);
  journal.finish('a');
  await journal.close();
  expect(readdirSync(folder)).toEqual([]);
});

test('a line that was damaged is told of, its neighbours are kept, and its file is not thrown away', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  for (const key of ['a', 'b', 'c']) await journal.append(key, `text of ${key}`);
  const path = join(folder, '0000000001.journal');
  const content = readFileSync(path, 'utf8');
  writeFileSync(path, content.replace('text of b', 'text oF b'));
  const told: unknown[] = [];
  const again = openJournal(folder, { onDamaged: (file, lines) => told.push([file, lines]) });
  expect([again.keys(), told, again.damaged]).toEqual([['a', 'c'], [[path, 1]], 1]);
  for (const key of ['a', 'c']) again.finish(key);
  expect([readdirSync(folder), listDamaged(folder)]).toEqual([[`0000000001.journal.damaged`], ['0000000001.journal.damaged']]);
  expect(readFileSync(`${path}.damaged`, 'utf8')).toBe(content.replace('text of b', 'text oF b'));
  // A number is not given twice: the next damaged file would take its place.
  const third = openJournal(folder);
  await third.append('d', 'x');
  expect(readdirSync(folder).sort()).toEqual(['0000000001.journal.damaged', '0000000002.journal']);
  // Of whom nothing is to stay, nothing stays in it either.
  third.rewrite(() => true);
  expect(listDamaged(folder)).toEqual([]);
});

test.each([
  ['changed', (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('text of a', 'text oF a'))],
  ['cut', (path: string) => truncateSync(path, 3)],
  ['removed', (path: string) => rmSync(path)],
])('one whose file is %s while it is open is not there any more, and that is told', async (_, damage) => {
  const folder = newFolder();
  let told = 0;
  const journal = openJournal(folder, { onDamaged: () => told++ });
  await journal.append('a', 'text of a');
  damage(join(folder, '0000000001.journal'));
  expect([journal.find('a'), journal.has('a'), journal.size, told]).toEqual([undefined, false, 0, 1]);
  await journal.append('b', 'text of b');
});

test('what a crash has torn at the end of a file is no damage: it was promised to nobody', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  for (const key of ['a', 'b']) await journal.append(key, `text of ${key}`);
  const path = join(folder, '0000000001.journal');
  truncateSync(path, statSync(path).size - 4);
  const again = openJournal(folder);
  expect([again.keys(), again.damaged]).toEqual([['a'], 0]);
});

test('a disk’s fault at the end of a file loses no line that is whole, and is told of where nothing but zeros is left', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  for (const key of ['a', 'b']) await journal.append(key, `text of ${key}`);
  await journal.close();
  const path = join(folder, '0000000001.journal');
  const content = readFileSync(path);
  for (const end of [content.subarray(0, -1), Buffer.concat([content.subarray(0, -1), Buffer.from([0x0b])])]) {
    writeFileSync(path, end);
    const again = openJournal(folder);
    expect([again.keys(), again.find('b'), again.damaged]).toEqual([['a', 'b'], 'text of b', 0]);
    await again.close();
  }
  writeFileSync(path, Buffer.concat([content.subarray(0, -8), Buffer.alloc(8)]));
  const again = openJournal(folder);
  expect([again.keys(), again.damaged]).toEqual([['a'], 1]);
});

test('a folder that takes no file is known before anything is appended', async () => {
  const folder = newFolder();
  const journal = openJournal(folder);
  await journal.ensureWritable();
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  await expect(journal.ensureWritable()).rejects.toThrow(folder);
  rmSync(folder);
});

test('a copy has what is not finished, is a journal of its own, and leaves the one that it is of as it was', async () => {
  const folder = newFolder();
  const journal = openJournal(folder, { fileBytes: 60 });
  for (const key of ['1', '2', '3', '4']) await journal.append(key, `{"object_id":"ü-${key}"}`);
  journal.finish('2');
  const copy = join(newFolder(), 'inbox');
  expect(journal.copyTo(copy)).toBe(3);
  await journal.append('5', 'later');
  expect(readdirSync(copy)).toEqual(['0000000001.journal']);
  expect(statSync(join(copy, '0000000001.journal')).mode & 0o777).toBe(0o600);
  const kept = ['1', '3', '4'].map(key => [key, `{"object_id":"ü-${key}"}`]);
  expect(held(copy)).toEqual(kept);
  expect(journal.keys().map(key => [key, journal.find(key)])).toEqual([...kept, ['5', 'later']]);
});

test('of a journal in which nothing waits nothing is copied', async () => {
  const journal = openJournal(newFolder());
  await journal.append('1', 'one');
  journal.finish('1');
  const copy = newFolder();
  expect([journal.copyTo(copy), existsSync(copy)]).toEqual([0, false]);
});
