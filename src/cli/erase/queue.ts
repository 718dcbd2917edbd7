import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { emptyQueues, type HeldEvent, isAbout, putEvents, readEvents } from '../../../jobs/erase-events.ts';
import { ensureFolder, writeFileAtomically } from '../../files.ts';
import type { openQueues } from '../../queue/open.ts';
import type { Queues } from '../../queue/queues.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { OwnerOptions } from '../owner.ts';

/** What the queues alone held: kept here from before they are emptied until it is in them again. */
interface SetAside {
  events: HeldEvent[];
  /** An earlier loss of the queue that is not made good yet. */
  lost: boolean;
}

type Options = Pick<OwnerOptions, 'settings' | 'log'>;

const asidePath = (folder: string) => join(folder, 'erasing-events.json');
/** Where the queue lies: its folder may be a link to another disk. */
function targetOf(folder: string): string {
  const isLink = lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink();
  return isLink ? resolve(dirname(folder), readlinkSync(folder)) : folder;
}

const queueFolder = (folder: string) => join(folder, 'queue');

/**
 * Empties the queues, so that nothing of a person is in them nor in what they have written before. The events, which were acknowledged and
 * are in the queue alone, are set aside; windows are planned in the ledger.
 */
export async function setEventsAside({ settings, log }: Options, warehouse: Warehouse): Promise<void> {
  const folder = queueFolder(settings.data);
  const target = targetOf(folder);
  const gone = `${target}.erased`;
  rmSync(gone, { recursive: true, force: true });
  // A process that was killed here has left the link alone.
  if (target !== folder) mkdirSync(target, { recursive: true, mode: 0o700 });
  const aside = readAside(settings.data);
  const take = async (queues: Queues) => {
    const held = await readEvents({ warehouse, queues });
    // Again what an attempt before this one had set aside.
    const known = new Set(aside.events.map(event => JSON.stringify(event)));
    aside.events.push(...held.filter(event => !known.has(JSON.stringify(event))));
    aside.lost ||= queues.startedEmpty;
    writeFileAtomically(asidePath(settings.data), JSON.stringify(aside));
  };
  // Also beside a Redis: from the time before there was one.
  if (existsSync(folder)) {
    await withQueues({ folder, prefix: settings.queuePrefix, log }, take);
    // With it what was kept aside when it was broken, and what PostgreSQL has not overwritten. Its name first: half a queue is a broken one.
    renameSync(target, gone);
    rmSync(gone, { recursive: true, force: true });
    if (target !== folder) mkdirSync(target, { mode: 0o700 });
  }
  if (settings.queueUrl) {
    await withQueues({ url: settings.queueUrl, prefix: settings.queuePrefix, folder, log }, async queues => {
      await take(queues);
      await emptyQueues({ warehouse, queues });
    });
  }
}

/**
 * Puts back what was set aside, but for the events about a person.
 * @returns how many were left out
 */
export async function putBackEvents({ settings, log }: Options, warehouse: Warehouse, without: readonly string[]): Promise<number> {
  const { data, queueUrl, queuePrefix } = settings;
  const { events, lost } = readAside(data);
  if (lost) {
    ensureFolder(queueFolder(data));
    writeFileAtomically(join(queueFolder(data), 'database.lost'), '');
  }
  const kept = events.filter(event => !isAbout(event, without));
  if (kept.length) {
    const place = { ...(queueUrl ? { url: queueUrl } : {}), prefix: queuePrefix, folder: queueFolder(data), log };
    await withQueues(place, queues => putEvents({ warehouse, queues }, kept));
  }
  rmSync(asidePath(data), { force: true });
  return events.length - kept.length;
}

async function withQueues<T>(options: Parameters<typeof openQueues>[0], work: (queues: Queues) => Promise<T>): Promise<T> {
  // Loaded only where there is a queue: BullMQ takes 0.2 s.
  const { openQueues } = await import('../../queue/open.ts');
  const queues = await openQueues(options);
  try {
    return await work(queues);
  } finally {
    await queues.close({ graceMs: 0 });
  }
}

function readAside(folder: string): SetAside {
  const path = asidePath(folder);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as SetAside) : { events: [], lost: false };
}
