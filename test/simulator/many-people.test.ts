import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Change } from '../../src/simulator/change.ts';
import { makeFolder, openTimeline } from './open-timeline.ts';

const HOURS = 30;
const text = (folder: string) => readFileSync(join(folder, 'timeline.json'), 'utf8');
const editsIn = (folder: string) => JSON.parse(text(folder)).edits;
const views = ({ timeline }: ReturnType<typeof openTimeline>) => timeline.people().map(({ view }) => view);
const byName = (changes: readonly Change[]) => new Map(changes.map(({ eventId, event }) => [eventId, event]));

/** Lets 50 people live for more than a day, and looks at them whenever others have their turn. */
async function liveOn(opened: ReturnType<typeof openTimeline>, look: () => void): Promise<void> {
  let isOver = false;
  const living = opened.timeline.advance(HOURS * 3600).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await turn();
    look();
  }
  await living;
}

test('however many people are due, others have their turn after 20 of them', async () => {
  const opened = openTimeline({ count: 50 });
  let before = views(opened);
  const changed: number[] = [];
  await liveOn(opened, () => {
    const after = views(opened);
    changed.push(after.filter((view, i) => view !== before[i]).length);
    before = after;
  });
  expect(Math.max(...changed)).toBeLessThanOrEqual(20);
  // A day of all of them, then the hours after it.
  expect(changed.reduce((sum, count) => sum + count)).toBeGreaterThan(80);
});

test('killed when only some have lived on, it loses, doubles and edits nothing twice', async () => {
  const whole = openTimeline({ count: 50 });
  const { folder } = whole;
  const killed: { folder: string; told: Change[] }[] = [];
  let before = text(folder);
  await liveOn(whole, () => {
    const now = text(folder);
    if (now === before) return;
    before = now;
    const copy = makeFolder();
    cpSync(folder, copy, { recursive: true });
    killed.push({ folder: copy, told: [...whole.told] });
  });
  await whole.timeline.close();
  const expected = byName(whole.told);
  expect([expected.size > 500, editsIn(folder).length > 3, killed.length >= 6]).toEqual([true, true, true]);

  for (const one of killed) {
    const again = openTimeline({ folder: one.folder, count: 50 });
    if (again.timer.ms !== undefined) again.timer.fire();
    await again.timeline.setSpeed(0);
    expect(views(again)).toEqual(views(whole));
    await again.timeline.close();
    expect(byName([...one.told, ...again.told])).toEqual(expected);
    expect(editsIn(one.folder)).toEqual(editsIn(folder));
  }
});
