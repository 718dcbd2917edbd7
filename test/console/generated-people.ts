import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { addDays } from '../../schema/instant.ts';
import { createPeople } from '../../src/simulator/users/people.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, resourceNamed } from '../support/warehouse.ts';

/**
 * Two of the sandbox's people: ada lives in Berlin, whose clocks went back on 26 October 2025; ben in New York, who flew to Kathmandu
 * (UTC+5:45) on 4 August 2025 and back on 10 August.
 */
const PEOPLE = [
  { name: 'ada', index: 0, from: '2025-09-12', to: '2025-10-27' },
  { name: 'ben', index: 1, from: '2025-07-05', to: '2025-08-14' },
] as const;
const COLLECTIONS = [
  ...['sleep', 'daily_sleep', 'daily_readiness', 'daily_activity', 'daily_stress', 'daily_spo2', 'session', 'workout'],
  ...['enhanced_tag', 'rest_mode_period'],
];

/** Monday, when ada has got up. */
export const NOW = Date.UTC(2025, 9, 27, 10, 0);

let folders = 0;
let made: string | undefined;
const folder = tempFolder();

/** A data folder with a snapshot of all that these people have. */
export async function placeGenerated(): Promise<string> {
  const data = join(folder, `generated${++folders}`);
  if (made !== undefined && existsSync(made)) {
    cpSync(made, data, { recursive: true });
    return data;
  }
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  await warehouse.record(PEOPLE.map(({ name }) => ({ table: 'sync.accounts', key: { user_id: name }, row: { state: 'active' } })));
  for (const { name: userId, index, from, to } of PEOPLE) {
    const people = createPeople({ seed: 7, count: index + 1, from, to });
    const id = people.persons[index]!.userId;
    const requestedAt = warehouse.clock.lease();
    for (const resource of COLLECTIONS) {
      const documents = [];
      for (let day: string = from; day <= to; day = addDays(day, 1)) documents.push(...people.documents(id, resource, day));
      await warehouse.storeDocuments({ userId, resource: resourceNamed(resource), requestedAt, documents });
    }
    const [start, end] = [from, addDays(to, 2)].map(day => Date.parse(`${day}T00:00:00Z`) * 1000) as [number, number];
    await warehouse.storeHeartRate({ userId, requestedAt, from: start, to: end, rows: people.heartRate(id, start, end) });
    warehouse.clock.release(requestedAt);
  }
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
  made = `${data}-made`;
  cpSync(data, made, { recursive: true });
  return data;
}
