import { join } from 'node:path';
import { runTask, startTask } from './child.ts';
import type { Folder } from './folder.ts';
import type { Recording } from './recording.ts';
import type { Cost } from './task.ts';
import type { BackfillJob } from './tasks/backfill.ts';
import type { ServeJob } from './tasks/serve-recording.ts';

/** The sizes of pages that the service has when it is told none. */
export const PAGE_SIZE = 50;
export const HEART_RATE_PAGE_SIZE = 1000;

export type PassCost = Cost & { documents: number; samples: number; unchanged: number; requests: number };

/** Serves a recording from a process of its own while `work` runs. */
export async function whileServing<Result>(
  job: Pick<ServeJob, 'recording' | 'collections'> & Partial<ServeJob>,
  work: (url: string) => Promise<Result>,
): Promise<Result> {
  const sizes = { pageSize: PAGE_SIZE, heartRatePageSize: HEART_RATE_PAGE_SIZE };
  const server = await startTask<{ url: string }>('serve-recording', {
    accounts: job.recording.users.length,
    delayMs: 0,
    ...sizes,
    ...job,
  });
  try {
    return await work(server.result.url);
  } finally {
    await server.stop();
  }
}

/** A data folder that knows its accounts and has nothing else yet. */
export async function makeFolder(folder: Folder, users: readonly string[]): Promise<Folder> {
  await runTask('add-accounts', { ...folder, users });
  return folder;
}

/** One `ringneck backfill` of the recorded range, in a fresh process. */
export function runBackfill(
  folder: Folder,
  { from, to }: Recording,
  collections: readonly string[],
  { refresh = false }: Partial<Pick<BackfillJob, 'refresh'>> = {},
): Promise<PassCost> {
  return runTask('backfill', { ...folder, from, to, collections, refresh });
}

export const warehouseIn = ({ data }: Folder) => join(data, 'warehouse.duckdb');

/** Rows and hash of each table, in a process of its own. */
export const hashTables = (path: string, tables: readonly string[]) => runTask<Record<string, string>>('hash-tables', { path, tables });
