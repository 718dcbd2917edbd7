// Writes to a warehouse without end, until it is killed: `node child-writer.mjs <compiled folder> <file> <first number>`. Says each number
// once it is committed.
import { pathToFileURL } from 'node:url';

const [folder, path, first] = process.argv.slice(2);
const load = file => import(pathToFileURL(`${folder}/${file}`).href);
const { Warehouse } = await load('src/warehouse/warehouse.js');
const { resources } = await load('schema/index.js');
const warehouse = await Warehouse.open({ path, resources });
const resource = resources.find(({ name }) => name === 'sleep');

const timestamp = '2025-01-15T00:00:00+01:00';
for (let n = Number(first); ; n++) {
  const documents = Array.from({ length: 12 }, (_, i) => ({
    id: `s-${i}`,
    day: `2025-01-${10 + ((n + i) % 9)}`,
    bedtime_start: timestamp,
    bedtime_end: timestamp,
    low_battery_alert: false,
    period: n,
    time_in_bed: 1,
    heart_rate: { interval: 5, items: Array(500 + ((n * 37 + i * 101) % 3000)).fill(n), timestamp },
    hrv: i % 2 ? { interval: 300, items: Array(n % 7).fill(null), timestamp } : null,
  }));
  const requestedAt = warehouse.clock.lease();
  await warehouse.storeDocuments(
    { userId: 'ann', resource, requestedAt, documents, removed: [] },
    { ledger: [{ table: 'sync.meta', key: { key: 'n' }, row: { value: String(n) } }] },
  );
  warehouse.clock.release(requestedAt);
  console.log(n);
}
