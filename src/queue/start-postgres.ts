import { setFlagsFromString } from 'node:v8';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';

const params = [
  ...PGlite.defaultStartParams,
  ...['shared_buffers=16MB', 'search_path=bullmq', 'max_wal_size=32MB', 'min_wal_size=16MB', 'maintenance_work_mem=8MB'].flatMap(
    setting => ['-c', setting],
  ),
];

/** Starts PostgreSQL in this process: always the same way, the snapshot and the live one. */
export function startPostgres(options: Pick<PGliteOptions, 'dataDir' | 'initDbStartParams'>): Promise<PGlite> {
  // How much of a function runs before V8 compiles it once more, optimized. With the 1.8 million of Node 20 that is 1.0 of the 1.4 s of
  // CPU that an opening costs. What is really hot is optimized all the same: 3,000 jobs cost the same, 12,000 cost 5 % more.
  setFlagsFromString('--wasm-tiering-budget=1000000000');
  return PGlite.create({ ...options, startParams: params });
}
