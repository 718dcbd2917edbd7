// A process that works off a queue until it is killed. Prints a line for each job that it begins.
import { openQueues } from '../../node_modules/.cache/ringneck-queue/src/queue/open.js';

const [folder, url] = process.argv.slice(2);
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
