import type { WireDocument } from '../../schema/resource.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { newPath, openWarehouse } from '../support/warehouse.ts';
import type { Row, Stored, StoredHeartRate } from './views-oracle.ts';
import { baselines, daily, weekly } from './views-oracle-days.ts';
import { activityClasses, heartRateAll, heartRateSources, metMinutes } from './views-oracle-series.ts';
import { countedSleeps, hrvNights, naps, nights, sleepMovement, sleepStageSpans, sleepStages } from './views-oracle-sleeps.ts';
import { PARTICIPANTS, workouts } from './views-oracle-workouts.ts';

/** What tells the rows of each view apart. */
const KEYS: Record<string, string[]> = {
  daily: ['day'],
  nights: ['day'],
  naps: ['day', 'sleep_id'],
  counted_sleeps: ['day', 'sleep_id'],
  sleep_stages: ['sleep_id', 'position'],
  sleep_stage_spans: ['sleep_id', 'span'],
  sleep_movement: ['sleep_id', 'position'],
  activity_classes: ['activity_id', 'position'],
  met_minutes: ['day', 'ts', 'met', 'class', 'utc_offset', 'seconds'],
  hrv_nights: ['day'],
  heart_rate_sources: ['ts', 'origin', 'source', 'sk'],
  heart_rate_all: ['ts'],
  baselines: ['day', 'metric'],
  weekly: ['week'],
  workouts: ['workout_id'],
};

/** What is stored of one person, answer by answer. */
export interface Told {
  user: string;
  answers: readonly { resource: string; documents: readonly WireDocument[]; removed: readonly string[] }[];
  heartRate: readonly WireDocument[];
}

/** Stores what is told of people in a new warehouse, and gives what differs between each of its views and what it should hold. */
export async function findDifferences(folder: string, people: Iterable<Told>): Promise<Record<string, unknown[]>> {
  const warehouse = await openWarehouse(newPath(folder));
  try {
    const { stored, heartRate } = await storeAll(warehouse, people);
    const found: Record<string, unknown[]> = {};
    for (const [view, rows] of Object.entries(expectedViews(stored, heartRate))) {
      const differing = await differences(warehouse, view, rows);
      if (differing.length) found[view] = differing;
    }
    return found;
  } finally {
    await warehouse.close();
  }
}

async function storeAll(warehouse: Warehouse, people: Iterable<Told>): Promise<{ stored: Stored[]; heartRate: StoredHeartRate[] }> {
  const stored = new Map<string, Stored>();
  const heartRate: StoredHeartRate[] = [];
  let sk = 0;
  await warehouse.record(Object.entries(PARTICIPANTS).map(([user_id, row]) => ({ table: 'participants', key: { user_id }, row })));
  for (const { user: userId, answers, heartRate: rows } of people) {
    for (const { resource, documents, removed } of answers) {
      const requestedAt = warehouse.clock.lease();
      await warehouse.storeDocuments({ userId, resource: warehouse.mapping(resource).resource, requestedAt, documents, removed });
      const keyOf = (id: unknown) => `${resource} ${id} ${userId}`;
      for (const document of documents) {
        // What is as it was keeps its version.
        if (JSON.stringify(stored.get(keyOf(document.id))?.document) === JSON.stringify(document)) continue;
        stored.set(keyOf(document.id), { user: userId, resource, sk: ++sk, document });
      }
      for (const id of removed) stored.delete(keyOf(id));
    }
    await warehouse.storeHeartRate({ userId, from: 0, to: 4e15, requestedAt: warehouse.clock.lease(), rows });
    for (const row of rows) heartRate.push({ user: userId, row });
  }
  return { stored: [...stored.values()], heartRate };
}

function expectedViews(stored: readonly Stored[], heartRate: readonly StoredHeartRate[]): Record<string, Row[]> {
  const days = daily(stored);
  return {
    daily: days,
    nights: nights(stored),
    naps: naps(stored),
    counted_sleeps: countedSleeps(stored),
    sleep_stages: sleepStages(stored),
    sleep_stage_spans: sleepStageSpans(stored),
    sleep_movement: sleepMovement(stored),
    activity_classes: activityClasses(stored),
    met_minutes: metMinutes(stored),
    hrv_nights: hrvNights(stored),
    heart_rate_sources: heartRateSources(stored, heartRate),
    heart_rate_all: heartRateAll(stored, heartRate),
    baselines: baselines(days),
    weekly: weekly(days),
    workouts: workouts(stored, heartRate),
  };
}

/** But for the rounding of sums. */
const isClose = (a: unknown, b: unknown) =>
  a === b || (typeof a === 'number' && typeof b === 'number' && Math.abs(a - b) <= 1e-12 + 1e-9 * Math.max(Math.abs(a), Math.abs(b)));

/** The rows of a view that are not as expected, at most ten, each with what differs. */
async function differences(warehouse: Warehouse, view: string, expected: readonly Row[]): Promise<unknown[]> {
  const columns = (await warehouse.read(`SELECT column_name FROM duckdb_columns() WHERE table_name = '${view}'`)).map(
    ([name]) => name as string,
  );
  const found = (await warehouse.read(`SELECT ${columns.join()} FROM ${view}`)).map(
    values => Object.fromEntries(columns.map((column, i) => [column, values[i]])) as Row,
  );
  const keyOf = (row: Row) => JSON.stringify(['user_id', ...KEYS[view]!].map(column => row[column]));
  const sorted = (rows: readonly Row[]) => rows.map(row => [keyOf(row), row] as const).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const [left, right] = [sorted(expected), sorted(found)];
  const differing: unknown[] = [];
  for (let i = 0, j = 0; (i < left.length || j < right.length) && differing.length < 10; ) {
    const [[key, want] = [], [other, is] = []] = [left[i], right[j]];
    if (key === other) {
      const different = columns.filter(column => !isClose(want![column], is![column]));
      if (different.length) differing.push({ key, ...Object.fromEntries(different.map(column => [column, [want![column], is![column]]])) });
      i++;
      j++;
    } else if (other === undefined || (key !== undefined && key < other)) {
      differing.push({ key, missing: want });
      i++;
    } else {
      differing.push({ key: other, unexpected: is });
      j++;
    }
  }
  return differing;
}
