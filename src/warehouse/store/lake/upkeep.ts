import type { DuckDBConnection } from '@duckdb/node-api';
import { text } from '../../rows.ts';
import { quoteText } from '../../sql.ts';
import { readRows, select } from '../database.ts';
import type { Compacted, Size, Upkeep } from '../store.ts';
import { LAKE } from './open-lake.ts';

const HOUR_MICROS = 3_600_000_000;
/** Each commit leaves rows in the catalogue, or a file of its own. */
const FEW_COMMITS = 20;
const AT_MOST_EVERY_MICROS = 20 * HOUR_MICROS;
/** After so many it cannot wait for the night: what asks the lake opens each of their files. */
const MANY_COMMITS = 2_000;
const SOONEST_MICROS = 2 * HOUR_MICROS;

/** How long somebody who has begun to read may go on: the files of a state are there for so long after the next upkeep. */
const READERS_HOURS = 24;
/** In one step of a table: a live change waits for it. */
const MERGED_FILES = 200;
/** A file is written anew when so much of it is deleted. */
const DELETED_SHARE = 0.1;

/** Whether a lake has had so many commits since the last upkeep that it is worth the work. */
export function isUpkeepDue({ commits = 0 }: Size, last: Compacted | undefined, nowMicros: number): boolean {
  const since = commits - (last?.commits ?? 0);
  // A clock that was set back must not put it off for years.
  const ago = last ? Math.abs(nowMicros - last.at) : Number.POSITIVE_INFINITY;
  return (since >= FEW_COMMITS && ago >= AT_MOST_EVERY_MICROS) || (since >= MANY_COMMITS && ago >= SOONEST_MICROS);
}

/** Brings small files and the rows of the catalogue together, a table at a time, and removes what no state needs that may still be read. */
export async function runUpkeep(upkeep: Pick<Upkeep, 'connection' | 'signal'> & { run: Run }): Promise<void> {
  const { connection, signal, run } = upkeep;
  const tables = await select(
    connection,
    { schema: text, table: text },
    `SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = '${LAKE}' ORDER BY ALL`,
  );
  const steps = tables.flatMap(({ schema, table }) => {
    const [name, of] = [quoteText(table), `schema => ${quoteText(schema)}`];
    return [
      `CALL ducklake_flush_inlined_data('${LAKE}', table_name => ${name}, schema_name => ${quoteText(schema)})`,
      `CALL ducklake_rewrite_data_files('${LAKE}', ${name}, ${of}, delete_threshold => ${DELETED_SHARE})`,
      `CALL ducklake_merge_adjacent_files('${LAKE}', ${name}, ${of}, max_compacted_files => ${MERGED_FILES})`,
    ];
  });
  const old = `older_than => now() - INTERVAL ${READERS_HOURS} HOUR`;
  for (const statement of [...steps, ...removeOld(old, old), `CALL ducklake_delete_orphaned_files('${LAKE}', ${old})`]) {
    signal.throwIfAborted();
    await run(statement);
  }
}

/** Leaves nothing of what is deleted in any file: nobody may be reading or writing. */
export async function purge(connection: DuckDBConnection, run: Run): Promise<void> {
  const steps = [
    `CALL ducklake_flush_inlined_data('${LAKE}')`,
    `CALL ducklake_rewrite_data_files('${LAKE}', delete_threshold => 0)`,
    `CALL ducklake_merge_adjacent_files('${LAKE}')`,
  ];
  for (const statement of [...steps, ...removeOld('older_than => now()', 'cleanup_all => true')]) await run(statement);
  const orphans = await readRows(connection, `CALL ducklake_delete_orphaned_files('${LAKE}', cleanup_all => true, dry_run => true)`);
  if (!orphans.length) return;
  // By the clock of the files: who has taken the lake since writes later ones, which are nobody's until they are committed.
  const files = orphans.map(([path]) => quoteText(String(path))).join(', ');
  const [[newest] = []] = await readRows(connection, `SELECT (max(last_modified) + INTERVAL 1 SECOND)::VARCHAR FROM read_blob([${files}])`);
  await run(`CALL ducklake_delete_orphaned_files('${LAKE}', older_than => ${quoteText(String(newest))}::TIMESTAMPTZ)`);
}

/** Runs a statement while the lake is ours. */
type Run = (statement: string) => Promise<void>;

/** The states that nobody reads any more, and their files. */
const removeOld = (states: string, files: string) => [
  `CALL ducklake_expire_snapshots('${LAKE}', ${states})`,
  `CALL ducklake_cleanup_old_files('${LAKE}', ${files})`,
];
