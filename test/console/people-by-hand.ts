import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, resourceNamed } from '../support/warehouse.ts';

type Documents = Record<string, readonly object[]>;

let folders = 0;
const folder = tempFolder();

/** By what is in it: as it was before somebody used it. */
const made = new Map<string, string>();

/** A data folder with a snapshot of what is stored of these people, and of what a study says of them. */
export async function placePeople(
  people: Readonly<Record<string, Documents>>,
  participants: Readonly<Record<string, Record<string, number>>> = {},
): Promise<string> {
  const data = join(folder, `people${++folders}`);
  const what = JSON.stringify([people, participants]);
  const same = made.get(what);
  if (same && existsSync(same)) {
    cpSync(same, data, { recursive: true });
    return data;
  }
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  const accounts = Object.keys(people).map(userId => ({ table: 'sync.accounts', key: { user_id: userId }, row: { state: 'active' } }));
  await warehouse.record(accounts);
  for (const [userId, documents] of Object.entries(people)) {
    for (const [name, list] of Object.entries(documents)) {
      const requestedAt = warehouse.clock.lease();
      await warehouse.storeDocuments({ userId, resource: resourceNamed(name), requestedAt, documents: list });
      warehouse.clock.release(requestedAt);
    }
  }
  for (const [userId, row] of Object.entries(participants)) {
    await warehouse.record([{ table: 'participants', key: { user_id: userId }, row }]);
  }
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
  cpSync(data, `${data}-made`, { recursive: true });
  made.set(what, `${data}-made`);
  return data;
}

/** A sleep of an hour: `digits` are the stages by 30 seconds, `heart` and `hrv` by 5 minutes. */
export function sleepOf(day: string, from: string, to: string, changes: object = {}) {
  return {
    id: `s-${day}-${from.slice(11, 16)}`,
    day,
    type: 'long_sleep',
    bedtime_start: from,
    bedtime_end: to,
    time_in_bed: 3600,
    ...changes,
  };
}
