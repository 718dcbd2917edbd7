import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { resources } from '../../schema/index.ts';
import { formatInstant } from '../../schema/instant.ts';
import type { WebhookEvent } from '../../schema/webhook.ts';
import type { Change } from '../../src/simulator/change.ts';
import { Timeline, type TimelineOptions } from '../../src/simulator/timeline.ts';

export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'timeline-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface OpenedTimeline {
  timeline: Timeline;
  folder: string;
  /** All that was told of, in order. */
  told: Change[];
  /** Real time, in milliseconds; tests set it. */
  real: { now: number };
  /** The one timer that the timeline has set: how long it waits, and what it then does. */
  timer: { ms: number | undefined; fire(): void };
}

/** 1 March 2025, 12:00 UTC. */
export const REAL = Date.UTC(2025, 2, 1, 12);

/** The timeline of ada, ben and cleo up to the end of January 2025, its clock standing still; with a real clock and a timer of the test's own. */
export function openTimeline(changed: Partial<TimelineOptions> = {}): OpenedTimeline {
  const told: Change[] = [];
  const real = { now: REAL };
  const timer: OpenedTimeline['timer'] = { ms: undefined, fire: () => undefined };
  const folder = changed.folder ?? makeFolder();
  const timeline = new Timeline({
    folder,
    seed: 7,
    count: 3,
    from: '2025-01-01',
    to: '2025-01-31',
    speed: 0,
    resources,
    announce: async changes => void told.push(...changes),
    realNow: () => real.now,
    timers: {
      set(run, ms) {
        timer.ms = ms;
        timer.fire = run;
        return timer;
      },
      clear(set) {
        if (set === timer) timer.ms = undefined;
      },
    },
    ...changed,
  });
  onTestFinished(() => timeline.close());
  return { timeline, folder, told, real, timer };
}

/** Moves the clock to a moment, in one go. */
export async function advanceTo(timeline: Timeline, moment: string): Promise<void> {
  const seconds = Math.round((Date.parse(moment) - timeline.clock.now()) / 1000);
  await timeline.advance(seconds);
}

export const userIds = (timeline: Timeline) => timeline.people().map(({ person }) => person.userId) as [string, string, string];

/** Events as `operation data_type`, sorted. */
export const short = (events: readonly WebhookEvent[]) => events.map(({ event_type, data_type }) => `${event_type} ${data_type}`).sort();

export const clockOf = (timeline: Timeline) => formatInstant({ micros: timeline.clock.now() * 1000, offset: 0 });
