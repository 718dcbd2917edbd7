import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { diskReserveBytes, ensureDiskReserve } from '../../base/disk.ts';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { realPath } from '../../base/files.ts';
import { upgradeCopiesOf } from '../../base/warehouse-file.ts';
import { FORMAT } from '../format.ts';
import { LARGE_BYTES, LARGE_THREADS } from '../store/memory.ts';
import type { Store } from '../store/store.ts';

interface KeepOptions {
  path: string;
  /** Throws when there is no room on the disk. */
  beforeGroup?: () => void;
  onUpgrade?: (message: string) => void;
}

/**
 * Keeps the file of an earlier version as it is, beside itself, before it is changed: that version could not open it afterwards.
 * @param format of the file; null where it notes none
 * @throws RingneckError where there is no room, or it cannot be written
 */
export async function keepCopy(
  store: Pick<Store, 'copy' | 'memory'>,
  connection: DuckDBConnection,
  format: number | null,
  { path, beforeGroup = () => {}, onUpgrade }: KeepOptions,
): Promise<void> {
  const real = realPath(path);
  const said = `${path} was made by an earlier version${format === null ? '' : ` (format ${format}, now ${FORMAT})`}`;
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const copy = `${upgradeCopiesOf(real)}${stamp}-${randomBytes(4).toString('hex')}`;
  const parts = { connection, beforeTable: beforeGroup, signal: new AbortController().signal };
  try {
    removeHalves(real);
    ensureDiskReserve(dirname(real), diskReserveBytes + statSync(real).size);
    // Before the copy, which may take minutes.
    onUpgrade?.(`${said} and is upgraded; first it is copied as it is to ${copy}: remove that when all is well`);
    const limits = { bytes: LARGE_BYTES, threads: LARGE_THREADS };
    await store.memory.enough(connection, 'the copy before an upgrade', () => store.copy(copy, parts), limits);
  } catch (error) {
    throw new RingneckError(`${said}; it is upgraded only when there is a copy of it beside it: ${messageOf(error)}`, 1, { cause: error });
  }
}

/** What processes have left that were killed: whoever has the warehouse open is the only one to write them. */
function removeHalves(warehouse: string): void {
  const copies = upgradeCopiesOf(warehouse);
  for (const name of readdirSync(dirname(copies))) {
    if (name.startsWith(basename(copies)) && /\.new(\.wal)?$/.test(name)) rmSync(join(dirname(copies), name), { force: true });
  }
}
