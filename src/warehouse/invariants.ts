import { partsOf } from './mapping.ts';
import { number, type Readable, readRow, readRows, readValues, text } from './rows.ts';
import { quoteText } from './sql.ts';
import type { Warehouse } from './warehouse.ts';

export interface Invariant {
  /** What would be wrong. */
  what: string;
  /** How often it is: 0 when all is well. */
  count(): Promise<number>;
}

const counting = (warehouse: Readable, sql: string) => async () => (await readRow(warehouse, { count: number }, sql)).count;

/** Tables with a key, a unique constraint or an index: only somebody else's can have one, ours are refused at the start. */
export const findIndexed = (warehouse: Readable): Promise<string[]> =>
  readValues(
    warehouse,
    text,
    `SELECT DISTINCT schema_name || '.' || table_name AS name FROM (
       SELECT schema_name, table_name FROM duckdb_indexes() WHERE database_name = current_database()
       UNION ALL SELECT schema_name, table_name FROM duckdb_constraints()
         WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY'))
     ORDER BY name`,
  );

/** The statement that makes such a table anew without them. */
export const rebuilt = (table: string): string => `CREATE TABLE … AS FROM ${table}`;

/** Counts what the writer must never let happen: there are no keys in the warehouse. */
export async function listInvariants(warehouse: Pick<Warehouse, 'read' | 'mappings'>): Promise<Invariant[]> {
  return [...documentInvariants(warehouse), ...(await heartRateInvariants(warehouse))];
}

function documentInvariants(warehouse: Pick<Warehouse, 'read' | 'mappings'>): Invariant[] {
  return warehouse.mappings.flatMap(mapping => [
    {
      what: `documents of ${mapping.table} are there more than once`,
      count: counting(warehouse, `SELECT count(*) FROM (SELECT 1 FROM "${mapping.table}" GROUP BY user_id, id HAVING count(*) > 1)`),
    },
    ...partsOf(mapping).map(part => {
      const count = mapping.columns[part.count]?.name;
      return {
        what: `documents of ${mapping.table} and ${part.table} disagree on how many ${mapping.series.includes(part) ? 'samples' : 'rows'} there are`,
        count: counting(
          warehouse,
          `SELECT count(*) FROM (SELECT sk, "${count}" AS n FROM "${mapping.table}" WHERE "${count}" > 0) d
              FULL JOIN (SELECT sk, count(*) AS n FROM "${part.table}" GROUP BY sk) s USING (sk) WHERE d.n IS DISTINCT FROM s.n`,
        ),
      };
    }),
  ]);
}

/** By account and year: all at once could take the memory that a commit needs. */
async function heartRateInvariants(warehouse: Readable): Promise<Invariant[]> {
  const rows = await readRows(
    warehouse,
    { userId: text, first: number, last: number },
    'SELECT user_id, year(min(ts)), year(max(ts)) FROM heart_rate GROUP BY user_id ORDER BY user_id',
  );
  return rows.flatMap(({ userId, first, last }) =>
    Array.from({ length: last - first + 1 }, (_, n) => ({
      what: `measurements of heart_rate of ${userId} in ${first + n} are there more than once`,
      count: counting(
        warehouse,
        `SELECT count(*) FROM (SELECT 1 FROM heart_rate WHERE user_id = ${quoteText(userId)}
            AND ts >= TIMESTAMP '${first + n}-01-01' AND ts < TIMESTAMP '${first + n + 1}-01-01' GROUP BY ts, source HAVING count(*) > 1)`,
      ),
    })),
  );
}
