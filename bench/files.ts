import { statSync } from 'node:fs';
import { join } from 'node:path';
import { resources } from '../schema/index.ts';
import { addDays, findInstant, MICROS_PER_DAY } from '../schema/instant.ts';
import type { WireDocument } from '../schema/resource.ts';
import { rewriteWithout } from '../src/warehouse/store/file/erase.ts';
import { Warehouse } from '../src/warehouse/warehouse.ts';
import {
  COLLECTIONS,
  ensureRecording,
  HEART_RATE,
  partOf,
  type Recorded,
  type Recording,
  readRecorded,
  resourceNamed,
  slice,
} from './recording.ts';
import { type Bench, inMegabytes, type Row } from './row.ts';
import { defineTask, runTask } from './task.ts';

const PEOPLE = 20;
const SYNC_LIMIT = { live: 3, snapshot: 2.5 };

/** How large the files are after days that came in piece by piece, as they do while `up` runs. */
export async function measureDailySyncs(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(PEOPLE, COLLECTIONS);
  const scratch = bench.newFolder();
  const job = {
    recording,
    days: bench.syncDays,
    path: join(scratch, 'data', 'warehouse.duckdb'),
    snapshot: join(scratch, 'snapshot.duckdb'),
  };
  const { syncs, samples, bytes, snapshotBytes, compacted } = await runTask(syncDaily, job);
  const [live, snapshot] = [bytes / samples, snapshotBytes / samples];
  bench.say(
    `daily syncs: ${syncs} of ${PEOPLE} people in ${bench.syncDays} days, ${samples} rows of samples; ${bytes} and ${snapshotBytes} bytes; compacted ${compacted} times`,
  );
  return [
    {
      what: `bytes for each row of samples after ${bench.syncDays} days of ${PEOPLE} users’ syncs, four a day, with late edits; documents included`,
      against: `live file; snapshot (${(samples / 1e6).toFixed(1)} M rows)`,
      limit: `${SYNC_LIMIT.live}; ${SYNC_LIMIT.snapshot}`,
      measured: `${live.toFixed(2)}; ${snapshot.toFixed(2)} (compacted ${compacted} times)`,
      holds: live <= SYNC_LIMIT.live && snapshot <= SYNC_LIMIT.snapshot,
    },
  ];
}

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
export const syncDaily = defineTask(import.meta.url, 'syncDaily', async ({ recording, days, path, snapshot }: SyncJob): Promise<Synced> => {
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

const ERASE_LIMIT = 1.3;

/** How large the file is after half of the people were erased from it, and after all in it was rewritten, against one made of what is left. */
export async function measureErase(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.erasePeople, COLLECTIONS);
  const folder = bench.newFolder();
  const shrunk = (what: 'erase' | 'rewrite') => runTask(shrink, { recording, folder: join(folder, what), what });
  const rows: Row[] = [];
  for (const [what, text] of [
    ['erase', 'half of them were erased'],
    ['rewrite', 'every document and every heart rate was replaced by another'],
  ] as const) {
    const { before, bytes, fresh } = await shrunk(what);
    bench.say(`${what}: ${before} bytes before, ${bytes} after, ${fresh} fresh`);
    rows.push({
      what: `size of the file of ${bench.erasePeople} user-years after ${text}, by itself`,
      against: 'a file into which nothing else was ever stored',
      limit: `${ERASE_LIMIT}×`,
      measured: `${(bytes / fresh).toFixed(2)}× (${inMegabytes(bytes)} / ${inMegabytes(fresh)}; ${inMegabytes(before)} before)`,
      holds: bytes <= fresh * ERASE_LIMIT,
    });
  }
  return rows;
}

export interface ShrinkJob {
  recording: Recording;
  folder: string;
  what: 'erase' | 'rewrite';
}

/** Bytes of closed files. */
export interface Shrunk {
  before: number;
  bytes: number;
  /** Of one that never held anything else. */
  fresh: number;
}

const PAGE = 60;
const WINDOW = 28 * MICROS_PER_DAY;

/** Stores what people did in a year, erases half of them or replaces everything, and lets the file become smaller as `up` does. */
export const shrink = defineTask(import.meta.url, 'shrink', async ({ recording, folder, what }: ShrinkJob): Promise<Shrunk> => {
  const [path, other] = [join(folder, 'warehouse.duckdb'), join(folder, 'fresh', 'warehouse.duckdb')];
  const left = what === 'erase' ? recording.users.filter((_, i) => i % 2) : recording.users;
  const isEdited = what === 'rewrite';
  const fresh = await storing(other, warehouse => storeAll(warehouse, recording, left, isEdited));
  const before = await storing(path, async warehouse => {
    await storeAll(warehouse, recording, recording.users, false);
    if (isEdited) await storeAll(warehouse, recording, recording.users, true);
  });
  for (const userId of recording.users) {
    if (!left.includes(userId)) await rewriteWithout(path, { userId, serviceUserIds: [] }, () => undefined);
  }
  const bytes = await storing(path, async warehouse => {
    if ((await warehouse.size()).isDue) await warehouse.compact();
  });
  return { before, bytes, fresh };
});

async function storing(path: string, work: (warehouse: Warehouse) => Promise<void>): Promise<number> {
  const warehouse = await Warehouse.open({ path, resources });
  await work(warehouse);
  await warehouse.close();
  return statSync(path).size;
}

/** As a backfill does: all people side by side, window by window. */
async function storeAll(warehouse: Warehouse, recording: Recording, users: readonly string[], isEdited: boolean): Promise<void> {
  const [first, end] = [Date.parse(recording.from) * 1000, Date.parse(recording.to) * 1000 + MICROS_PER_DAY];
  const edited = (document: WireDocument) => (isEdited ? { ...document, edited: true } : document);
  for (const collection of COLLECTIONS) {
    const recorded = users.map(userId => readRecorded(recording, userId, collection));
    const steps =
      collection === HEART_RATE
        ? Math.ceil((end - first) / WINDOW)
        : Math.ceil(Math.max(...recorded.map(({ keys }) => keys.length)) / PAGE);
    for (let n = 0; n < steps; n++) {
      await Promise.all(
        users.map((userId, i) => {
          const requestedAt = warehouse.clock.next();
          if (collection !== HEART_RATE) {
            const documents = parse(recorded[i]!, n * PAGE, (n + 1) * PAGE).map(edited);
            return warehouse.storeDocuments({ userId, resource: resourceNamed(collection), requestedAt, documents });
          }
          const from = first + n * WINDOW;
          const to = Math.min(from + WINDOW, end);
          const part = partOf(recorded[i]!, from / 1000, to / 1000);
          const rows = parse(part, 0, part.keys.length).map(row => (isEdited ? { ...row, bpm: Number(row.bpm) + 1 } : row));
          return warehouse.storeHeartRate({ userId, from, to, requestedAt, rows });
        }),
      );
    }
  }
}

const parse = (recorded: Recorded, from: number, to: number) =>
  JSON.parse(`[${slice(recorded, from, Math.min(to, recorded.keys.length))}]`) as WireDocument[];
