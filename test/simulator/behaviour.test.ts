import { expect, test } from 'vitest';
import { findInstant } from '../../schema/instant.ts';
import { Behaviour } from '../../src/simulator/behaviour.ts';
import { createUserModels } from '../../src/simulator/users/people.ts';

const models = createUserModels(7, 3);
const [ada, , cleo] = models.map(({ person, zone, bedTimesOf }) => new Behaviour(person, zone, bedTimesOf));
const seconds = (text: string) => findInstant(text)!.micros / 1e6;

test('a ring syncs a few times on most days, never before its wearer is awake', () => {
  for (const { person, zone, bedTimesOf } of models) {
    const habits = new Behaviour(person, zone, bedTimesOf);
    let total = 0;
    for (let day = 20_100; day < 20_200; day++) {
      const syncs = habits.syncs(zone.at(day, 0), zone.at(day + 1, 0));
      total += syncs.length;
      expect(syncs.length).toBeLessThanOrEqual(4);
      for (const sync of syncs) expect(sync).toBeGreaterThan((bedTimesOf(day).unworn ?? bedTimesOf(day).night).end);
    }
    expect(total / 100).toBeGreaterThan(1.5);
  }
});

test('the start of a range is not counted in, its end is', () => {
  const sync = seconds('2025-02-18T12:15:04+01:00');
  expect(ada!.syncs(sync - 1, sync)).toEqual([sync]);
  expect(ada!.syncs(sync, sync + 1)).toEqual([]);
});

test('who is away neither syncs nor uploads, and comes back with a sync', () => {
  // cleo is away from 22 to 25 February.
  const [from, to] = [seconds('2025-02-22T00:00:00+05:45'), seconds('2025-02-26T08:09:57+05:45')];
  expect(cleo!.syncs(from, to)).toEqual([to]);
  expect(cleo!.lastUpload(from, to - 1)).toBeUndefined();
  expect(cleo!.next(from)).toBe(to);
  expect(cleo!.lastUpload(from, to + 1800)).toBeGreaterThan(to);
});

test('next leaves out nothing: going from one to the next meets every sync, upload and whim', () => {
  const [from, to] = [seconds('2025-02-10T00:00:00+01:00'), seconds('2025-02-20T00:00:00+01:00')];
  const met = new Set<number>();
  for (let moment = ada!.next(from); moment <= to; moment = ada!.next(moment)) met.add(moment);
  const uploads: number[] = [];
  for (let upload = ada!.lastUpload(from, to); upload !== undefined; upload = ada!.lastUpload(from, upload - 1)) uploads.push(upload);
  expect(uploads.length).toBeGreaterThan(400);
  expect([...met].sort()).toEqual([...new Set([...ada!.syncs(from, to), ...ada!.editMoments(from, to), ...uploads])].sort());
});
