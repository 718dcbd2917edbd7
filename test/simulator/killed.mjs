// A timeline that goes on, fast, until it is killed. Each event that it tells of becomes a line of a file.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [compiled, folder, told] = process.argv.slice(2);
const load = path => import(pathToFileURL(`${compiled}/${path}`).href);
const { Timeline } = await load('src/simulator/timeline.js');
const { resources } = await load('schema/index.js');
new Timeline({
  folder,
  seed: 7,
  count: 3,
  from: '2025-01-01',
  to: '2025-01-31',
  speed: 200_000,
  resources,
  async announce(changes) {
    await sleep(10);
    for (const change of changes) appendFileSync(told, `${JSON.stringify(change)}\n`);
    await sleep(10);
  },
});
console.log('open');
