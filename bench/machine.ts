import { cpus, totalmem } from 'node:os';
import duckdb from '@duckdb/node-api/package.json' with { type: 'json' };

/** What the figures were measured on. */
export function describeMachine(): string {
  const [cpu] = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return [
    `${cpus().length} × ${cpu?.model.trim()}`,
    memory,
    `${process.platform} ${process.arch}`,
    `Node ${process.versions.node}`,
    `DuckDB ${duckdb.version}`,
  ].join(', ');
}
