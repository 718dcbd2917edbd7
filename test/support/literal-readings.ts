import type { Outcome } from '../../src/ledger/windows.ts';
import { windowEntry } from '../../src/ledger/windows.ts';
import { type CoverageSelection, readCoverage } from '../../src/sync/coverage.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { at, collections, knownClock } from './literal-pipeline.ts';
import { resourceNamed } from './warehouse.ts';
import { STRESS } from './wire.ts';

export const NOON = Date.parse('2025-03-10T12:00:00Z');

export interface Reading {
  collection?: string;
  user?: string;
  run?: string;
  /** Days, both included; null where the collection has none. */
  days: [from: string, to: string] | null;
  outcome: Outcome | null;
  /** When it was asked and committed. */
  when?: string;
  reason?: string;
  rowsByDay?: number[];
  rejects?: { rejected: number; undated: number };
}

let runs = 0;

/** Notes in the ledger what a run has read. */
export async function note(
  warehouse: Warehouse,
  { collection = 'daily_stress', user = 'ada', days, when, ...rest }: Reading,
): Promise<void> {
  const runId = rest.run ?? `run-${++runs}`;
  const startAt = days && at(`${days[0]}T00:00:00Z`);
  const endAt = days && at(`${days[1]}T00:00:00Z`) + 86_400_000_000;
  const settled = rest.outcome !== null && rest.outcome !== 'stopped' && when ? { committedAt: at(when) } : {};
  const asked = rest.outcome === 'complete' && when ? { requestedAt: at(when), readAt: at(when) } : {};
  await warehouse.record([
    {
      table: 'sync.runs',
      key: { run_id: runId },
      row: { kind: 'backfill', started_at: at(when ?? '2025-03-01T00:00:00Z'), state: 'running', request: '{}' },
    },
    windowEntry({ runId, userId: user, collection, startAt, endAt }, { ...rest, ...settled, ...asked }),
  ]);
}

export const store = (warehouse: Warehouse, name: string, documents: object[], removed: string[] = []) =>
  warehouse.storeDocuments({ userId: 'ada', resource: resourceNamed(name), requestedAt: warehouse.clock.lease(), documents, removed });

export const stress = (day: string) => ({ ...STRESS, id: `t-${day}`, day });

/** As `from–to state: reason`. */
export async function told(warehouse: Warehouse, selection: CoverageSelection = {}): Promise<string[]> {
  const report = await readCoverage(
    { warehouse, collections, serviceClock: knownClock(() => NOON) },
    { collections: ['daily_stress'], ...selection },
  );
  return report.runs.map(({ from, to, state, reason }) => {
    const days = from === null ? 'no day' : from === to ? from.slice(5) : `${from.slice(5)} to ${to!.slice(5)}`;
    return `${days} ${state}${reason === null ? '' : `: ${reason}`}`;
  });
}

/** Three days, for the ledger and for a question. */
export const march: [string, string] = ['2025-03-05', '2025-03-07'];
export const days = { from: '2025-03-05', to: '2025-03-07' };
