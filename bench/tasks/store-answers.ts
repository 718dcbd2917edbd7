import { resources } from '../../schema/index.ts';
import { MICROS_PER_DAY } from '../../schema/instant.ts';
import { heartRateCollection } from '../../src/sync/collections.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { answersOf, HEART_RATE, partOf, type Recording, readRecorded, resourceNamed } from '../recording.ts';
import { performTask, withCost } from '../task.ts';

export interface StoreJob {
  recording: Recording;
  collection: string;
  path: string;
  pageSize: number;
}

/** What is stored at once: a page of documents, or all pages of a window of heart rate. Microseconds. */
interface Part {
  userId: string;
  bodies: Buffer[];
  from: number;
  to: number;
}

/** Parts taken in before the first of them must be committed. */
const PARTS_AHEAD = 20;

/** The write path: JSON in memory to committed rows, accounts one after another. */
performTask(async ({ recording, collection, path, pageSize }: StoreJob) => {
  const [first, end] = [Date.parse(recording.from) * 1000, Date.parse(recording.to) * 1000 + MICROS_PER_DAY];
  const parts = recording.users.flatMap((userId): Part[] => {
    const recorded = readRecorded(recording, userId, collection);
    if (collection !== HEART_RATE) return answersOf(recorded, pageSize).map(body => ({ userId, bodies: [body], from: first, to: end }));
    const windows: Part[] = [];
    for (let from = first; from < end; from += heartRateCollection.windowDays! * MICROS_PER_DAY) {
      const to = Math.min(from + heartRateCollection.windowDays! * MICROS_PER_DAY, end);
      windows.push({ userId, bodies: answersOf(partOf(recorded, from / 1000, to / 1000), pageSize), from, to });
    }
    return windows;
  });
  const warehouse = await Warehouse.open({ path, resources });
  const store = ({ userId, bodies, from, to }: Part) => {
    const requestedAt = warehouse.clock.lease();
    const things = bodies.flatMap(body => (JSON.parse(body.toString()) as { data: unknown[] }).data);
    const stored =
      collection === HEART_RATE
        ? warehouse.storeHeartRate({ userId, from, to, requestedAt, rows: things })
        : warehouse.storeDocuments({ userId, resource: resourceNamed(collection), requestedAt, documents: things });
    return stored.finally(() => warehouse.clock.release(requestedAt));
  };
  const { cost, result: samples } = await withCost(async () => {
    const storing: Promise<{ samples: number }>[] = [];
    let stored = 0;
    for (const part of parts) {
      storing.push(store(part));
      if (storing.length >= PARTS_AHEAD) stored += (await storing.shift()!).samples;
    }
    for (const each of storing) stored += (await each).samples;
    return stored;
  });
  await warehouse.close();
  return { ...cost, samples };
});
