import { orNull, type Readable, readRows, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';

/** A fact about the file, in `sync.meta`. */
export type Fact = 'id' | 'erased' | 'service_silence' | 'service_clock' | 'subscriptions' | 'subscriptions_problem' | 'declared_at';

/** All facts as they are at one moment. */
export async function readFacts(warehouse: Readable): Promise<ReadonlyMap<string, string>> {
  const rows = await readRows(warehouse, { key: text, value: orNull(text) }, 'SELECT key, value FROM sync.meta');
  return new Map(rows.flatMap(({ key, value }) => (value === null ? [] : [[key, value]])));
}

export const readFact = async (warehouse: Readable, key: Fact): Promise<string | undefined> => (await readFacts(warehouse)).get(key);

/** @param value null takes the fact away */
export const factEntry = (key: Fact, value: string | null): LedgerEntry => ({
  table: 'sync.meta',
  key: { key },
  ...(value === null ? {} : { row: { value } }),
});
