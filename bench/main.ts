import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import duckdb from '@duckdb/node-api/package.json' with { type: 'json' };
import { measureBackfill, measureMemory, measureOneDay, measureSecondPass, measureWaiting } from './backfill.ts';
import { measureConsole } from './console.ts';
import { measureBeside } from './console-beside.ts';
import { measureBurst, measureIdle, measureLive, measureSustained, measureVisible } from './events.ts';
import { measureDailySyncs, measureErase } from './files.ts';
import { measureLake } from './lake.ts';
import { measurePlanning, measureSettled } from './planning.ts';
import type { Bench, Row } from './row.ts';
import { measureQuestions, measureSnapshot } from './snapshot.ts';
import { measureDisk, measureHeartRate, measureWritePath } from './write-path.ts';

/** What the figures were measured on. */
export function describeMachine(): string {
  const [cpu] = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return [
    `${cpus().length} × ${cpu?.model.trim()}`,
    memory,
    `${process.platform} ${process.arch}`,
    `Node ${process.versions.node}`,
    `DuckDB ${duckdb.version}`,
  ].join(', ');
}

const ROWS: Record<string, (bench: Bench) => Promise<Row[]>> = {
  backfill: measureBackfill,
  'write-path': measureWritePath,
  'heart-rate': measureHeartRate,
  waiting: measureWaiting,
  'second-pass': measureSecondPass,
  'one-day': measureOneDay,
  settled: measureSettled,
  memory: measureMemory,
  planning: measurePlanning,
  disk: measureDisk,
  'daily-syncs': measureDailySyncs,
  erase: measureErase,
  questions: measureQuestions,
  burst: measureBurst,
  sustained: measureSustained,
  visible: measureVisible,
  live: measureLive,
  idle: measureIdle,
  snapshot: measureSnapshot,
  console: measureConsole,
  'console-beside': measureBeside,
  lake: measureLake,
};
const FULL = {
  rounds: 5,
  sizeRounds: 3,
  years: 20,
  allYears: 5,
  manyAllYears: 215,
  settledPeople: [15, 75, 225],
  syncDays: 365,
  erasePeople: 20,
  manyYears: 100,
  questionYears: 191,
  eventRounds: 3,
  eventSeconds: 60,
  idleSeconds: 600,
  planAccounts: 100,
  consoleDays: 1096,
};
/** To see that everything works. What a start costs weighs more here: ratios are no figures. */
const QUICK = {
  rounds: 1,
  sizeRounds: 1,
  years: 4,
  allYears: 3,
  manyAllYears: 6,
  settledPeople: [5, 10],
  syncDays: 30,
  erasePeople: 4,
  manyYears: 20,
  questionYears: 20,
  eventRounds: 1,
  eventSeconds: 10,
  idleSeconds: 20,
  planAccounts: 10,
  consoleDays: 120,
};

const { values, positionals } = parseArgs({ allowPositionals: true, options: { quick: { type: 'boolean' }, rounds: { type: 'string' } } });
const unknown = positionals.filter(name => !Object.hasOwn(ROWS, name));
if (unknown.length) throw new Error(`no row ${unknown.join(', ')}: there are ${Object.keys(ROWS).join(', ')}`);

const scratch = mkdtempSync(join(tmpdir(), 'ringneck-bench-'));
const bench: Bench = {
  ...(values.quick ? QUICK : FULL),
  ...(values.rounds ? { rounds: Number(values.rounds), eventRounds: Number(values.rounds) } : {}),
  newFolder() {
    const folder = join(scratch, 'measurement');
    if (existsSync(folder)) rmSync(folder, { recursive: true });
    mkdirSync(folder);
    return folder;
  },
  say: text => process.stderr.write(`${text}\n`),
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
process.setMaxListeners(0);

try {
  const rows: Row[] = [];
  for (const name of positionals.length ? positionals : Object.keys(ROWS)) rows.push(...(await ROWS[name]!(bench)));
  print(rows);
  if (rows.some(({ holds }) => !holds)) process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function print(rows: readonly Row[]): void {
  const command = ['npm run bench', process.argv.length > 2 ? `-- ${process.argv.slice(2).join(' ')}` : ''].join(' ').trim();
  const lines = [
    ...(values.quick
      ? ['**Quick: smaller sizes, each row once. What a start costs weighs more here, so these are no figures for the table.**', '']
      : []),
    '| what | against | at most | measured | holds |',
    '|---|---|---|---|---|',
    ...rows.map(row => `| ${[row.what, row.against, row.limit, row.measured, row.holds ? 'yes' : '**no**'].join(' | ')} |`),
    '',
    `\`${command}\` on ${new Date().toISOString().slice(0, 10)}: ${describeMachine()}. Medians of ${bench.rounds} rounds (memory and disk ${bench.sizeRounds}, events ${bench.eventRounds}), ours and the limit by turns,`,
    'each in a fresh process; CPU is that of the process, all its threads. A command is the real one, measured from the start of its process to',
    'its end: Node’s own start, opening the folder and the queue (without Redis it is in memory), planning, fetching, storing, closing',
    'the file; so is the process that fetches and loads by hand. The write path is from the first page to the last COMMIT. Not in it: the service',
    '(one without rate limits) and Redis, which are processes of their own. The limits have read_json’s columns named, two threads and',
    'DuckDB’s own memory limit. A ratio is only printed when both sides’ tables were equal in every column but sk, fetched_at and',
    'content_hash; where nothing is stored, when both read the same things.',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
