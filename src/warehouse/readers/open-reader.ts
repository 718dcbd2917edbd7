import { existsSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { WAREHOUSE } from '../../base/warehouse-file.ts';
import { quoteName, quoteText, type Value } from '../sql.ts';
import { readRows } from '../store/database.ts';
import { openWaiting, refuseOpen, waitForHolder } from '../store/file/open-file.ts';
import { isChecksumWrong } from '../store/file/torn-block.ts';

export interface ReaderSettings {
  /** A warehouse that nobody owns, or a copy for readers. */
  path: string;
  /** As DuckDB takes it: `256MB`. */
  memoryLimit: string;
  threads?: number;
  /** How long another holder of the file is waited for. */
  patienceMs?: number;
  /** Where DuckDB puts what does not fit into its memory, removed in the end; without it what needs more fails. */
  spill?: string;
  /** The only folder that files are written to. */
  out?: string;
  /** What statements call the file, which is the one in use; without it they call it by its own name. */
  as?: string;
}

/** A file that is read, in a process that does not own it. */
export interface Reader {
  readonly connection: DuckDBConnection;
  /** Another connection, closed with the first. */
  connect(): Promise<DuckDBConnection>;
  /** Rows of a query that is known to be small, as plain values. */
  read(sql: string): Promise<Value[][]>;
  close(): void;
}

/**
 * Opens a warehouse or a copy of one, read-only. No file but that one, those that are spilled and those in `out` can be reached: a view is of
 * whoever made it, and may read anything.
 * @throws TryLaterError naming the process that holds the file, after waiting for it
 */
export async function openReader({ path, memoryLimit, threads, patienceMs, spill = '', out, as }: ReaderSettings): Promise<Reader> {
  if (!existsSync(path)) throw new RingneckError(`there is no file ${path} yet: run a backfill first`);
  refuseOpen(path);
  const config = {
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
    allow_persistent_secrets: 'false',
    temp_directory: spill,
    memory_limit: memoryLimit,
    ...(threads === undefined ? {} : { threads: String(threads) }),
  };
  const opened =
    as === undefined ? openWaiting(path, { ...config, access_mode: 'READ_ONLY' }, patienceMs) : openWaiting(':memory:', config);
  const instance = await opened.catch(error => {
    throw basename(path) === WAREHOUSE && isChecksumWrong(error)
      ? new RingneckError(`${messageOf(error)}; where a killed process has left it so, ringneck status mends it`, 1, { cause: error })
      : error;
  });
  const end = () => {
    instance.closeSync();
    if (spill) rmSync(spill, { recursive: true, force: true });
  };
  try {
    const connection = await instance.connect();
    const others: DuckDBConnection[] = [];
    if (as !== undefined) {
      await waitForHolder(path, () => connection.run(`ATTACH ${quoteText(path)} AS ${quoteName(as)} (READ_ONLY)`), patienceMs);
      await connection.run(`USE ${quoteName(as)}`);
    }
    // In this order.
    if (out !== undefined) await connection.run(`SET allowed_directories = [${quoteText(`${out}/`)}]`);
    await connection.run('SET enable_external_access = false');
    return {
      connection,
      async connect() {
        const other = await instance.connect();
        others.push(other);
        if (as !== undefined) await other.run(`USE ${quoteName(as)}`);
        return other;
      },
      read: sql => readRows(connection, sql),
      close() {
        for (const one of [connection, ...others]) one.closeSync();
        end();
      },
    };
  } catch (error) {
    end();
    throw error;
  }
}
