// A process that works off a queue until it is killed: `node killed.mjs <compiled folder> <folder> [<url>]`. Prints a line for each job
// that it begins.
import { pathToFileURL } from 'node:url';

const [compiled, folder, url] = process.argv.slice(2);
const { openQueues } = await import(pathToFileURL(`${compiled}/src/queue/open.js`).href);
const log = { info() {}, warn() {}, error() {} };
const queues = await openQueues({ folder, url, prefix: 'test', log });
console.log('open');
queues.worker(
  'work',
  async job => {
    console.log(`begin ${job.data}`);
    if (job.data === 'stuck') await new Promise(() => {});
    console.log(`end ${job.data}`);
  },
  // In Redis the next worker has to wait until nobody can hold the job any more; embedded it knows.
  { concurrency: 4, ...(url ? { lockDuration: 1_000, stalledInterval: 500 } : {}) },
);
