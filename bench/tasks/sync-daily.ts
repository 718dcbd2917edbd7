import { statSync } from 'node:fs';
import { resources } from '../../schema/index.ts';
import { addDays, findInstant } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { COLLECTIONS, HEART_RATE, type Recorded, type Recording, readRecorded, resourceNamed, slice } from '../recording.ts';
import { performTask } from '../task.ts';

export interface SyncJob {
  recording: Recording;
  /** How many days from its first. */
  days: number;
  path: string;
  /** Where the snapshot is put. */
  snapshot: string;
}

export interface Synced {
  syncs: number;
  samples: number;
  /** Of the closed file and of the snapshot. */
  bytes: number;
  snapshotBytes: number;
  /** How often the file was compacted. */
  compacted: number;
}

/** When a ring syncs, UTC; each person some minutes after the one before. */
const HOURS = [7, 12, 17, 22];
const MINUTES_APART = 7;
const NIGHTLY = ['sleep', 'daily_sleep', 'daily_readiness', 'daily_spo2'];

interface Person {
  userId: string;
  documents: Map<string, Map<string, WireDocument[]>>;
  heartRate: Recorded;
}

/**
 * Days as they come in: each ring syncs several times a day, and each time the day's activity and stress and the last two days of heart rate
 * come anew, in the morning also the night and what was missing of yesterday; once a week somebody edits a night and an activity of days ago. At
 * midnight, when nobody syncs, the file is compacted where that is due, as `up` does it.
 */
performTask(async ({ recording, days, path, snapshot }: SyncJob): Promise<Synced> => {
  let clock = Date.parse(recording.from);
  let warehouse = await Warehouse.open({ path, resources, now: () => clock });
  const people = recording.users.map(userId => readPerson(recording, userId));
  let syncs = 0;
  let compacted = 0;

  async function midnight(): Promise<void> {
    if (!(await warehouse.size()).isDue) return;
    await warehouse.compact();
    compacted++;
  }

  const store = (userId: string, collection: string, documents: WireDocument[]) =>
    documents.length
      ? warehouse.storeDocuments(
          { userId, resource: resourceNamed(collection), requestedAt: warehouse.clock.next(), documents },
          { lane: 'live' },
        )
      : undefined;

  async function sync({ userId, documents, heartRate }: Person, day: string, hour: number, edits: boolean): Promise<void> {
    const of = (collection: string, before = 0) => documents.get(collection)!.get(addDays(day, -before)) ?? [];
    const isFirst = hour === HOURS[0];
    const [from, to] = [Date.parse(addDays(day, -1)), Date.parse(addDays(day, 1))];
    const storing: unknown[] = [
      store(userId, 'daily_activity', [
        ...of('daily_activity').flatMap(document => untilNow(document, clock)),
        ...(isFirst ? of('daily_activity', 1) : []),
      ]),
      store(userId, 'daily_stress', [
        ...of('daily_stress').map(document => ({ ...document, stress_high: Math.floor((Number(document.stress_high ?? 0) * hour) / 24) })),
        ...(isFirst ? of('daily_stress', 1) : []),
      ]),
      warehouse.storeHeartRate(
        {
          userId,
          from: from * 1000,
          to: to * 1000,
          requestedAt: warehouse.clock.next(),
          rows: rowsOf(heartRate, from, clock),
        },
        // Hours lie between two syncs: it waits for no other.
        { lane: 'live' },
      ),
    ];
    if (isFirst) for (const collection of NIGHTLY) storing.push(store(userId, collection, of(collection)));
    if (edits) {
      storing.push(
        store(
          userId,
          'sleep',
          of('sleep', 2).map(document => ({ ...document, awake_time: Number(document.awake_time ?? 0) + 60 })),
        ),
      );
      storing.push(
        store(
          userId,
          'daily_activity',
          of('daily_activity', 3).map(document => ({ ...document, steps: Number(document.steps) + 10 })),
        ),
      );
    }
    await Promise.all(storing);
    syncs++;
  }

  for (let n = 0; n < days; n++) {
    const day = addDays(recording.from, n);
    for (const hour of HOURS) {
      for (const [i, person] of people.entries()) {
        clock = Math.max(clock, Date.parse(day) + hour * 3_600_000 + i * MINUTES_APART * 60_000);
        await sync(person, day, hour, hour === HOURS.at(-1) && n % 7 === i % 7);
      }
    }
    await midnight();
  }
  // What waits in the log counts from the next checkpoint on.
  await warehouse.close();
  warehouse = await Warehouse.open({ path, resources, now: () => clock });
  await midnight();
  await warehouse.snapshot(snapshot, 0o600);
  const tables = [...warehouse.mappings.flatMap(({ series }) => series.map(({ table }) => table)), HEART_RATE];
  const [row] = await warehouse.read(`SELECT ${tables.map(table => `(SELECT count(*) FROM ${table})`).join(' + ')}`);
  await warehouse.close();
  return { syncs, samples: row![0] as number, bytes: statSync(path).size, snapshotBytes: statSync(snapshot).size, compacted };
});

function readPerson(recording: Recording, userId: string): Person {
  const documents = new Map<string, Map<string, WireDocument[]>>();
  for (const collection of COLLECTIONS.filter(name => name !== HEART_RATE)) {
    const recorded = readRecorded(recording, userId, collection);
    const byDay = new Map<string, WireDocument[]>();
    recorded.keys.forEach((day, i) => {
      byDay.set(day, [...(byDay.get(day) ?? []), JSON.parse(slice(recorded, i, i + 1).toString()) as WireDocument]);
    });
    documents.set(collection, byDay);
  }
  return { userId, documents, heartRate: readRecorded(recording, userId, HEART_RATE) };
}

/** An activity as it is while its day goes on; none before it begins. */
function untilNow(document: WireDocument, now: number): WireDocument[] {
  const met = document.met as { interval: number; timestamp: string; items: number[] };
  const items = met.items.slice(0, Math.max(0, Math.floor((now - findInstant(met.timestamp)!.micros / 1000) / (met.interval * 1000))));
  return items.length ? [{ ...document, met: { ...met, items } }] : [];
}

function rowsOf(recorded: Recorded, from: number, until: number): unknown[] {
  const first = recorded.keys.findIndex(key => Number(key) >= from);
  if (first < 0) return [];
  let end = first;
  while (end < recorded.keys.length && Number(recorded.keys[end]) < until) end++;
  return JSON.parse(`[${slice(recorded, first, end)}]`) as unknown[];
}
