import { isoOf } from '../../../schema/instant.ts';
import { type Account, listAccounts } from '../../ledger/accounts.ts';
import { listUnknownPersons as listUnknown } from '../../ledger/events.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';

/** Somebody of whom events tell, and whom no account is known to be. */
export interface UnknownPerson {
  service_user_id: string;
  /** How many events wait for it to be mapped. */
  events: number;
  last_event_at: string;
}

/** Those of whom events wait, the latest first. */
export async function listUnknownPersons(warehouse: Pick<Warehouse, 'read'>): Promise<UnknownPerson[]> {
  return (await listUnknown(warehouse)).map(({ serviceUserId, events, lastAt }) => ({
    service_user_id: serviceUserId,
    events,
    last_event_at: isoOf(lastAt),
  }));
}

/** The one account that there is, where nobody knows the service's id of its person: it may be whoever an event tells of. */
export async function findOnlyAccount(warehouse: Warehouse): Promise<Account | undefined> {
  const [only, ...others] = await listAccounts(warehouse);
  return only && !others.length && only.state === 'active' && only.serviceUserId === null ? only : undefined;
}
