import { expect, test } from 'vitest';
import { BloomFilter } from '../../src/warehouse/store/bloom-filter.ts';
import { type KeySource, KnownVersions, type Version } from '../../src/warehouse/store/known-versions.ts';

const version = (sk: number): Version => ({ sk, day: '2025-03-30', fetchedAt: 1_743_300_000_000_000, hash: `h${sk}` });

function promised<T = void>() {
  let resolve = (_: T) => {};
  const promise = new Promise<T>(kept => {
    resolve = kept;
  });
  return { promise, resolve };
}

/** Keys that are given when the test says so. */
function sourceOf(keys: readonly string[]) {
  const [asked, given] = [promised(), promised()];
  const source: KeySource = {
    count: async () => keys.length,
    async read(add) {
      asked.resolve();
      await given.promise;
      for (const key of keys) add(key);
    },
  };
  return { source, asked: asked.promise, give: given.resolve };
}

/** One transaction that is told from beginning to end. */
function commit(known: KnownVersions, from: number, changes: Record<string, Version | undefined>): void {
  known.begin(from);
  known.follow();
  for (const [key, changed] of Object.entries(changes)) known.change(key, changed);
  known.end(from + 1);
}

async function learnt(keys: readonly string[]): Promise<KnownVersions> {
  const { source, give } = sourceOf(keys);
  const known = new KnownVersions(source, 0);
  give();
  commit(known, 7, {});
  await expect.poll(() => known.find('of nobody')).toBe('none');
  return known;
}

test('of a document that was stored its version is known, of one that was removed nothing', () => {
  const known = new KnownVersions(sourceOf([]).source);
  commit(known, 7, { a: version(1), b: version(2) });
  known.begin(8);
  expect([known.find('a'), known.find('b'), known.find('c')]).toEqual([version(1), version(2), undefined]);
  known.follow();
  known.change('a', version(3));
  known.change('b', undefined);
  known.end(9);
  known.begin(9);
  expect([known.find('a'), known.find('b')]).toEqual([version(3), undefined]);
});

test('what a transaction that failed has told is not known', () => {
  const known = new KnownVersions(sourceOf([]).source);
  commit(known, 7, { a: version(1) });
  known.begin(8);
  known.follow();
  known.change('a', version(2));
  known.end(undefined);
  known.begin(8);
  expect(known.find('a')).toEqual(version(1));
});

test.each([
  ['a commit of somebody else', (known: KnownVersions) => known.begin(10)],
  [
    'a commit that told nothing',
    (known: KnownVersions) => {
      known.begin(9);
      known.end(10);
      known.begin(10);
    },
  ],
  [
    'a commit of which no answer came',
    (known: KnownVersions) => {
      known.begin(9);
      known.follow();
      known.end(undefined);
      known.begin(10);
    },
  ],
])('after %s nothing is known', async (_, happens) => {
  const known = await learnt(['old']);
  commit(known, 8, { a: version(1) });
  expect([known.find('a'), known.find('old'), known.find('none')]).toEqual([version(1), undefined, 'none']);
  happens(known);
  expect([known.find('a'), known.find('old'), known.find('none')]).toEqual([undefined, undefined, undefined]);
});

test('with all keys learnt a document that nobody has stored is known to be none', async () => {
  const known = await learnt(['old', 'older']);
  known.begin(8);
  expect([known.find('old'), known.find('older'), known.find('new')]).toEqual([undefined, undefined, 'none']);
});

test('what is stored while the keys are read is never taken for absent', async () => {
  const { source, asked, give } = sourceOf(['old']);
  const count = promised<number>();
  const known = new KnownVersions({ ...source, count: () => count.promise }, 0);
  commit(known, 7, {});
  // It is told of before the reading begins, and committed after the table was read.
  known.begin(8);
  known.follow();
  known.change('early', version(1));
  count.resolve(1);
  await asked;
  known.change('late', version(2));
  known.end(9);
  // The versions leave memory, the keys do not.
  known.begin(9);
  known.follow();
  known.change('early', undefined);
  known.change('late', undefined);
  known.end(10);
  give();
  await expect.poll(() => known.find('of nobody')).toBe('none');
  expect([known.find('early'), known.find('late'), known.find('old')]).toEqual([undefined, undefined, undefined]);
});

test('keys that were read while somebody else committed are not kept', async () => {
  const { source, asked, give } = sourceOf(['old']);
  const known = new KnownVersions(source, 0);
  commit(known, 7, {});
  await asked;
  known.begin(12);
  give();
  await known.close();
  expect(known.find('new')).toBeUndefined();
});

test('closed while it is counted how many keys there are, none is read', async () => {
  const count = promised<number>();
  let reads = 0;
  const known = new KnownVersions({ count: () => count.promise, read: async () => void reads++ }, 0);
  commit(known, 7, {});
  const closed = known.close();
  count.resolve(1);
  await closed;
  expect(reads).toBe(0);
});

test('keys are learnt when reading has cost as much as learning them', async () => {
  let reads = 0;
  const known = new KnownVersions({ count: async () => 1_000_000, read: async () => void reads++ }, 500);
  const spend = async (from: number, ms: number) => {
    known.begin(from);
    known.follow();
    known.noteRead(ms);
    known.end(from + 1);
    await new Promise(setImmediate);
  };
  await spend(7, 499);
  await spend(8, 2_000);
  expect(reads).toBe(0);
  await spend(9, 1);
  expect(reads).toBe(1);
});

test('a filter lacks none of what was added, and takes one in a thousand others for it at most', () => {
  const filter = new BloomFilter(60_000);
  for (let i = 0; i < 60_000; i++) filter.add(`sleep\nann\n${i}`);
  expect(filter.isFull).toBe(false);
  expect(Array.from({ length: 60_000 }, (_, i) => i).filter(i => !filter.mayHave(`sleep\nann\n${i}`))).toEqual([]);
  const taken = Array.from({ length: 60_000 }, (_, i) => i).filter(i => filter.mayHave(`sleep\nben\n${i}`)).length;
  expect(taken).toBeLessThanOrEqual(60);
});

test('a filter that holds more than it was made for says so', () => {
  const filter = new BloomFilter(1);
  for (let i = 0; i <= 65_536; i++) filter.add(String(i));
  expect(filter.isFull).toBe(true);
});
