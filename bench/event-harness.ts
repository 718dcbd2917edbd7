import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import { Pool } from 'undici';
import { resources } from '../schema/index.ts';
import type { WebhookEvent } from '../schema/webhook.ts';
import { sign, signatureHeaders } from '../src/base/signature.ts';
import { environmentOf, type Folder, freePort, MAIN, makeFolder, type QueueKind, startRedis, warehouseIn } from './pipeline.ts';
import { ensureRecording, idsOf, type Recording, readRecorded } from './recording.ts';
import { type Bench, quantile } from './row.ts';
import { serveEvents, serviceUserOf } from './serve.ts';
import { defineTask, killAtExit, runTask, startTask } from './task.ts';

/** Days whose documents only events bring: what a backfill reads ends at least two days before. */
export const EVENTS_FROM = '2025-11-08';
export const BACKFILLED_TO = '2025-11-05';

/** The types with documents of days, which events announce. */
export const datedResources = resources.flatMap(({ name, dated, dataType, dayField = 'day' }) =>
  dated && dataType !== undefined ? [{ name, dataType, dayField }] : [],
);

export const accountNames = (accounts: number) => Array.from({ length: accounts }, (_, i) => `account-${String(i).padStart(3, '0')}`);

/** Events of documents that are all distinct, of all accounts and types, mixed: always the same ones. As JSON. */
export function listEvents(recording: Recording, accounts: number): string[] {
  const events: string[] = [];
  for (const { name, dataType } of datedResources) {
    const ids = recording.users.map(user => {
      const recorded = readRecorded(recording, user, name);
      return idsOf(recorded).filter((_, i) => recorded.keys[i]! >= EVENTS_FROM);
    });
    for (let account = 0; account < accounts; account++) {
      for (const id of ids[account % ids.length]!) {
        const event: WebhookEvent = {
          event_type: 'create',
          data_type: dataType,
          object_id: id,
          event_time: '2025-12-31T12:00:00+00:00',
          user_id: serviceUserOf(account),
        };
        events.push(JSON.stringify(event));
      }
    }
  }
  const orders = new Map(events.map(event => [event, createHash('sha256').update(event).digest('hex')]));
  return events.sort((a, b) => (orders.get(a)! < orders.get(b)! ? -1 : 1));
}

/** An event that `up` has settled, as its log says it. */
export interface SettledLine {
  /** Milliseconds from its acceptance to its commit. */
  ms: number;
  outcome: string;
}

/** The real `ringneck up`, in a process of its own, with webhooks. */
export interface Up {
  callbackUrl: string;
  secret: string;
  /** Events settled so far. */
  settled: SettledLine[];
  /** Waits until so many are settled, or so long. */
  untilSettled(count: number, patienceMs: number): Promise<void>;
  /** What its process has cost so far: seconds, user and system. */
  cpu(): number;
  /** Starts a command that works through its control socket. */
  command(...args: string[]): ChildProcess;
  /** An address by which somebody comes into its console, who may look. */
  consoleLink(): Promise<string>;
  stop(): Promise<void>;
}

const SECRET = 'a-secret-of-the-benchmark';
const START_MS = 60_000;
const LOOK_EVERY_MS = 20;

