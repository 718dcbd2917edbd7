import { join } from 'node:path';
import type { Inbox } from '../base/journal.ts';
import type { CommonInbox } from '../machines/inbox.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { AppOptions, StandbyOptions } from './app-options.ts';
import { findHeld } from './lake/hold.ts';

/**
 * Opens the accepted events that have no outcome yet: in the data folder, or of a lake in its catalogue, where any machine accepts them. What the
 * folder has of before goes there too.
 */
export async function openEvents(
  { settings, log }: Pick<AppOptions, 'settings' | 'log'>,
  warehouse: Pick<Warehouse, 'read'>,
  standby?: StandbyOptions,
): Promise<Inbox | CommonInbox> {
  if (standby) {
    const { CommonInbox } = await import('../machines/inbox.ts');
    const lease = { token: '', ensure: () => Promise.reject(standby.refusal()), lose: () => undefined };
    return CommonInbox.open({ catalogue: standby.catalogue, lease, log, replayMs: 0, isReader: true });
  }
  const { leaveOutFinished, openInbox } = await import('../sync/events/accept-event.ts');
  const held = await findHeld(settings.data);
  const ours = await openInbox(join(settings.data, 'inbox'), warehouse, log);
  if (!held) return ours;
  const { CommonInbox } = await import('../machines/inbox.ts');
  const replayMs = 2_000 * settings.signatureWindow;
  const inbox = await leaveOutFinished(await CommonInbox.open({ ...held, log, replayMs }), warehouse);
  for (const key of ours.keys()) {
    const text = ours.find(key);
    if (text !== undefined) await inbox.append(key, text);
    ours.finish(key);
  }
  await ours.close();
  return inbox;
}
