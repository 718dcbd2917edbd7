import { existsSync, statSync } from 'node:fs';
import type { Settings } from '../base/config.ts';
import { TryLaterError, UsageError } from '../base/errors.ts';
import { warehouseIn } from '../base/warehouse-file.ts';
import type { AppCommands } from './commands.ts';
import { connectControl } from './control/connect-control.ts';
import { ensureWarehouse } from './ensure-there.ts';
import { isErasing } from './erase/is-erasing.ts';
import { lakeOf } from './lake/place.ts';
import { isMoving, tellClosed } from './move/is-moving.ts';

/** The file that a reader opens. */
export interface Source {
  path: string;
  kind: 'warehouse' | 'snapshot';
  /** Of which moment it is, ISO 8601. */
  at: string;
  /** Whether the warehouse has changed since. */
  stale: boolean;
}

/**
 * The warehouse itself when nobody owns it, else the owner's snapshot: a reader never works in the writer's instance. Of a lake always the
 * snapshot: a statement could reach the catalogue, and every host. Undefined when there is none yet.
 */
export async function findSource(settings: Settings, signal?: AbortSignal): Promise<Source | undefined> {
  const { data, snapshot } = settings;
  const control = await connectControl<AppCommands>(data);
  if (!control && (isErasing(data) || isMoving(data))) {
    const closed = tellClosed(isErasing(data) ? 'erased from' : 'moved in', data);
    throw new TryLaterError(`${closed} (was that interrupted, ringneck account list finishes it)`);
  }
  if (control) return { kind: 'snapshot', ...(await control.call('freshSnapshot', {}, signal ? { signal } : {})) };
  const warehouse = warehouseIn(data);
  if (existsSync(warehouse) && lakeOf(settings).lake) return { kind: 'snapshot', ...(await publishFresh(settings, signal)) };
  if (existsSync(warehouse)) return { path: warehouse, kind: 'warehouse', at: new Date().toISOString(), stale: false };
  if (existsSync(snapshot)) return { path: snapshot, kind: 'snapshot', at: await momentOf(snapshot), stale: false };
  return undefined;
}

/** Of a snapshot that somebody has taken along: a copy has a newer time of its own. */
async function momentOf(snapshot: string): Promise<string> {
  const { readSnapshotFile } = await import('../warehouse/readers/snapshot-file.ts');
  const said = await readSnapshotFile(snapshot);
  return (said?.takenAt == null ? statSync(snapshot).mtime : new Date(said.takenAt)).toISOString();
}

/**
 * A snapshot that was taken along is not told of moves and erasings: a name may be somebody else's in the next one that lies there.
 * @throws UsageError where the data folder has no warehouse
 */
export function ensureNamesFollowed({ data }: Pick<Settings, 'data'>): void {
  if (existsSync(warehouseIn(data))) return;
  throw new UsageError(
    `one person is shown only where the warehouse lies, for elsewhere a name may have become another person's, and ${data} has none: set RINGNECK_DATA to its folder`,
  );
}

/**
 * A snapshot that lies outside the data folder stays where another warehouse takes the place of its own, as after a restore, and has people
 * of whom that one knows nothing.
 * @throws UsageError where nobody owns the warehouse of the data folder and the snapshot is of another one
 */
export async function ensureOfThisWarehouse(settings: Settings): Promise<void> {
  const { data, snapshot } = settings;
  const warehouse = warehouseIn(data);
  if (!existsSync(warehouse) || !existsSync(snapshot) || lakeOf(settings).lake) return;
  const { readSnapshotFile, readWarehouseId } = await import('../warehouse/readers/snapshot-file.ts');
  const said = await readSnapshotFile(snapshot);
  const id = said?.warehouse == null ? null : await readWarehouseId(warehouse);
  if (id === null || id === said?.warehouse) return;
  throw new UsageError(
    `${snapshot} (RINGNECK_SNAPSHOT) is of another warehouse than the one in ${data}, and may show who was here before: ringneck snapshot publishes this one`,
  );
}

/** Opens the folder for as long as it takes to bring the snapshot up to date. */
async function publishFresh(settings: Settings, signal: AbortSignal | undefined) {
  const [{ call }, { createLog }] = await Promise.all([import('./call.ts'), import('../base/log.ts')]);
  const log = createLog({ level: 'warn', pretty: process.stderr.isTTY });
  return call({ settings, log }, 'freshSnapshot', {}, signal ? { signal } : {});
}

/** @throws UsageError when there is neither a warehouse nor a snapshot */
export async function getSource(settings: Settings, signal?: AbortSignal): Promise<Source> {
  const source = await findSource(settings, signal);
  // One that has come just now is that.
  if (!source) ensureWarehouse(settings);
  return source ?? getSource(settings, signal);
}

/** Whether the warehouse could not be opened because somebody became its owner meanwhile: then there is a snapshot to be read. */
export async function hasOwnerSince(error: unknown, { kind }: Source, { data }: Settings): Promise<boolean> {
  return error instanceof TryLaterError && kind === 'warehouse' && (await connectControl(data)) !== undefined;
}