/** Resolves once the subscriptions are there and the first sweep of heart rate is over. */
export async function startUp(folder: Folder): Promise<Up> {
  const port = await freePort();
  const callbackUrl = `http://127.0.0.1:${port}/webhook`;
  const env = {
    ...environmentOf(folder),
    RINGNECK_PORT: String(port),
    RINGNECK_CONSOLE_PORT: String(await freePort()),
    RINGNECK_CALLBACK_URL: callbackUrl,
    RINGNECK_CLIENT_ID: 'bench',
    RINGNECK_CLIENT_SECRET: SECRET,
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-the-benchmark',
    // It says of each event when it was settled.
    RINGNECK_LOG_LEVEL: 'debug',
    // Schedules keep still; what events make it do is measured with them.
    RINGNECK_SWEEP_HOURS: '168',
    RINGNECK_HEART_RATE_MINUTES: '1440',
    RINGNECK_NIGHTLY: '0 0 29 2 *',
  };
  const up = spawn(process.execPath, [MAIN, 'up'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  killAtExit(up);
  const settled: SettledLine[] = [];
  const said = new Set<string>();
  const lines = createInterface({ input: up.stderr });
  lines.on('line', line => {
    if (!line.startsWith('{')) return void process.stderr.write(`ringneck up: ${line}\n`);
    const { msg, level, reason, ms, outcome } = JSON.parse(line) as SettledLine & { msg: string; level: number; reason?: string };
    if (msg === 'event finished') settled.push({ ms, outcome });
    else said.add(msg);
    if (level >= 40) process.stderr.write(`ringneck up: ${msg}${reason ? `: ${reason}` : ''}\n`);
  });
  const until = async (what: string, isSo: () => boolean, patienceMs: number) => {
    for (const end = Date.now() + patienceMs; !isSo(); ) {
      if (up.exitCode !== null || up.signalCode !== null) throw new Error(`ringneck up ended before ${what}`);
      if (Date.now() > end) return false;
      await sleep(LOOK_EVERY_MS);
    }
    return true;
  };
  for (const word of ['the subscriptions are kept', 'sweep run ended']) {
    if (!(await until(word, () => said.has(word), START_MS))) throw new Error(`ringneck up has not said “${word}”`);
  }
  return {
    callbackUrl,
    secret: SECRET,
    settled,
    untilSettled: async (count, patienceMs) => {
      await until(`${count} events were settled`, () => settled.length >= count, patienceMs);
    },
    cpu: () => cpuOf(up.pid!),
    command(...args) {
      const command = spawn(process.execPath, [MAIN, ...args], { env, stdio: 'ignore' });
      killAtExit(command);
      return command;
    },
    async consoleLink() {
      const command = spawn(process.execPath, [MAIN, 'console', '--no-open', '--role', 'reader'], {
        env,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      killAtExit(command);
      return (await text(command.stdout)).trim();
    },
    async stop() {
      if (up.exitCode !== null || up.signalCode !== null) return;
      up.kill('SIGTERM');
      await once(up, 'exit');
    },
  };
}

/** Linux tells it in hundredths of a second, after the name in brackets. */
function cpuOf(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user! + system!) / 100;
}

export interface SendEventsJob {
  /** Of the receiver. */
  url: string;
  secret: string;
  /** As JSON. */
  events: string[];
  perSecond: number;
}

export interface Sending {
  /** From the moment at which the first event was due to the sending of the last. */
  seconds: number;
  /** How often each status was the answer; a request without an answer counts by its error. */
  answers: Record<string, number>;
  /** Milliseconds from the moment at which an event was due to the end of its answer. */
  p50: number;
  p99: number;
  max: number;
  /** Milliseconds since the epoch. */
  lastSentAt: number;
}

const CONNECTIONS = 64;
const TICK_MS = 2;

/** Sends signed events at a steady rate, whatever the receiver does. */
export const sendEvents = defineTask(
  import.meta.url,
  'sendEvents',
  async ({ url, secret, events, perSecond }: SendEventsJob): Promise<Sending> => {
    const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS, pipelining: 1 });
    const path = new URL(url).pathname;
    const headers = signatureHeaders('x-service-');
    const answers: Record<string, number> = {};
    const waits: number[] = [];
    const start = performance.now();

    const send = async (body: string, dueAt: number) => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      const request = {
        [headers.timestamp]: timestamp,
        [headers.signature]: sign(secret, timestamp, body),
        'content-type': 'application/json',
      };
      const answer = await pool
        .request({ method: 'POST', path, headers: request, body })
        .then(async ({ statusCode, body }) => {
          await body.dump();
          return String(statusCode);
        })
        .catch((error: { code?: string; message: string }) => error.code ?? error.message);
      answers[answer] = (answers[answer] ?? 0) + 1;
      waits.push(performance.now() - dueAt);
    };

    const sending: Promise<void>[] = [];
    const dueAt = (i: number) => start + (i * 1000) / perSecond;
    while (sending.length < events.length) {
      while (sending.length < events.length && dueAt(sending.length) <= performance.now()) {
        sending.push(send(events[sending.length]!, dueAt(sending.length)));
      }
      await sleep(TICK_MS);
    }
    const seconds = (performance.now() - start) / 1000;
    const lastSentAt = Date.now();
    await Promise.all(sending);
    await pool.close();
    return { seconds, answers, p50: quantile(waits, 0.5), p99: quantile(waits, 0.99), max: Math.max(...waits), lastSentAt };
  },
);

export interface ReadEventsJob {
  path: string;
  /** Tables of documents, and the first day of those that events announced. */
  tables: { name: string; dayField: string }[];
  from: string;
}

export interface EventsRead {
  /** How many events came to which outcome. */
  outcomes: Record<string, number>;
  /** When each was received and committed, in the order in which they came: milliseconds since the epoch. */
  times: [number, number][];
  /** Rows of documents from that day on. */
  documents: number;
}

