import { expect, it } from 'vitest';
import { findName, writeId } from '../../../src/simulator/users/identity.ts';

const name = { person: 3, kind: 'sleep', day: 20_200, ordinal: 2 };

it('looks like a random UUID and names what it was made from', () => {
  const id = writeId(7, name);
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(findName(7, 'sleep', id)).toEqual(name);
  for (const day of [-719_000 + 700_000, 0, 524_287]) expect(findName(7, 'sleep', writeId(7, { ...name, day }))).toEqual({ ...name, day });
});

it('is nothing to another seed, nor with any digit changed', () => {
  const id = writeId(7, name);
  expect(findName(8, 'sleep', id)).toBeUndefined();
  for (let i = 0; i < id.length; i++) {
    const other = id[i] === '0' ? '1' : '0';
    expect(findName(7, 'sleep', id.slice(0, i) + other + id.slice(i + 1))).toBeUndefined();
  }
});

it('refuses what does not fit', () => {
  for (const wrong of [{ person: 65_536 }, { ordinal: 256 }, { day: 524_288 }, { day: -524_289 }]) {
    expect(() => writeId(7, { ...name, ...wrong })).toThrow(RangeError);
  }
});

it('is found as what it is, also of a kind that has no number', () => {
  const kinds = ['sleep', 'session', 'hydration', 'workout'];
  for (const kind of kinds) {
    const id = writeId(7, { ...name, kind });
    expect(kinds.filter(each => findName(7, each, id))).toEqual([kind]);
  }
  expect(writeId(7, name)).toBe('f69d0615-bb5f-43b3-8a9d-ec901436ac78');
});
