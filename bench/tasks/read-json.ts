import type { LimitSql } from '../limit-sql.ts';
import { openLimit } from '../read-json.ts';
import { performTask, withCost } from '../task.ts';

/** The limit of the write path: DuckDB's own read_json over the same bytes in files. */
performTask(async ({ path, sql }: { path: string; sql: LimitSql }) => {
  const limit = await openLimit(path, sql);
  const { cost } = await withCost(() => limit.load());
  limit.close();
  return cost;
});
