import { isoOf } from '../../schema/instant.ts';
import type { Client } from '../client/client.ts';
import { factEntry, readFact } from '../ledger/meta.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

/** Since when nobody could be reached at the service, and why. */
export interface Silence {
  since: string;
  reason: string;
}

/** As the ledger has it; of another service it says nothing. */
interface Left extends Silence {
  service: string | undefined;
}

interface Parts {
  warehouse: Warehouse;
  /** Undefined where this process has none, and so has asked nobody. */
  client: Pick<Client, 'findSilence' | 'answers'> | undefined;
  /** Undefined where a look at the folder names none. */
  service: string | undefined;
  now: () => number;
}

/** How it stands: what the requests of this process came to; without any what an earlier one has left. Null: somebody answered last. */
export async function readSilence({ warehouse, client, service, now }: Parts): Promise<Silence | null> {
  const silence = client?.findSilence();
  if (client?.answers && !silence) return null;
  const left = client?.answers ? null : await readLeft(warehouse, service);
  return silence ? { since: left?.since ?? isoOf(Math.floor(now() - silence.ms) * 1000), reason: silence.why } : left;
}

/** Leaves to the next process how it stands: who has only cron looks when none is running. */
export async function leaveSilence(parts: Parts): Promise<void> {
  if (!parts.client) return;
  const [found, left] = [await readSilence(parts), await readLeft(parts.warehouse, parts.service)];
  if (found?.since === left?.since && found?.reason === left?.reason) return;
  const value = found && JSON.stringify({ service: parts.service, ...found } satisfies Left);
  await parts.warehouse.record([factEntry('service_silence', value)]);
}

async function readLeft(warehouse: Warehouse, ours: string | undefined): Promise<Silence | null> {
  const fact = await readFact(warehouse, 'service_silence');
  if (fact === undefined) return null;
  const { service, ...silence }: Left = JSON.parse(fact);
  return ours === undefined || service === ours ? silence : null;
}
