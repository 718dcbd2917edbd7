import { findIndexed, listInvariants, rebuilt } from '../../warehouse/invariants.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

const MEND = 'this should never happen: keep a copy of the data folder and report it; a new folder and a backfill give a clean warehouse';

/**
 * Counts what the writer must never let happen: there are no keys in the warehouse. One statement after the other until the time is over:
 * the owner's other reads come in between.
 */
export async function checkWarehouse(warehouse: Pick<Warehouse, 'read' | 'mappings'>, ms: number): Promise<CheckResult[]> {
  const end = performance.now() + ms;
  const results: CheckResult[] = [];
  let asked = 0;
  for (const table of await findIndexed(warehouse)) {
    results.push(
      warn(
        'warehouse',
        `${table} has a key or an index: killed while it replaces many of its rows, this DuckDB can leave a file that no one opens`,
        `keep it in a file of its own, or make it anew without: ${rebuilt(table)}`,
      ),
    );
  }
  const invariants = await listInvariants(warehouse);
  for (const { what, count } of invariants) {
    if (performance.now() > end) break;
    const broken = await count();
    if (broken > 0) results.push(fail('warehouse', `${broken} ${what}`, MEND));
    asked++;
  }
  if (asked < invariants.length) {
    results.push(warn('warehouse', `only ${asked} of ${invariants.length} counts were done in time`, 'run it again when less is going on'));
  } else if (!results.some(({ state }) => state === 'fail'))
    results.push(ok('warehouse', 'no row is there twice, and every document has its samples'));
  return results;
}
