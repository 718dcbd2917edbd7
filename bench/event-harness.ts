import { once } from 'node:events';
import { join } from 'node:path';
import { runTask, startTask } from './child.ts';
import { accountNames, BACKFILLED_TO, datedResources, EVENTS_FROM, listEvents } from './events.ts';
import type { Folder } from './folder.ts';
import { makeFolder, warehouseIn } from './pipeline.ts';
import { ensureRecording, type Recording } from './recording.ts';
import { type QueueKind, startRedis } from './redis.ts';
import type { Bench } from './row.ts';
import type { EventsRead } from './tasks/read-events.ts';
import type { Sending } from './tasks/send-events.ts';
import { startUp, type Up } from './up.ts';

const PEOPLE = 20;
export const ACCOUNTS = 50;
/** What the warehouse holds before the first event. */
const STORED_FROM = '2025-10-01';
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

/** Opens all of it over a warehouse that holds a month of 50 accounts, for one measurement. */
export async function withEventHarness<Result>(
  bench: Bench,
  queue: QueueKind,
  work: (harness: EventHarness) => Promise<Result>,
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
    const service = await startTask<{ url: string }>('serve-events', { recording, accounts: ACCOUNTS });
    closing.push(service.stop);
    const folder: Folder = { data: join(scratch, 'data'), url: service.result.url, queueUrl: redis?.url };
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
        return runTask<Sending>('send-events', { url: up.callbackUrl, secret: up.secret, events: some, perSecond });
      },
      async read() {
        await up.stop();
        const read = await runTask<EventsRead>('read-events', { path: warehouseIn(folder), tables: collections, from: EVENTS_FROM });
        const { outcomes, documents } = read;
        if (outcomes.stored !== sent || documents !== sent || read.times.length !== sent) {
          throw new Error(
            `${sent} events were sent; the warehouse has ${documents} of their documents and says ${JSON.stringify(outcomes)}`,
          );
        }
        return read;
      },
    };
    await ended(up.command('backfill', '--from', STORED_FROM, '--to', BACKFILLED_TO));
    await harness.send(WARM_UP.events, WARM_UP.perSecond);
    await up.untilSettled(WARM_UP.events, 30_000);
    return await work(harness);
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

async function ended(command: ReturnType<Up['command']>): Promise<void> {
  const [code] = await once(command, 'exit');
  if (code !== 0) throw new Error(`ringneck backfill ended with exit code ${code}`);
}

/** Whether every answer was a 2xx. */
export const allAccepted = ({ answers }: Sending) => Object.keys(answers).every(status => /^2\d\d$/.test(status));

export const showSending = ({ seconds, answers, p50, p99, max }: Sending) =>
  `sent in ${seconds.toFixed(1)} s, ${JSON.stringify(answers)}, answers p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(0)}, longest ${max.toFixed(0)} ms`;
