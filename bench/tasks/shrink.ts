import { statSync } from 'node:fs';
import { join } from 'node:path';
import { resources } from '../../schema/index.ts';
import { MICROS_PER_DAY } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { rewriteWithout } from '../../src/warehouse/store/file/erase.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { COLLECTIONS, HEART_RATE, partOf, type Recorded, type Recording, readRecorded, resourceNamed, slice } from '../recording.ts';
import { performTask } from '../task.ts';

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
performTask(async ({ recording, folder, what }: ShrinkJob): Promise<Shrunk> => {
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