/** What a closed warehouse knows of the events that it was told of. */
export const readEvents = defineTask(import.meta.url, 'readEvents', async ({ path, tables, from }: ReadEventsJob): Promise<EventsRead> => {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const read = async (sql: string) => (await connection.runAndReadAll(sql)).getRows();
  const outcomes = (await read('SELECT outcome, count(*) FROM sync.events GROUP BY 1 ORDER BY 1')).map(row => [row[0], Number(row[1])]);
  const times = await read('SELECT epoch_us(received_at) / 1000, epoch_us(committed_at) / 1000 FROM sync.events ORDER BY 1');
  const counts = tables.map(({ name, dayField }) => `(SELECT count(*) FROM "${name}" WHERE "${dayField}" >= DATE '${from}')`);
  const [[documents]] = (await read(`SELECT ${counts.join(' + ')}`)) as [[bigint]];
  connection.closeSync();
  instance.closeSync();
  return { outcomes: Object.fromEntries(outcomes), times: times as [number, number][], documents: Number(documents) };
});

const PEOPLE = 20;
export const ACCOUNTS = 50;
/** What the warehouse holds before the first event. */
export const STORED_FROM = '2025-10-01';
/** A service has been up for a while when it is measured. */
const WARM_UP = { events: 250, perSecond: 50 };

/** Service, Redis where wanted, `ringneck up` and a sender: each a process, all on this machine. */
export interface EventHarness {
  up: Up;
  recording: Recording;
  /** How many events were sent before those that are measured. */
  warmUp: number;
  /** Sends the next ones, each of another document. */
  send(count: number, perSecond: number): Promise<Sending>;
  /** Ends `up` and reads what its warehouse has. Throws when anything but the storing of each document has become of the events sent. */
  read(): Promise<EventsRead>;
}

/** Opens all of it over a warehouse that holds a month of 50 accounts, for one measurement. @param lake makes a folder whose warehouse is a lake */
export async function withEventHarness<Result>(
  bench: Bench,
  queue: QueueKind,
  work: (harness: EventHarness) => Promise<Result>,
  lake?: (parent: string, url: string, queueUrl: string | undefined) => Promise<Folder>,
): Promise<Result> {
  const collections = datedResources.map(({ name }) => name);
  const recording = ensureRecording(PEOPLE, collections);
  const events = listEvents(recording, ACCOUNTS);
  const scratch = bench.newFolder();
  const closing: (() => Promise<void>)[] = [];
  let sent = 0;
  try {
    const redis = queue === 'Redis' ? await startRedis(join(scratch, 'redis')) : undefined;
    if (redis) closing.push(redis.stop);
    const service = await startTask(serveEvents, { recording, accounts: ACCOUNTS });
    closing.push(service.stop);
    const { url } = service.result;
    const folder: Folder = lake ? await lake(scratch, url, redis?.url) : { data: join(scratch, 'data'), url, queueUrl: redis?.url };
    await makeFolder(folder, accountNames(ACCOUNTS));
    const up = await startUp(folder);
    closing.push(up.stop);
    const harness: EventHarness = {
      up,
      recording,
      warmUp: WARM_UP.events,
      send(count, perSecond) {
        const some = events.slice(sent, sent + count);
        if (some.length < count) throw new Error(`there are only ${events.length} events`);
        sent += count;
        return runTask(sendEvents, { url: up.callbackUrl, secret: up.secret, events: some, perSecond });
      },
      async read() {
        await up.stop();
        const read = await runTask(readEvents, { path: warehouseIn(folder), tables: datedResources, from: EVENTS_FROM });
        const { outcomes, documents } = read;
        if (outcomes.stored !== sent || documents !== sent || read.times.length !== sent) {
          throw new Error(
            `${sent} events were sent; the warehouse has ${documents} of their documents and says ${JSON.stringify(outcomes)}`,
          );
        }
        return read;
      },
    };
    await endedWell(up.command('backfill', '--from', STORED_FROM, '--to', BACKFILLED_TO));
    await harness.send(WARM_UP.events, WARM_UP.perSecond);
    await up.untilSettled(WARM_UP.events, 30_000);
    return await work(harness);
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

/** Waits for a backfill. @throws where it does not end well */
export async function endedWell(command: ReturnType<Up['command']>): Promise<void> {
  const [code] = await once(command, 'exit');
  if (code !== 0) throw new Error(`ringneck backfill ended with exit code ${code}`);
}

/** Whether every answer was a 2xx. */
export const allAccepted = ({ answers }: Sending) => Object.keys(answers).every(status => /^2\d\d$/.test(status));

export const showSending = ({ seconds, answers, p50, p99, max }: Sending) =>
  `sent in ${seconds.toFixed(1)} s, ${JSON.stringify(answers)}, answers p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(0)}, longest ${max.toFixed(0)} ms`;
