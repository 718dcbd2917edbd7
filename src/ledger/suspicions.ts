import { createKeptRows, number, readRows, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { quoteText } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

/** What was seen once, and counts only when it is seen again some time later. */
export interface Suspicion {
  userId: string;
  collection: string;
  /** The service refused the collection; a stored document was absent from a complete answer; and its own route has it all the same. */
  kind: 'refused' | 'missing' | 'unlisted';
  /** The document's; the whole collection is meant where there is none. */
  objectId?: string;
}

const keyOf = ({ userId, collection, kind, objectId = '' }: Suspicion) => ({ user_id: userId, collection, kind, object_id: objectId });

/** The ledger's row of a first proof, to be committed with what it speaks of. */
export const suspicionEntry = (suspicion: Suspicion, firstSeenAt: number): LedgerEntry => ({
  table: 'sync.suspicions',
  key: keyOf(suspicion),
  row: { first_seen_at: firstSeenAt },
});

/** What takes the row away, once a contrary answer has come or the second proof. */
export const noSuspicionEntry = (suspicion: Suspicion): LedgerEntry => ({ table: 'sync.suspicions', key: keyOf(suspicion) });

/** Since when this is suspected, in microseconds; undefined where it is not. */
export async function findSuspicion(warehouse: Pick<Warehouse, 'read' | 'readKept'>, suspicion: Suspicion): Promise<number | undefined> {
  return (await readSuspicions(warehouse, suspicion)).get(suspicion.objectId ?? '');
}

/** Since when each is suspected, by the document's identifier. */
export async function readSuspicions(
  warehouse: Pick<Warehouse, 'read' | 'readKept'>,
  { userId, collection, kind }: Omit<Suspicion, 'objectId'>,
): Promise<Map<string, number>> {
  // Each window asks, and hardly ever is there one.
  const places = await warehouse.readKept('sync.suspicions', 'SELECT DISTINCT user_id, collection, kind FROM sync.suspicions');
  const isHere = (place: { userId: string; collection: string; kind: string }) =>
    place.userId === userId && place.collection === collection && place.kind === kind;
  if (!toPlaces(places).some(isHere)) return new Map();
  const rows = await readRows(
    warehouse,
    { objectId: text, firstSeenAt: number },
    `SELECT object_id, first_seen_at FROM sync.suspicions
     WHERE user_id = ${quoteText(userId)} AND collection = ${quoteText(collection)} AND kind = ${quoteText(kind)}`,
  );
  return new Map(rows.map(({ objectId, firstSeenAt }) => [objectId, firstSeenAt]));
}

const toPlaces = createKeptRows({ userId: text, collection: text, kind: text });

/**
 * Notes what was seen, unless it was noted before.
 * @param nowMicros by the clock of this machine: proofs lie apart in time, whatever order requests had
 * @returns since when it is known
 */
export async function noteSuspicion(
  warehouse: Pick<Warehouse, 'read' | 'readKept' | 'record'>,
  suspicion: Suspicion,
  nowMicros: number,
): Promise<number> {
  const known = await findSuspicion(warehouse, suspicion);
  // A clock that was set back must not keep the second proof from ever counting.
  if (known !== undefined && known <= nowMicros) return known;
  await warehouse.record([suspicionEntry(suspicion, nowMicros)]);
  return nowMicros;
}
