import { join } from 'node:path';
import { expect } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { type Changing, EVENT_TIMES_FROM } from './changing-documents.ts';
import { normalise } from './equal-in-meaning.ts';
import type { Sent } from './event-load.ts';
import { findBroken } from './table-hash.ts';
import { openWarehouse, rows } from './warehouse.ts';

interface Row {
  n: number;
  object_id: string;
  received: number;
  committed: number;
  outcome: string | null;
  reason: string | null;
}

export interface Played {
  sent: readonly Sent[];
  /** When each kill was. */
  killedAt: readonly number[];
  /** As the service has them in the end. */
  documents: readonly Changing[];
  deletes: 'once' | 'any';
}

/** Opens the file that nobody has open any more. */
export async function checkEvents(data: string, name: string, played: Played): Promise<void> {
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  try {
    await check(warehouse, name, played);
  } finally {
    await warehouse.close();
  }
}

/** Each acknowledged event is in the ledger with its outcome; what was announced last is stored as the service has it, once. */
async function check(warehouse: Warehouse, name: string, { sent, killedAt, documents, deletes }: Played): Promise<void> {
  expect(await findBroken(sql => warehouse.read(sql)), name).toEqual([]);
  const swept = `SELECT DISTINCT collection FROM sync.windows JOIN sync.runs USING (run_id) WHERE kind <> 'backfill' AND collection <> 'heart_rate'`;
  expect(await warehouse.read(swept), name).toEqual([]);

  const ledger = (await rows(
    warehouse,
    `SELECT epoch_us(event_time) - epoch_us(TIMESTAMP '${EVENT_TIMES_FROM}') AS n, object_id,
            epoch_us(received_at) / 1000 AS received, epoch_us(committed_at) / 1000 AS committed, outcome, reason FROM sync.events`,
  )) as Row[];
  const byNumber = new Map<number, Row[]>();
  for (const row of ledger) byNumber.set(row.n, [...(byNumber.get(row.n) ?? []), row]);
  const rowsOf = ({ event, acknowledgedAt }: Sent) =>
    (byNumber.get(Number(event.event_time.slice(20, 26))) ?? []).filter(
      row => row.object_id === event.object_id && row.received >= acknowledgedAt! && row.outcome !== null,
    );
  const acknowledged = sent.filter(({ acknowledgedAt }) => acknowledgedAt !== undefined);
  const lost = acknowledged.filter(one => rowsOf(one).length === 0);
  expect(lost.map(nameOf), `${name}: answered 2xx, and not in the ledger`).toEqual([]);
  // One whose document was deleted meanwhile says so.
  const unexpected = ledger.filter(({ outcome, reason }) => outcome === 'parked' && !(deletes === 'any' && reason?.includes('found')));
  expect(unexpected, name).toEqual([]);
  const survivors = acknowledged.filter(one => rowsOf(one).some(row => killedAt.some(at => row.received < at && at < row.committed)));
  expect(survivors.length, `${name}: no event was in the queue when something was killed`).toBeGreaterThan(0);

  const certain = documents.filter(changing => acknowledged.some(one => one.changed === changing && one.version === changing.version));
  expect(certain.length, name).toBeGreaterThan(documents.length / 3);
  expect(
    certain.filter(({ document }) => !document),
    `${name}: nothing was deleted`,
  ).not.toEqual([]);
  for (const { person, path, id, document, version } of certain) {
    const [stored] = await warehouse.readDocuments(path.toLowerCase(), `user_id = '${person}' AND id = '${id}'`);
    expect(normalise(stored?.document), `${name}: ${person}'s ${path} ${id}, version ${version}`).toEqual(normalise(document));
  }
}

const nameOf = ({ event, acknowledgedAt }: Sent) =>
  `${new Date(acknowledgedAt!).toISOString()} ${event.event_type} ${event.data_type} ${event.object_id} of ${event.user_id}`;
