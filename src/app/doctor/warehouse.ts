import type { Warehouse } from '../../warehouse/warehouse.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

const MEND = 'this should never happen: keep a copy of the data folder and report it; a new folder and a backfill give a clean warehouse';

interface Question {
  /** What would be wrong. */
  what: string;
  /** Gives one number: 0 when all is well. */
  sql: string;
}

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
        `keep it in a file of its own, or make it anew without: CREATE TABLE … AS FROM ${table}`,
      ),
    );
  }
  const questions = [...documentQuestions(warehouse), ...(await heartRateQuestions(warehouse))];
  for (const { what, sql } of questions) {
    if (performance.now() > end) break;
    const [row] = await warehouse.read(sql);
    if ((row![0] as number) > 0) results.push(fail('warehouse', `${row![0]} ${what}`, MEND));
    asked++;
  }
  if (asked < questions.length) {
    results.push(warn('warehouse', `only ${asked} of ${questions.length} counts were done in time`, 'run it again when less is going on'));
  } else if (!results.some(({ state }) => state === 'fail'))
    results.push(ok('warehouse', 'no row is there twice, and every document has its samples'));
  return results;
}

/** Tables with a key, a unique constraint or an index: only somebody else's can have one, ours are refused at the start. */
async function findIndexed(warehouse: Pick<Warehouse, 'read'>): Promise<string[]> {
  const rows = await warehouse.read(
    `SELECT DISTINCT schema_name || '.' || table_name AS name FROM (
       SELECT schema_name, table_name FROM duckdb_indexes() WHERE database_name = current_database()
       UNION ALL SELECT schema_name, table_name FROM duckdb_constraints()
         WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY'))
     ORDER BY name`,
  );
  return rows.map(([name]) => name as string);
}

function documentQuestions({ mappings }: Pick<Warehouse, 'mappings'>): Question[] {
  return mappings.flatMap(({ table, columns, series }) => [
    {
      what: `documents of ${table} are there more than once`,
      sql: `SELECT count(*) FROM (SELECT 1 FROM "${table}" GROUP BY user_id, id HAVING count(*) > 1)`,
    },
    ...series.map(({ table: samples, column }) => {
      const count = columns[column + 3]!.name;
      return {
        what: `documents of ${table} and ${samples} disagree on how many samples there are`,
        sql: `SELECT count(*) FROM (SELECT sk, "${count}" AS n FROM "${table}" WHERE "${count}" > 0) d
              FULL JOIN (SELECT sk, count(*) AS n FROM "${samples}" GROUP BY sk) s USING (sk) WHERE d.n IS DISTINCT FROM s.n`,
      };
    }),
  ]);
}

/** By account and year: all at once could take the memory that a commit needs. */
async function heartRateQuestions(warehouse: Pick<Warehouse, 'read'>): Promise<Question[]> {
  const rows = await warehouse.read('SELECT user_id, year(min(ts)), year(max(ts)) FROM heart_rate GROUP BY user_id ORDER BY user_id');
  return (rows as [string, number, number][]).flatMap(([userId, first, last]) =>
    Array.from({ length: last - first + 1 }, (_, n) => ({
      what: `measurements of heart_rate of ${userId} in ${first + n} are there more than once`,
      sql: `SELECT count(*) FROM (SELECT 1 FROM heart_rate WHERE user_id = '${userId.replaceAll("'", "''")}'
            AND ts >= TIMESTAMP '${first + n}-01-01' AND ts < TIMESTAMP '${first + n + 1}-01-01' GROUP BY ts, source HAVING count(*) > 1)`,
    })),
  );
}
