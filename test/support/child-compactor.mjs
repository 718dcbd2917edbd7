// Compacts a warehouse and kills itself after the files have changed places, or after the next commit, or is killed:
// `node child-compactor.mjs <compiled folder> <file> <after the rename | after a commit | busy since <number>>`.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, path, at] = process.argv.slice(2);
const load = file => import(pathToFileURL(`${folder}/${file}`).href);
const die = () => process.kill(process.pid, 'SIGKILL');
const rename = fs.renameSync;
fs.renameSync = (from, to) => {
  rename(from, to);
  if (at === 'after the rename') die();
};
syncBuiltinESMExports();
const { Warehouse } = await load('src/warehouse/warehouse.js');
const { resources } = await load('schema/index.js');
const warehouse = await Warehouse.open({ path, resources, patienceMs: 30_000 });
if (at.startsWith('busy since ')) await storeAndCompact(Number(at.slice('busy since '.length)));
await warehouse.compact();
await warehouse.record([{ table: 'sync.meta', key: { key: 'said' }, row: { value: 'after it was compacted' } }]);
die();

/** Stores one number after the other, and says each once it is committed, while it compacts again and again; until it is killed. */
async function storeAndCompact(first) {
  const resource = resources.find(({ name }) => name === 'sleep');
  const timestamp = '2025-01-15T00:00:00+01:00';
  const storing = (async () => {
    for (let n = first; ; n++) {
      const document = {
        id: `n-${n % 7}`,
        day: `2025-01-${10 + (n % 9)}`,
        bedtime_start: timestamp,
        bedtime_end: timestamp,
        efficiency: n,
        low_battery_alert: false,
        period: 0,
        time_in_bed: 1,
        heart_rate: { interval: 5, items: Array(n % 5).fill(n), timestamp },
      };
      await warehouse.storeDocuments(
        { userId: 'kim', resource, requestedAt: warehouse.clock.next(), documents: [document] },
        { lane: 'live', ledger: [{ table: 'sync.runs', row: { run_id: `n-${n}` } }] },
      );
      console.log(n);
    }
  })();
  const compacting = (async () => {
    for (;;) await warehouse.compact();
  })();
  await Promise.all([storing, compacting]);
}
