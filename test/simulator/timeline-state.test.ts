import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Change } from '../../src/simulator/change.ts';
import { advanceTo, clockOf, makeFolder, openTimeline, REAL, userIds } from './open-timeline.ts';

const kept = (folder: string) => JSON.parse(readFileSync(join(folder, 'timeline.json'), 'utf8'));
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
  const never = openTimeline({
    announce: changes => {
      told.push(...changes);
      return new Promise(resolve => {
        end = resolve;
      });
    },
  });
  await never.timeline.advance(3600);
  const folder = killed(never.folder);
  expect(told.length).toBeGreaterThan(0);
  expect(kept(folder).outbox).toEqual(told);

  const again = openTimeline({ folder });
  await again.timeline.setSpeed(0);
  expect(names(again.told)).toEqual(names(told));
  // What was visible stays so, and nothing of it is told of a third time.
  expect(again.timeline.people().map(({ view }) => view)).toEqual(never.timeline.people().map(({ view }) => view));
  expect(kept(folder).outbox).toEqual([]);
  const third = openTimeline({ folder: killed(folder) });
  await third.timeline.setSpeed(0);
  expect(third.told).toEqual([]);
  end();
});

it('killed before writing, it lives the same hours again with the same outcome', async () => {
  const first = openTimeline();
  await first.timeline.advance(5 * 3600);
  const folder = killed(first.folder);
  first.told.length = 0;
  await first.timeline.advance(30 * 3600);
  const again = openTimeline({ folder });
  await again.timeline.advance(30 * 3600);
  expect(first.told.length).toBeGreaterThan(0);
  expect(names(again.told)).toEqual(names(first.told));
  expect(kept(folder).edits).toEqual(kept(first.folder).edits);
});

it('when the file cannot be written nothing has changed, and the next attempt brings all of it', async () => {
  const { timeline, folder, told } = openTimeline();
  const before = kept(folder);
  const file = join(folder, 'timeline.json');
  renameSync(file, join(folder, 'aside'));
  // No file takes the place of a folder.
  mkdirSync(file);
  await expect(timeline.advance(6 * 3600)).rejects.toThrow();
  rmdirSync(file);
  renameSync(join(folder, 'aside'), file);
  expect([told, timeline.untold(), timeline.people().map(({ view }) => view.synced)]).toEqual([[], 0, [0, 0, 0]]);
  expect(kept(folder)).toEqual(before);
  await timeline.advance(1);
  const other = openTimeline();
  await other.timeline.advance(6 * 3600 + 1);
  expect(told.map(({ event }) => event)).toEqual(other.told.map(({ event }) => event));
  expect(told.length).toBeGreaterThan(0);
  // Another timeline has other names, so that a queue which remembers one does not take them for the same.
  expect(told[0]!.eventId).toMatch(/^[0-9a-f]{8}-1$/);
  expect(other.told[0]!.eventId).not.toBe(told[0]!.eventId);
});

it('events that cannot be queued are kept and tried again, in their order', async () => {
  let broken = true;
  const told: Change[] = [];
  const { timeline, folder, timer } = openTimeline({
    announce: async changes => {
      if (broken) throw new Error('no queue');
      told.push(...changes);
    },
  });
  await timeline.advance(3600);
  await timeline.advance(3600);
  expect(told).toEqual([]);
  expect(timeline.untold()).toBe(kept(folder).outbox.length);
  expect(timeline.untold()).toBeGreaterThan(1);
  expect(timer.ms).toBe(5000);
  const waiting = kept(folder).outbox;
  broken = false;
  timer.fire();
  await timeline.setSpeed(0);
  expect(told).toEqual(waiting);
  expect([timeline.untold(), kept(folder).outbox]).toEqual([0, []]);
});

it('with a last day the clock stands where it stood; another last day begins anew there, and edits stay', async () => {
  const first = openTimeline();
  const [ada] = userIds(first.timeline);
  await advanceTo(first.timeline, '2025-02-18T12:20:00+01:00');
  const { id, day } = await first.timeline.nap(ada, 30);
  await first.timeline.close();
  const edits = kept(first.folder).edits;

  const second = openTimeline({ folder: first.folder, realNow: () => REAL + 86_400_000 });
  expect(clockOf(second.timeline)).toBe('2025-02-18T11:20:00.000+00:00');
  expect(second.timeline.people()[0]!.view.synced).toBe(Date.parse('2025-02-18T12:20:00+01:00') / 1000);
  await second.timeline.close();

  const third = openTimeline({ folder: first.folder, to: '2025-02-20' });
  expect(clockOf(third.timeline)).toBe('2025-02-21T09:00:00.000+00:00');
  expect(kept(first.folder).edits).toEqual(edits);
  const deleted = await third.timeline.edit({ kind: 'delete-sleep', userId: ada, day, id });
  expect(deleted.map(({ event_type, object_id }) => [event_type, object_id])).toContainEqual(['delete', id]);
  expect(Number(third.told[0]!.eventId.split('-')[1])).toBeGreaterThanOrEqual(kept(first.folder).next_event - deleted.length);
});

it('without a last day the time between stops passes, and what happened in it is told of', async () => {
  const live = { to: undefined as never, speed: 1 };
  const first = openTimeline(live);
  await first.timeline.close();
  const hours = 26;
  const second = openTimeline({ ...live, folder: first.folder, realNow: () => REAL + hours * 3_600_000 });
  expect(clockOf(second.timeline)).toBe('2025-03-02T14:00:00.000+00:00');
  expect(second.timer.ms).toBe(50);
  second.timer.fire();
  await second.timeline.setSpeed(1);
  const created = second.told.filter(({ event }) => event.event_type === 'create' && event.data_type === 'sleep');
  expect(created.map(({ event }) => event.user_id)).toEqual(expect.arrayContaining(userIds(second.timeline)));
});

it('is a file of its owner; one that is unreadable or of others is named and left alone', () => {
  const { folder, timeline } = openTimeline();
  const path = join(folder, 'timeline.json');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(() => openTimeline({ folder, seed: 8 })).toThrow(/timeline\.json is the timeline of 3 people of seed 7, not of 3 of seed 8/);
  expect(() => openTimeline({ folder, count: 2 })).toThrow(/not of 2 of seed 7/);
  return timeline.close().then(() => {
    writeFileSync(path, '{');
    expect(() => openTimeline({ folder })).toThrow(/timeline\.json is no timeline of this program/);
    expect(existsSync(path)).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('{');
  });
});
