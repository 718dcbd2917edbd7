import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { ensureDiskReserve } from '../../base/disk.ts';
import { UsageError } from '../../base/errors.ts';
import { existingFolder } from '../../base/files.ts';
import type { App } from '../app.ts';
import type { CommandContext } from '../control/command.ts';

/** What the owner of a data folder does with its lake. */
export const lakeCommands = { lakeExport };

/**
 * Writes all that is in the lake into a warehouse's file.
 * @param input.file absolute: the owner may have been started elsewhere
 * @throws UsageError where it is there already, or the warehouse is a file
 */
async function lakeExport(
  app: App,
  { file }: { file: string },
  { signal }: Partial<Pick<CommandContext<never>, 'signal'>> = {},
): Promise<{ file: string }> {
  if (!app.settings.warehouse) throw new UsageError('the warehouse is a file already: ringneck backup copies it');
  if (existsSync(file)) throw new UsageError(`${file} is there already: name another file`);
  const beforeTable = () => ensureDiskReserve(existingFolder(dirname(file)));
  await app.warehouse.backup(file, { beforeTable }, signal ? AbortSignal.any([signal, app.ending]) : app.ending);
  return { file };
}
