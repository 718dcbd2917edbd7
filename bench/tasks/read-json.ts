import type { LimitSql } from '../limit-sql.ts';
import { loadLimit } from '../read-json.ts';
import { performTask, withCost } from '../task.ts';

/** The limit of the write path: DuckDB's own read_json over the same bytes in files. */
performTask(async ({ path, sql }: { path: string; sql: LimitSql }) => (await withCost(() => loadLimit(path, sql))).cost);
