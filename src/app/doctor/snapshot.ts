import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isoOf } from '../../../schema/instant.ts';
import { findSnapshotAccess } from '../../base/access.ts';
import type { Settings } from '../../base/config.ts';
import { messageOf } from '../../base/errors.ts';
import { findNewestCommit } from '../../ledger/runs.ts';
import { isOfThisVersion, readSnapshotFile, type SnapshotFile } from '../../warehouse/readers/snapshot-file.ts';
import type { App } from '../app.ts';
import { LONGEST_STALE_MS } from '../snapshot/schedule.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

/** Whether readers can open the snapshot, and how far it is behind the warehouse. */
export async function checkSnapshot({
  settings,
  warehouse,
  snapshots: { failure },
}: Pick<App, 'settings' | 'warehouse'> & { snapshots: Pick<App['snapshots'], 'failure'> }): Promise<CheckResult[]> {
  const path = settings.snapshot;
  if (failure) {
    const fix = 'see to what it says; ringneck up tries again each half minute, ringneck snapshot at once';
    const mode = existsSync(path) ? checkMode(settings) : [];
    return [...mode, fail('snapshot', `it could not be made since ${failure.since}: ${failure.reason}`, fix)];
  }
  if (!existsSync(path)) return [ok('snapshot', 'there is none yet: ringneck snapshot publishes one, ringneck up keeps one')];
  return [...checkMode(settings), ...(await checkContent(path, warehouse))];
}

/** Whether others can write where it is, or will be, put. */
export function checkSnapshotFolder({ snapshot }: Pick<Settings, 'snapshot'>): CheckResult[] {
  const dated = join(dirname(snapshot), 'snapshots');
  const access = findSnapshotAccess(snapshot) ?? (existsSync(dated) ? findSnapshotAccess(join(dated, 'one'), 'snapshots') : undefined);
  return access ? [fail('snapshot', access.message, access.fix)] : [];
}

/** It holds health data: whether more may be done with it than was set. */
function checkMode({ snapshot: path, snapshotMode }: Pick<Settings, 'snapshot' | 'snapshotMode'>): CheckResult[] {
  const mode = statSync(path).mode & 0o777;
  if (process.platform === 'win32' || (mode & 0o077 & ~snapshotMode) === 0) return [];
  const [is, wanted] = [mode, snapshotMode].map(bits => bits.toString(8).padStart(4, '0'));
  return [warn('snapshot', `${path} is open to others (${is}), and RINGNECK_SNAPSHOT_MODE is ${wanted}`, `chmod ${wanted} ${path}`)];
}

async function checkContent(path: string, warehouse: App['warehouse']): Promise<CheckResult[]> {
  let said: SnapshotFile | undefined;
  try {
    said = await readSnapshotFile(path);
  } catch (error) {
    return [
      fail('snapshot', messageOf(error), 'let others open it read-only; one that is damaged, move away: ringneck snapshot makes a new one'),
    ];
  }
  if (!said) return [fail('snapshot', `${path} is no snapshot`, 'move it away, or set RINGNECK_SNAPSHOT to another file')];
  const { takenAt, program } = said;
  if (takenAt === null || !isOfThisVersion(said, warehouse.mappings)) {
    return [warn('snapshot', `${path} was made by another version (${program ?? 'unknown'})`, 'ringneck snapshot makes it anew')];
  }
  const newest = (await findNewestCommit(warehouse, warehouse.clock.wall())) ?? 0;
  const behind = Math.floor(newest / 60_000_000 - takenAt / 60_000);
  const of = `${path} is of ${isoOf(takenAt * 1000)}`;
  if (behind * 60_000 < LONGEST_STALE_MS) return [ok('snapshot', of)];
  const fix = 'ringneck snapshot; where ringneck up runs, its log says why it could not publish one';
  return [warn('snapshot', `${of}: the warehouse has changed until ${behind} min after it`, fix)];
}
