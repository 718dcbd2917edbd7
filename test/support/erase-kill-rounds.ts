import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { searchRedis } from '../../src/queue/search-redis.ts';
import { EVENT_JOB_OPTIONS, eventQueue } from '../../src/sync/events/accept-event.ts';
import { warehouseId } from '../../src/sync/runs/runs.ts';
import { hashAccount, isEmpty } from './account-rows.ts';
import { type Harness, openHarness } from './harness.ts';
import { ringneck, startRingneck } from './ringneck.ts';
import { startSandbox } from './sandbox.ts';

const event = (userId: string) =>
  JSON.stringify({ event_type: 'create', data_type: 'sleep', object_id: 'o', event_time: '2025-01-02T08:00:00Z', user_id: userId });

export interface EraseSetting {
  folder: string;
  /** What each round begins with a copy of: two people, some days of each, and an event of each that nobody works off. */
  original: string;
  serviceUrl: string;
  /** What the person who stays has there, and the event. */
  before: Record<string, string>;
  /** The service's ids of both: the one who is erased, and the one who stays. */
  userIds: readonly string[];
  stays: string;
}

export async function openEraseSetting(folder: string): Promise<EraseSetting> {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-31' });
  const original = join(folder, 'original');
  const harness = await openHarness(original, sandbox.url, { queue: 'embedded' });
  await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  await harness.backfill({ from: '2025-01-01', to: '2025-01-03' });
  await harness.commands.snapshot({});
  const userIds = sandbox.people.map(({ userId }) => userId);
  await addEvents(harness, userIds);
  const before = await hashAccount(harness.read, 'adam');
  await harness.close();
  // Nobody asks it any more.
  await sandbox.close();
  return { folder, original, serviceUrl: sandbox.url, before, userIds, stays: event(userIds[1]!) };
}

/** An event of each, as versions without an inbox left them in the queue. */
async function addEvents({ app }: Harness, userIds: readonly string[]): Promise<void> {
  const { queues, warehouse } = await app.pipeline();
  const jobs = userIds.map((userId, i) => ({
    name: 'event',
    data: { receivedAt: 1_736_000_000_000_000 + i, event: event(userId), misses: 0 },
    opts: EVENT_JOB_OPTIONS,
  }));
  await queues.addAll(await eventQueue(warehouse), jobs);
}

const inode = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;

/** When it is killed: as soon as this can be seen in the folder; `copied` is what the warehouse's inode was. */
const MOMENTS = {
  'the events are in the inbox alone': (data: string) => existsSync(join(data, 'inbox')),
  'it is noted as begun': (data: string) => existsSync(join(data, 'erasing.json')),
  'the new file is being written': (data: string) => existsSync(join(data, 'warehouse.duckdb.new')),
  'the new file is in its place': (data: string, copied: number | undefined) => inode(join(data, 'warehouse.duckdb')) !== copied,
  'the token has gone': (data: string) => !readFileSync(join(data, 'accounts.secret'), 'utf8').includes('"ada"'),
};

export type EraseMoment = keyof typeof MOMENTS;

export const eraseMoments = Object.keys(MOMENTS) as EraseMoment[];

/** Kills an erasing, and sees that it is finished when the folder is opened next; with a Redis the queues are there. */
export async function killErasing(setting: EraseSetting, moment: EraseMoment, queueUrl?: string): Promise<void> {
  const { folder, original, serviceUrl, before, userIds, stays } = setting;
  const data = join(folder, `${moment} ${queueUrl ? 'redis' : 'embedded'}`.replaceAll(' ', '-'));
  cpSync(original, data, { recursive: true });
  const settings = queueUrl ? { queueUrl } : {};
  let searchQueues = async (): Promise<unknown[]> => [];
  if (queueUrl) {
    const harness = await openHarness(data, serviceUrl, { settings, queue: 'embedded' });
    await addEvents(harness, userIds);
    const id = await warehouseId(harness.app.warehouse);
    await harness.close();
    const words = [
      { what: 'service id' as const, text: userIds[0]! },
      { what: 'name' as const, text: 'ada' },
    ];
    searchQueues = () => searchRedis({ url: queueUrl, address: '', prefix: 'ringneck', warehouseId: id }, words);
    expect(await searchQueues()).not.toEqual([]);
  }
  const copied = inode(join(data, 'warehouse.duckdb'));
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: serviceUrl, ...(queueUrl ? { RINGNECK_QUEUE_URL: queueUrl } : {}) };
  const erasing = startRingneck(['account', 'remove', 'ada', '--erase', '--yes'], { env });
  while (!MOMENTS[moment](data, copied) && erasing.process.exitCode === null) await sleep(1);
  erasing.kill('SIGKILL');
  await erasing.end();
  const begun = existsSync(join(data, 'erasing.json'));

  const listed = await ringneck(['account', 'list', '--json'], { env });
  expect(listed).toMatchObject({ code: 0, stderr: begun ? expect.stringContaining('is finished') : '' });
  expect(JSON.parse(listed.stdout)).toMatchObject([{ user_id: 'adam' }]);
  expect(readdirSync(data).filter(file => /eras|\.new|\.wal$|\.tmp$/.test(file))).toEqual([]);
  expect(await searchQueues()).toEqual([]);

  const harness = await openHarness(data, serviceUrl, { settings, queue: 'embedded' });
  expect(await hashAccount(harness.read, 'adam')).toEqual(before);
  expect(isEmpty(await hashAccount(harness.read, 'ada'))).toBe(true);
  const inbox = await harness.app.inbox();
  expect(inbox.keys().map(key => inbox.find(key))).toEqual([stays]);
  await harness.close();
}
