import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { EVENT_JOB_OPTIONS, eventQueue } from '../../jobs/accept-event.ts';
import { readEvents } from '../../jobs/erase-events.ts';
import { hashAccount, isEmpty } from '../support/account-rows.ts';
import { openHouse } from '../support/house.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { ringneck, type Sandbox, startRingneck, startSandbox } from './ringneck.ts';

const folder = tempFolder();
const original = join(folder, 'original');
let sandbox: Sandbox;
let before: Record<string, string>;

const event = (userId: string) =>
  JSON.stringify({ event_type: 'create', data_type: 'sleep', object_id: 'o', event_time: '2025-01-02T08:00:00Z', user_id: userId });

beforeAll(async () => {
  sandbox = await startSandbox(join(folder, 'service'));
});

let filling: Promise<void> | undefined;

/** The folder that each round begins with a copy of. */
function ensureOriginal(): Promise<void> {
  filling ??= fill();
  return filling;
}

async function fill(): Promise<void> {
  const house = await openHouse(original, sandbox.url);
  await house.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  await house.backfill({ from: '2025-01-01', to: '2025-01-03' });
  await house.operations.snapshot({});
  const { queues, warehouse } = await house.owner.pipeline();
  const jobs = sandbox.people.map(({ user_id }, i) => ({
    name: 'event',
    data: { receivedAt: 1_736_000_000_000_000 + i, event: event(user_id), misses: 0 },
    opts: EVENT_JOB_OPTIONS,
  }));
  await queues.addAll(await eventQueue(warehouse), jobs);
  before = await hashAccount(house.read, 'adam');
  await house.close();
}

const inode = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;

/** When it is killed: as soon as this can be seen in the folder. */
const MOMENTS: [name: string, (data: string) => boolean][] = [
  ['the events of others are set aside', data => existsSync(join(data, 'erasing-events.json'))],
  ['the new file is being written', data => existsSync(join(data, 'warehouse.duckdb.new'))],
  ['the new file is in its place', data => inode(join(data, 'warehouse.duckdb')) !== inodes.get(data)],
  ['the token has gone', data => !readFileSync(join(data, 'accounts.secret'), 'utf8').includes('"ada"')],
];
const inodes = new Map<string, number | undefined>();

test.each(MOMENTS)(
  'killed when %s, it is finished when the folder is opened next',
  async (name, isNow) => {
    await ensureOriginal();
    const data = join(folder, name.replaceAll(' ', '-'));
    cpSync(original, data, { recursive: true });
    inodes.set(data, inode(join(data, 'warehouse.duckdb')));
    const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url };
    const erasing = await startRingneck(['account', 'remove', 'ada', '--erase', '--yes'], { env });
    while (!isNow(data) && erasing.process.exitCode === null) await sleep(1);
    erasing.kill('SIGKILL');
    await erasing.end();
    const begun = existsSync(join(data, 'erasing.json'));

    const listed = await ringneck(['account', 'list', '--json'], { env });
    expect(listed).toMatchObject({ code: 0, stderr: begun ? expect.stringContaining('is finished') : '' });
    expect(JSON.parse(listed.stdout)).toMatchObject([{ user_id: 'adam' }]);
    expect(readdirSync(data).filter(file => /eras|\.new|\.wal$|\.tmp$/.test(file))).toEqual([]);

    const house = await openHouse(data, sandbox.url);
    expect(await hashAccount(house.read, 'adam')).toEqual(before);
    expect(isEmpty(await hashAccount(house.read, 'ada'))).toBe(true);
    const { queues, warehouse } = await house.owner.pipeline();
    const kept = await readEvents({ warehouse, queues });
    // One that was there twice is worked off twice; none is lost.
    expect([...new Set(kept.map(held => held.event))]).toEqual([event(sandbox.people[1]!.user_id)]);
    await house.close();
  },
  180_000,
);
