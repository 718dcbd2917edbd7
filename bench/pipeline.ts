import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunReport } from '../src/app/follow-run.ts';
import { runTask, startTask } from './child.ts';
import { runCommand } from './command.ts';
import type { Folder } from './folder.ts';
import { listLimitTables, writeLimitSql } from './limit-sql.ts';
import type { Recording } from './recording.ts';
import { listRequests } from './requests.ts';
import type { Cost } from './task.ts';
import type { ServeJob } from './tasks/serve-recording.ts';

/** The sizes of pages that the service has when it is told none. */
export const PAGE_SIZE = 50;
export const HEART_RATE_PAGE_SIZE = 1000;

/** What a pass of the real command cost, its process from start to end, and what it did. */
export type PassCost = Cost & Pick<RunReport, 'documents' | 'samples' | 'unchanged' | 'requests'>;

/** Serves a recording from a process of its own while `work` runs. */
export async function whileServing<Result>(
  job: Pick<ServeJob, 'recording' | 'collections'> & Partial<ServeJob>,
  work: (url: string) => Promise<Result>,
): Promise<Result> {
  const sizes = { pageSize: PAGE_SIZE, heartRatePageSize: HEART_RATE_PAGE_SIZE };
  const server = await startTask<{ url: string }>('serve-recording', {
    accounts: job.recording.users.length,
    delayMs: 0,
    port: 0,
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

/** One `ringneck backfill` of the recorded range. */
export async function runBackfill(
  folder: Folder,
  { from, to }: Pick<Recording, 'from' | 'to'>,
  collections: readonly string[],
  { refresh = false } = {},
): Promise<PassCost> {
  const chosen = collections.flatMap(name => ['--resource', name]);
  const args = ['backfill', '--from', from, '--to', to, ...chosen, ...(refresh ? ['--refresh'] : [])];
  const { cost, report } = await runCommand<RunReport>(folder, ...args);
  return { ...cost, ...report };
}

/** The least one could do by hand, of the recorded range, into a file that may have something already. */
export function fetchAndLoad(url: string, path: string, recording: Recording, collections: readonly string[]): Promise<Cost> {
  const answers = `${path}.answers`;
  rmSync(answers, { recursive: true, force: true });
  const sql = writeLimitSql(collections, answers);
  return runTask<Cost>('fetch-and-load', { url, asked: listRequests(recording, collections), path, answers, sql });
}

export const warehouseIn = ({ data }: Folder) => join(data, 'warehouse.duckdb');

/** Rows and hash of each table of collections, in a process of its own. */
export const hashTables = (path: string, collections: readonly string[]) =>
  runTask<Record<string, string>>('hash-tables', { path, tables: listLimitTables(collections) });
