import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** DuckDB's client. Not imported: Node would first read the source of all its files for what they export, 0.1 s of CPU for each process. */
export const duckdb = require('@duckdb/node-api') as typeof import('@duckdb/node-api');
