import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { App } from '../src/app/app.ts';
import { commandsOf } from '../src/app/commands.ts';
import type { RunReport } from '../src/app/follow-run.ts';
import { readSettings } from '../src/base/config.ts';
import { createLog } from '../src/base/log.ts';
import { fetchAndLoadAnswers } from './limit.ts';
import { listLimitTables, writeLimitSql } from './limit-sql.ts';
import { HEART_RATE, listRequests, type Recording } from './recording.ts';
import { HEART_RATE_PAGE_SIZE, PAGE_SIZE, type ServeJob, serveRecording } from './serve.ts';
import { type Cost, defineTask, killAtExit, runTask, startTask } from './task.ts';

/** A data folder, and what the pipeline that works on it talks to. */
export interface Folder {
  data: string;
  url: string;
  /** Of Redis; without one the queue is embedded. */
  queueUrl?: string | undefined;
  /** Where the warehouse lies, if not in the file of the data folder. */
  lake?: { warehouse: string; extensions: string; data: string; catalogue: string } | undefined;
}

export const settingsOf = ({ data, url, queueUrl, lake }: Folder) => ({
  RINGNECK_DATA: data,
  RINGNECK_SERVICE_URL: url,
  ...(queueUrl ? { RINGNECK_QUEUE_URL: queueUrl } : {}),
  ...(lake ? { RINGNECK_WAREHOUSE: lake.warehouse, RINGNECK_DUCKDB_EXTENSIONS: lake.extensions } : {}),
});

export function openSettings(folder: Folder) {
  return { settings: readSettings(settingsOf(folder)), log: createLog({ level: 'warn', pretty: false }) };
}

export const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
const METER = new URL('./meter.js', import.meta.url).href;

/** Of a `ringneck` command that is measured no setting comes from whoever runs this. */
export const environmentOf = (folder: Folder) => {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR, ...settingsOf(folder) };
};

/** Runs the real `ringneck` with `--json`: what it says, and what its process cost from its start to its end. */
export async function runCommand<Report>(folder: Folder, ...args: string[]): Promise<{ cost: Cost; report: Report }> {
  const command = spawn(process.execPath, ['--import', METER, MAIN, ...args, '--json'], {
    env: { ...environmentOf(folder), RINGNECK_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  killAtExit(command);
  const [said, notes, cost, [code]] = await Promise.all([
    text(command.stdout!),
    text(command.stderr!),
    text(command.stdio[3] as Readable),
    once(command, 'exit'),
  ]);
  if (code !== 0) throw new Error(`ringneck ${args.join(' ')} ended with exit code ${code}:\n${notes}${said}`);
  return { cost: JSON.parse(cost) as Cost, report: JSON.parse(said) as Report };
}

const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
export const QUEUES = hasRedis ? (['embedded', 'Redis'] as const) : (['embedded'] as const);
export type QueueKind = (typeof QUEUES)[number];

/** A Redis of our own on a free port, with the settings that production needs. */
export async function startRedis(folder: string): Promise<{ url: string; stop(): Promise<void> }> {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const settings = ['--appendonly', 'yes', '--maxmemory-policy', 'noeviction', '--save', ''];
  const server = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...settings], { stdio: 'ignore' });
  for (let i = 0; !(await isListening(port)); i++) {
    if (i === 200) throw new Error(`redis-server does not listen on ${port}`);
    await setTimeout(25);
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      server.kill('SIGKILL');
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
    },
  };
}

/** Works with a Redis where the queue is to be in one. */
export async function withQueue<Result>(queue: QueueKind, folder: string, work: (queueUrl?: string) => Promise<Result>): Promise<Result> {
  if (queue === 'embedded') return work();
  const redis = await startRedis(folder);
  try {
    return await work(redis.url);
  } finally {
    await redis.stop();
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const answer = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(() => false);
  socket.destroy();
  return answer;
}

/** What a pass of the real command cost, its process from start to end, and what it did. */
export type PassCost = Cost & Pick<RunReport, 'documents' | 'samples' | 'unchanged' | 'requests'>;

/** Serves a recording from a process of its own while `work` runs. */
export async function whileServing<Result>(
  job: Pick<ServeJob, 'recording' | 'collections'> & Partial<ServeJob>,
  work: (url: string) => Promise<Result>,
): Promise<Result> {
  const sizes = { pageSize: PAGE_SIZE, heartRatePageSize: HEART_RATE_PAGE_SIZE };
  const server = await startTask(serveRecording, {
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
  await runTask(addAccounts, { ...folder, users });
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
  return runTask(fetchAndLoadAnswers, { url, asked: listRequests(recording, collections), path, answers, sql });
}

export const warehouseIn = ({ data }: Folder) => join(data, 'warehouse.duckdb');

/** Rows and hash of each table of collections, in a process of its own. */
export const hashTables = (path: string, collections: readonly string[]) =>
  runTask(hashEach, { path, tables: listLimitTables(collections) });

export interface AddAccountsJob extends Folder {
  users: string[];
}

/** Makes a data folder with accounts, in the order of the server's tokens. */
export const addAccounts = defineTask(import.meta.url, 'addAccounts', async ({ users, ...folder }: AddAccountsJob) => {
  const { settings, log } = openSettings(folder);
  const app = await App.open({ settings, log });
  try {
    const commands = commandsOf(() => app);
    for (const [i, name] of users.entries()) await commands.addAccount({ name, token: `token-${i}` });
  } finally {
    await app.close();
  }
});

export interface HashTablesJob {
  path: string;
  tables: string[];
}

/** What no two fillings of a table have in common. */
const OWN = ['sk', 'fetched_at', 'content_hash'];

/** Each table of a file, as its columns, rows and the hash of its rows in any order. */
export const hashEach = defineTask(import.meta.url, 'hashEach', async ({ path, tables }: HashTablesJob) => {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const hashes: Record<string, string> = {};
  for (const table of tables) {
    const described = await connection.runAndReadAll(
      `SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = 'main' AND table_name = '${table}' ORDER BY column_index`,
    );
    const columns = described.getRows().map(row => row.join(' '));
    const names = described.getRows().flatMap(([name]) => (OWN.includes(name as string) ? [] : [`"${name}"`]));
    const hash = `hash(${names.join(', ')})`;
    const hashed = await connection.runAndReadAll(
      `SELECT concat_ws(' ', count(*), 'rows', bit_xor(${hash}), sum(${hash}::HUGEINT)) FROM "${table}"`,
    );
    hashes[table] = `${hashed.getRows()[0]![0]}; ${columns.join(', ')}`;
  }
  connection.closeSync();
  instance.closeSync();
  return hashes;
});

/** What is stored, told by names: every document's, and every row of heart rate. As `fetch-chains` tells what it read. */
export const hashIdentities = defineTask(
  import.meta.url,
  'hashIdentities',
  async ({ path, collections }: { path: string; collections: string[] }) => {
    const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
    const connection = await instance.connect();
    const parts = collections.map(name =>
      name === HEART_RATE
        ? `SELECT concat_ws(' ', user_id, '${name}', epoch_ms(ts), source, bpm) FROM heart_rate`
        : `SELECT concat_ws(' ', user_id, '${name}', id) FROM "${name}"`,
    );
    const all = (await connection.runAndReadAll(parts.join(' UNION ALL '))).getRows().map(([text]) => text as string);
    connection.closeSync();
    instance.closeSync();
    return { things: all.length, hash: createHash('sha256').update(all.sort().join('\n')).digest('hex') };
  },
);
