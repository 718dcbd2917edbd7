import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Change } from '../../src/simulator/change.ts';
import { advanceTo, clockOf, makeFolder, openLife, REAL, userIds } from './open-life.ts';

const kept = (folder: string) => JSON.parse(readFileSync(join(folder, 'life.json'), 'utf8'));
const names = (changes: readonly Change[]) => changes.map(({ eventId, event }) => `${eventId} ${event.event_type} ${event.object_id}`);

/** A copy of the folder as it is now: what a process that is killed now leaves behind. */
function killed(folder: string): string {
  const copy = makeFolder();
  cpSync(folder, copy, { recursive: true });
  return copy;
}

it('killed between writing and telling, it tells of the same events by the same names, once', async () => {
  const told: Change[] = [];
  let end = () => {};
  const never = openLife({
    announce: changes => {
      told.push(...changes);
      return new Promise(resolve => {
        end = resolve;
      });
    },
  });
  await never.life.advance(3600);
  const folder = killed(never.folder);
  expect(told.length).toBeGreaterThan(0);
  expect(kept(folder).outbox).toEqual(told);

  const again = openLife({ folder });
  await again.life.setSpeed(0);
  expect(names(again.told)).toEqual(names(told));
  // What was visible stays so, and nothing of it is told of a third time.
  expect(again.life.people().map(({ view }) => view)).toEqual(never.life.people().map(({ view }) => view));
  expect(kept(folder).outbox).toEqual([]);
  const third = openLife({ folder: killed(folder) });
  await third.life.setSpeed(0);
  expect(third.told).toEqual([]);
  end();
});

it('killed before writing, it lives the same hours again with the same outcome', async () => {
  const first = openLife();
  await first.life.advance(5 * 3600);
  const folder = killed(first.folder);
  first.told.length = 0;
  await first.life.advance(30 * 3600);
  const again = openLife({ folder });
  await again.life.advance(30 * 3600);
  expect(first.told.length).toBeGreaterThan(0);
  expect(names(again.told)).toEqual(names(first.told));
  expect(kept(folder).edits).toEqual(kept(first.folder).edits);
});

it('when the file cannot be written nothing has changed, and the next attempt brings all of it', async () => {
  const { life, folder, told } = openLife();
  const before = kept(folder);
  const file = join(folder, 'life.json');
  renameSync(file, join(folder, 'aside'));
  // No file takes the place of a folder.
  mkdirSync(file);
  await expect(life.advance(6 * 3600)).rejects.toThrow();
  rmdirSync(file);
  renameSync(join(folder, 'aside'), file);
  expect([told, life.untold(), life.people().map(({ view }) => view.synced)]).toEqual([[], 0, [0, 0, 0]]);
  expect(kept(folder)).toEqual(before);
  await life.advance(1);
  const other = openLife();
  await other.life.advance(6 * 3600 + 1);
  expect(told.map(({ event }) => event)).toEqual(other.told.map(({ event }) => event));
  expect(told.length).toBeGreaterThan(0);
  // Another life has other names, so that a queue which remembers one does not take them for the same.
  expect(told[0]!.eventId).toMatch(/^[0-9a-f]{8}-1$/);
  expect(other.told[0]!.eventId).not.toBe(told[0]!.eventId);
});

it('events that cannot be queued are kept and tried again, in their order', async () => {
  let broken = true;
  const told: Change[] = [];
  const { life, folder, timer } = openLife({
    announce: async changes => {
      if (broken) throw new Error('no queue');
      told.push(...changes);
    },
  });
  await life.advance(3600);
  await life.advance(3600);
  expect(told).toEqual([]);
  expect(life.untold()).toBe(kept(folder).outbox.length);
  expect(life.untold()).toBeGreaterThan(1);
  expect(timer.ms).toBe(5000);
  const waiting = kept(folder).outbox;
  broken = false;
  timer.fire();
  await life.setSpeed(0);
  expect(told).toEqual(waiting);
  expect([life.untold(), kept(folder).outbox]).toEqual([0, []]);
});

it('with a last day the clock stands where it stood; another last day begins anew there, and edits stay', async () => {
  const first = openLife();
  const [ada] = userIds(first.life);
  await advanceTo(first.life, '2025-02-18T12:20:00+01:00');
  const { id, day } = await first.life.nap(ada, 30);
  await first.life.close();
  const edits = kept(first.folder).edits;

  const second = openLife({ folder: first.folder, realNow: () => REAL + 86_400_000 });
  expect(clockOf(second.life)).toBe('2025-02-18T11:20:00.000+00:00');
  expect(second.life.people()[0]!.view.synced).toBe(Date.parse('2025-02-18T12:20:00+01:00') / 1000);
  await second.life.close();

  const third = openLife({ folder: first.folder, to: '2025-02-20' });
  expect(clockOf(third.life)).toBe('2025-02-21T09:00:00.000+00:00');
  expect(kept(first.folder).edits).toEqual(edits);
  const deleted = await third.life.edit({ kind: 'delete-sleep', userId: ada, day, id });
  expect(deleted.map(({ event_type, object_id }) => [event_type, object_id])).toContainEqual(['delete', id]);
  expect(Number(third.told[0]!.eventId.split('-')[1])).toBeGreaterThanOrEqual(kept(first.folder).next_event - deleted.length);
});

it('without a last day the time between stops passes, and what happened in it is told of', async () => {
  const live = { to: undefined as never, speed: 1 };
  const first = openLife(live);
  await first.life.close();
  const hours = 26;
  const second = openLife({ ...live, folder: first.folder, realNow: () => REAL + hours * 3_600_000 });
  expect(clockOf(second.life)).toBe('2025-03-02T14:00:00.000+00:00');
  expect(second.timer.ms).toBe(50);
  second.timer.fire();
  await second.life.setSpeed(1);
  const created = second.told.filter(({ event }) => event.event_type === 'create' && event.data_type === 'sleep');
  expect(created.map(({ event }) => event.user_id)).toEqual(expect.arrayContaining(userIds(second.life)));
});

it('is a file of its owner; one that is unreadable or of others is named and left alone', () => {
  const { folder, life } = openLife();
  const path = join(folder, 'life.json');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(() => openLife({ folder, seed: 8 })).toThrow(/life\.json is the life of 3 people of seed 7, not of 3 of seed 8/);
  expect(() => openLife({ folder, count: 2 })).toThrow(/not of 2 of seed 7/);
  return life.close().then(() => {
    writeFileSync(path, '{');
    expect(() => openLife({ folder })).toThrow(/life\.json is no life of this program/);
    expect(existsSync(path)).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('{');
  });
});
