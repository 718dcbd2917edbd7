import { spawnSync } from 'node:child_process';

/** Whether this machine’s Python has DuckDB: a build of it that is not ours. DEMAND_TOOLS=1 turns its absence into a failure instead of skipped tests. */
export const hasPythonDuckDB = spawnSync('python3', ['-c', 'import duckdb']).status === 0;
if (!hasPythonDuckDB && process.env.DEMAND_TOOLS === '1') {
  throw new Error('python3 with duckdb (pip install duckdb) is not there, and DEMAND_TOOLS=1 demands it');
}
