import { existsSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { removeFile } from '../../base/files.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import type { Catalogue } from '../../machines/catalogue.ts';
import type { AppOptions } from '../app-options.ts';
import { removeConsoleSessions } from '../console-sessions.ts';
import { removeLeftovers } from '../erase/leftovers.ts';
import { removePersonFiles } from '../person-files/folder.ts';
import { ensureOurs, ensurePlace } from '../snapshot/place.ts';
import { noteRewritten, REWRITTEN, readNoted } from './place.ts';

type Options = Pick<AppOptions, 'settings' | 'log'>;

/**
 * Where another machine has erased or moved somebody since, or has given a name again, what a folder of the lake has of before goes: it shows
 * who is gone, or somebody by a name that is another person's now.
 * @param atRest closes what makes copies, once there is something to remove
 * @returns whether there was
 * @throws an error where something cannot be removed
 */
export async function followRewritten(options: Options, catalogue: Catalogue, atRest: () => Promise<unknown>): Promise<boolean> {
  const { settings, log } = options;
  const { data } = settings;
  const { readRemovals } = await import('../../machines/files.ts');
  const removals = await readRemovals(catalogue);
  const noted = readNoted(data);
  const missed = REWRITTEN.filter(name => removals.has(name) && removals.get(name) !== noted?.rewritten[name]);
  // The file that is being imported may be the only one there is.
  if (!missed.length || !noted || noted.importing) return false;
  await atRest();
  await removeCopies(options);
  for (const name of missed) noteRewritten(settings, name, removals.get(name)!);
  log.warn('somebody was erased or moved on another machine: what this one had of before was removed');
  return true;
}

async function removeCopies({ settings, log }: Options): Promise<void> {
  const { data, snapshot } = settings;
  removePersonFiles(data);
  const instead = removeConsoleSessions(data);
  if (instead) log.warn(instead);
  // Whom its lines name is not known here.
  rmSync(join(data, 'sql_history'), { force: true });
  removeLeftovers(settings);
  await removeSnapshot({ settings, log });
  const dated = join(dirname(snapshot), 'snapshots');
  const kept = existsSync(dated) ? readdirSync(dated).filter(name => name.endsWith('.duckdb')) : [];
  if (kept.length) log.warn({ folder: dated, snapshots: kept.length }, 'dated snapshots may hold who was erased: they are never altered');
}

async function removeSnapshot({ settings, log }: Options): Promise<void> {
  const { data, snapshot } = settings;
  if (!existsSync(snapshot)) return;
  try {
    ensurePlace(snapshot, warehouseIn(data));
    await ensureOurs(snapshot, warehouseIn(data));
  } catch (error) {
    log.warn({ reason: messageOf(error) }, 'what lies where the snapshot is put was left as it is');
    return;
  }
  const real = realpathSync(snapshot);
  for (const file of [real, `${real}.wal`, snapshot]) removeFile(file);
}
