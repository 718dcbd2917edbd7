import type { App } from '../app.ts';
import type { CommandContext } from '../control/command.ts';
import { type BackupReport, writeBackup } from './backup.ts';

/** What the owner of a data folder does to have it backed up. */
export const backupCommands = { backup };

/** @param input.folder absolute: the owner may have been started elsewhere */
function backup(
  app: App,
  input: { folder: string; withoutKey: boolean },
  { signal }: Partial<Pick<CommandContext<never>, 'signal'>> = {},
): Promise<BackupReport> {
  return writeBackup(app, input, signal ? AbortSignal.any([signal, app.ending]) : app.ending);
}
