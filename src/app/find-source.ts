import { existsSync, statSync } from 'node:fs';
import type { Settings } from '../base/config.ts';
import { TryLaterError } from '../base/errors.ts';
import { warehouseIn } from '../base/warehouse-file.ts';
import type { AppCommands } from './commands.ts';
import { connectControl } from './control/connect-control.ts';
import { ensureWarehouse } from './ensure-there.ts';
import { isErasing } from './erase/is-erasing.ts';

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
 * The warehouse itself when nobody owns it, else the owner's snapshot: a reader never works in the writer's instance. Undefined when
 * there is none yet.
 */
export async function findSource({ data, snapshot }: Settings, signal?: AbortSignal): Promise<Source | undefined> {
  const control = await connectControl<AppCommands>(data);
  if (!control && isErasing(data)) {
    throw new TryLaterError(
      `an account is being erased from ${data}; try again in a moment (was that interrupted, ringneck account list finishes it)`,
    );
  }
  if (control) return { kind: 'snapshot', ...(await control.call('freshSnapshot', {}, signal ? { signal } : {})) };
  const warehouse = warehouseIn(data);
  if (existsSync(warehouse)) return { path: warehouse, kind: 'warehouse', at: new Date().toISOString(), stale: false };
  // Somebody has taken it along.
  if (existsSync(snapshot)) return { path: snapshot, kind: 'snapshot', at: statSync(snapshot).mtime.toISOString(), stale: false };
  return undefined;
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
