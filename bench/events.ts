import { createHash } from 'node:crypto';
import { resources } from '../schema/index.ts';
import type { WebhookEvent } from '../schema/webhook.ts';
import { idsOf, type Recording, readRecorded } from './recording.ts';

/** Days whose documents only events bring: what a backfill reads ends at least two days before. */
export const EVENTS_FROM = '2025-11-08';
export const BACKFILLED_TO = '2025-11-05';

export const datedResources = resources.filter(({ dated }) => dated);

/** The service's own id of the person of an account. */
export const serviceUserOf = (account: number) => `person-${account}`;

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
