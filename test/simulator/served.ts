import { resources } from '../../schema/index.ts';
import type { WireDocument } from '../../schema/resource.ts';
import type { Timeline } from '../../src/simulator/timeline.ts';

/** What a timeline serves of a day, by resource. */
const served =
  (name: string) =>
  (timeline: Timeline, userId: string, day: string): Promise<WireDocument[]> =>
    timeline.source.list(userId, resources.find(resource => resource.name === name)!, { from: day, to: day, limit: 1000 });

export const sleeps = served('sleep');
export const activity = served('daily_activity');
