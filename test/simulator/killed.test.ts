import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import type { Change } from '../../src/simulator/change.ts';
import type { Timeline } from '../../src/simulator/timeline.ts';
import { SINGLE } from '../support/declared.ts';
import { until } from '../support/until.ts';
import { makeFolder, openTimeline, userIds } from './open-timeline.ts';

const SCRIPT = fileURLToPath(new URL('killed.mjs', import.meta.url));
const FROM = '2025-02-01';
/** How long after it has begun to tell it is killed: between writing, telling and writing again. */
const KILLS_MS = [0, 4, 9, 13, 19, 26, 33, 48];

test('killed again and again, it loses no event, names none twice, and what was told of adds up to what is served', async () => {
  const folder = makeFolder();
  const path = join(makeFolder(), 'told.jsonl');
  const readLines = () => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);
  for (const ms of KILLS_MS) {
    const enough = readLines().length + 20;
    const child = spawn(process.execPath, [SCRIPT, inject('compiled'), folder, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    await until('it has told of more', () => readLines().length >= enough);
    await sleep(ms);
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  const { timeline, told } = openTimeline({ folder });
  await timeline.setSpeed(0);

  // The last line of a killed process may be torn; it is told of again.
  const before = readLines()
    .filter(line => line.endsWith('}}'))
    .map(line => JSON.parse(line) as Change);
  const events = new Map<number, Change>();
  for (const change of [...before, ...told]) {
    const number = Number(change.eventId.split('-')[1]);
    expect(events.get(number) ?? change).toEqual(change);
    events.set(number, change);
  }
  expect(events.size).toBeGreaterThan(100);
  expect([...events.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: events.size }, (_, i) => i + 1));

  // A rest mode may have begun before anything was told of.
  const earlier = new Set(await listKeys(openTimeline().timeline, '2025-01-01', '2025-01-31'));
  const there = new Set<string>();
  for (const [, { event }] of [...events].sort(([a], [b]) => a - b)) {
    const key = `${event.user_id} ${event.data_type} ${event.object_id}`;
    expect(there.has(key) || earlier.has(key), `${event.event_type} ${key}`).toBe(event.event_type !== 'create');
    if (event.event_type === 'create') there.add(key);
    if (event.event_type === 'delete') there.delete(key);
  }
  const served = await listKeys(timeline, FROM, '2025-06-30');
  expect([...there].filter(key => !key.includes(' ring_configuration ')).sort()).toEqual(served.sort());
});

/** What a timeline serves of the types that belong to days. */
async function listKeys(timeline: Timeline, from: string, to: string): Promise<string[]> {
  const keys: string[] = [];
  for (const userId of userIds(timeline)) {
    for (const resource of SINGLE.filter(({ dated }) => dated)) {
      const documents = await timeline.source.list(userId, resource, { from, to, limit: 10_000 });
      keys.push(...documents.map(({ id }) => `${userId} ${resource.dataType} ${id}`));
    }
  }
  return keys;
}
