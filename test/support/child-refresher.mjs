// Stores and brings a snapshot up to date without end, until it is killed: `node child-refresher.mjs <compiled folder> <file> <snapshot>
// <first number>`. Says each number once it is published.
import { pathToFileURL } from 'node:url';

const [folder, path, published, first] = process.argv.slice(2);
const load = file => import(pathToFileURL(`${folder}/${file}`).href);
const { Warehouse } = await load('src/warehouse/warehouse.js');
const { resources } = await load('schema/index.js');
const warehouse = await Warehouse.open({ path, resources });
const resource = resources.find(({ name }) => name === 'sleep');

const timestamp = '2025-01-15T00:00:00+01:00';
for (let n = Number(first); ; n++) {
  const document = {
    id: `s-${n % 3}`,
    day: `2025-01-${10 + (n % 9)}`,
    bedtime_start: timestamp,
    bedtime_end: timestamp,
    efficiency: n,
    low_battery_alert: false,
    period: 0,
    time_in_bed: 1,
    heart_rate: { interval: 5, items: Array(n % 5).fill(n), timestamp },
  };
  await warehouse.storeDocuments({ userId: 'kim', resource, requestedAt: warehouse.clock.next(), documents: [document] });
  await warehouse.refreshSnapshot(published, 0o600).catch(error => {
    if (error.message !== 'much has changed since it was sorted') throw error;
    return warehouse.snapshot(published, 0o600);
  });
  console.log(n);
}
