import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { EventJob, EventsJob } from '../../src/sync/events/accept-event.ts';
import { shareRedis } from '../queue/redis-server.ts';
import { spo2 } from '../service/documents.ts';
import { openEventHarness } from '../support/event-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const newQueue = shareRedis();
const HOUR = 3_600_000;
const IDS = ['spo2-1', 'spo2-2', 'spo2-3', 'spo2-4'];
const DOCUMENT = '/v2/usercollection/daily_spo2/*';

/** A harness in which nothing is worked off yet, with a person of whose documents the service has all but these; and how a start of it is opened again. */
async function setUp(failing: readonly string[] = [], failed = [1, 1, 1], queueUrl = newQueue().RINGNECK_QUEUE_URL) {
  const data = join(folder, randomUUID());
  const open = async (later: boolean) => {
    const delays = { failed, unreadable: [1, 1, 1], confirm: 1 };
    const harness = await openEventHarness(folder, { data, queueUrl, later, delays, lookAgainMs: 5 });
    let closing: Promise<void> | undefined;
    const close = () => {
      closing ??= harness.close();
      return closing;
    };
    onTestFinished(close);
    harness.faults.on(DOCUMENT, ({ path }) =>
      failing.some(id => path.endsWith(`/${id}`)) ? { status: 500, json: { detail: 'ill' } } : undefined,
    );
    const ada = await harness.person('ada', { daily_spo2: IDS.map((id, i) => spo2(`2025-03-0${i + 5}`, id)) });
    const asked = (id: string) => harness.faults.asked.filter(({ path }) => path.endsWith(`/${id}`)).length;
    return { harness, ada, asked, close };
  };
  return open;
}

const settledOf = (events: readonly { object_id: string; outcome: string }[]) =>
  events.map(({ object_id, outcome }) => `${object_id} ${outcome}`).sort();

test('events that came at once share a job, which keeps of them what the inbox knows them by', async () => {
  const { harness, ada } = await (await setUp())(true);
  const addAll = vi.spyOn(harness.pipeline.queues, 'addAll');
  for (const object_id of IDS) await ada.announce({ object_id });
  const keys = harness.pipeline.inbox.keys();
  await harness.start();
  await harness.settled(4);
  expect(addAll.mock.calls.map(([, jobs]) => jobs.map(({ data }) => data))).toEqual([[{ keys }]]);
  expect(settledOf(harness.lines)).toEqual(IDS.map(id => `${id} stored`));
  expect(harness.pipeline.inbox.size).toBe(0);
  await until('the queue is empty', async () => (await harness.queue.getJobCountByTypes('waiting', 'active', 'delayed', 'failed')) === 0);
});

test('one of them that fails goes on in a job of its own with its own attempts, and the others are fetched once', async () => {
  const { harness, ada, asked } = await (await setUp(['spo2-3']))(true);
  for (const object_id of IDS) await ada.announce({ object_id });
  await harness.start();
  await harness.settled(4);
  expect(settledOf(harness.lines)).toEqual(['spo2-1 stored', 'spo2-2 stored', 'spo2-3 parked', 'spo2-4 stored']);
  expect(IDS.map(asked)).toEqual([1, 1, 4, 1]);
});

test('one of them that is put off is so beyond the end of the process, and the others have their outcome', async () => {
  const open = await setUp(['spo2-3'], [HOUR]);
  const first = await open(true);
  for (const object_id of IDS) await first.ada.announce({ object_id });
  await first.harness.start();
  await first.harness.settled(3);
  await until('it is put off', async () => (await first.harness.queue.getDelayedCount()) === 1);
  const [job] = await first.harness.queue.getDelayed();
  expect(job!.data as EventJob & { failures: number }).toMatchObject({ misses: 0, failures: 1 });
  expect(first.harness.pipeline.inbox.keys().map(key => `inbox-${key}`)).toEqual([job!.id]);
  await first.close();
  const { harness, asked } = await open(true);
  await harness.start();
  await until('it is still put off', async () => (await harness.queue.getDelayedCount()) === 1);
  expect(await harness.queue.getWaitingCount()).toBe(0);
  expect(IDS.map(asked)).toEqual([0, 0, 0, 0]);
});

test('an event that is looked at twice is so though others shared its job', async () => {
  const { harness, ada, asked } = await (await setUp())(true);
  await ada.store(
    'daily_spo2',
    IDS.slice(0, 2).map((id, i) => spo2(`2025-03-0${i + 5}`, id)),
  );
  for (const object_id of IDS) await ada.announce({ object_id, event_time: '2025-03-10T15:30:00Z' });
  await harness.start();
  await until('two are asked for again', () => asked('spo2-1') + asked('spo2-2') === 4);
  expect([asked('spo2-3'), asked('spo2-4')]).toEqual([1, 1]);
});

test('a job that was begun before leaves each of its events to a job of its own: one of them may have ended the process', async () => {
  // A Redis would wait for the lock of what a worker has left.
  const open = await setUp([], [1, 1, 1], '');
  const first = await open(true);
  for (const object_id of IDS) await first.ada.announce({ object_id });
  const keys = first.harness.pipeline.inbox.keys();
  await first.harness.pipeline.queues.addAll(first.harness.queue.name, [
    { name: 'events', data: { keys } satisfies EventsJob, opts: { jobId: `inbox-${keys[0]}-${keys.at(-1)}`, removeOnComplete: true } },
  ]);
  // A process that took it and ended.
  let taken = false;
  first.harness.pipeline.queues.worker(
    first.harness.queue.name,
    () => {
      taken = true;
      return new Promise(() => undefined);
    },
    { concurrency: 1 },
  );
  await until('it is taken', () => taken);
  await first.close();
  const { harness } = await open(true);
  const addAll = vi.spyOn(harness.pipeline.queues, 'addAll');
  await harness.start();
  await harness.settled(4);
  expect(addAll.mock.calls.flatMap(([, jobs]) => jobs.map(({ opts }) => opts!.jobId)).sort()).toEqual(keys.map(key => `inbox-${key}`));
  expect(settledOf(harness.lines)).toEqual(IDS.map(id => `${id} stored`));
});
