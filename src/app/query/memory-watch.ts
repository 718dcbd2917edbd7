// A thread beside a query: DuckDB's own limit does not cover all that it takes, and it may block the main thread while it plans.
import { workerData } from 'node:worker_threads';

/** What the process of a query ends by when it takes far more memory than it may. */
export const OVER_MEMORY = 'SIGUSR2';
const LOOK_MS = 50;

if (workerData?.mostBytes) {
  setInterval(() => {
    if (process.memoryUsage.rss() > workerData.mostBytes) process.kill(process.pid, OVER_MEMORY);
  }, LOOK_MS);
}
