import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Inbox } from '../../base/journal.ts';
import type { openQueues } from '../../queue/open.ts';
import type { Queues } from '../../queue/queues.ts';
import { removeDatabase } from '../../queue/remove-database.ts';
import { emptyQueues, forgetEvents, type HeldEvent, keepEvents, readEvents } from '../../sync/events/erase-events.ts';
import { warehouseId } from '../../sync/runs/runs.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { AppOptions } from '../app-options.ts';
import { QUEUES_OF_LAKE } from '../lake/hold.ts';
import { openEvents } from '../open-events.ts';
import { asidePath } from './is-erasing.ts';

type Options = Pick<AppOptions, 'settings' | 'log'>;

/**
 * Empties the queues, so that nothing of a person is in them nor in what they have written before. What is to be done comes anew: events
 * from the inbox, into which those go that versions without one left in the queue alone, and windows from the ledger.
 */
export async function emptyQueue(
  { settings, log }: Options,
  warehouse: Warehouse,
  whenEmpty: (inbox: Inbox) => void | Promise<void> = () => undefined,
): Promise<void> {
  const folder = join(settings.data, 'queue');
  await withInbox({ settings, log }, warehouse, async inbox => {
    const aside = asidePath(settings.data);
    // What an erasing by a version without an inbox has set aside before it was killed.
    if (existsSync(aside)) {
      const { events }: { events: HeldEvent[] } = JSON.parse(readFileSync(aside, 'utf8'));
      await keepEvents({ warehouse, inbox }, events);
    }
    rmSync(aside, { force: true });
    const keep = async (queues: Queues) => keepEvents({ warehouse, inbox }, await readEvents({ warehouse, queues }));
    // Also beside a Redis: from the time before there was one.
    if (existsSync(join(folder, 'database'))) await withQueues({ folder, prefix: settings.queuePrefix, log }, keep);
    // With it goes what was kept aside when it was broken, and what PostgreSQL has not overwritten.
    if (existsSync(folder)) removeDatabase(folder);
    if (settings.queueUrl) {
      const claim = {
        warehouse: await warehouseId(warehouse),
        folder: settings.data,
        place: settings.warehouse && QUEUES_OF_LAKE,
        onLost: () => process.exit(75),
      };
      await withQueues({ url: settings.queueUrl, prefix: settings.queuePrefix, folder, log, claim }, async queues => {
        await keep(queues);
        await emptyQueues({ warehouse, queues });
      });
    }
    await whenEmpty(inbox);
  });
}

/**
 * Removes the events about a person that were accepted and not worked off.
 * @returns how many there were
 */
export function removeEvents(options: Options, warehouse: Warehouse, serviceUserIds: readonly string[]): Promise<number> {
  return withInbox(options, warehouse, async inbox => forgetEvents({ inbox }, serviceUserIds));
}

async function withInbox<T>({ settings, log }: Options, warehouse: Warehouse, work: (inbox: Inbox) => Promise<T>): Promise<T> {
  const inbox = await openEvents({ settings, log }, warehouse);
  try {
    return await work(inbox);
  } finally {
    await inbox.close();
  }
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
