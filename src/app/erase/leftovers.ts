import { existsSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Settings } from '../../base/config.ts';
import { realPath } from '../../base/files.ts';
import { isRunning } from '../../base/is-running.ts';
import { tornBlocksOf, upgradeCopiesOf, warehouseIn } from '../../base/warehouse-file.ts';
import { removeHalfDated } from '../snapshot/snapshots.ts';

/** What a process that was killed, whose PID it says, has left of a file of ours that it was writing: nobody has ever read it. */
const HALF_WRITTEN =
  /^(?:mirror-tokens\.json|console-sessions\.json|erasing\.json|erasing-events\.json|moving\.json|sql_history|.+\.duckdb\.handover)\.(\d+)(?:\.[0-9a-f]+)?\.new$/;
/** What a key seals, and the key. */
const SEALED = ['accounts.secret', 'secret.key', 'service/client.json'];
const HALF = /\.(\d+)\.[0-9a-f]+\.new$/;
/** What a search that was killed had spilled. */
const SPILLED = /\.duckdb\.(\d+)\.tmp$/;

/**
 * Removes the halves that killed processes have left: copies of the warehouse that were never published, and files that were to be put
 * in the place of others. Nobody else may work in the folder.
 */
export function removeLeftovers({ data, snapshot }: Pick<Settings, 'data' | 'snapshot'>): void {
  for (const path of existsSync(snapshot) ? [snapshot, realpathSync(snapshot)] : [snapshot]) {
    for (const half of [`${path}.new`, `${path}.new.wal`]) rmSync(half, { force: true });
  }
  const dated = join(dirname(snapshot), 'snapshots');
  removeHalfDated(dated);
  removeFrom(dated, name => isDead(SPILLED.exec(name)));
  for (const warehouse of new Set([warehouseIn(data), realPath(warehouseIn(data))])) {
    for (const kept of [tornBlocksOf(warehouse), upgradeCopiesOf(warehouse)]) {
      removeFrom(dirname(kept), name => name.startsWith(basename(kept)));
    }
  }
  removeSealedHalves(data);
  removeFrom(data, name => isLeftHalf(HALF_WRITTEN.exec(name)) || isDead(SPILLED.exec(name)));
  // A search of the snapshot may have spilled beside it.
  removeFrom(dirname(snapshot), name => name.startsWith(basename(snapshot)) && isDead(SPILLED.exec(name)));
}

/** Of files that a key seals alone: what killed processes have left of them is opened by the key of then. */
export function removeSealedHalves(data: string): void {
  for (const path of SEALED.map(name => join(data, name)).filter(path => existsSync(dirname(path)))) {
    const target = realPath(path);
    removeFrom(dirname(target), name => name.startsWith(`${basename(target)}.`) && isLeftHalf(HALF.exec(name)));
  }
}

function removeFrom(folder: string, which: (name: string) => boolean): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) if (which(name)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** We write each in one go: a half with our own PID is of a process that had it before, as in a container. */
const isLeftHalf = (named: RegExpExecArray | null) => named?.[1] === String(process.pid) || isDead(named);

/** `ringneck sql` may be putting its history there this moment, and owns nothing. */
const isDead = (named: RegExpExecArray | null) => named !== null && !isRunning(Number(named[1]));
