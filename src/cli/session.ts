import type { AppOptions } from '../app/app-options.ts';
import { isClean } from '../app/erase/report.ts';
import { linesOf } from './terminal/erase-report.ts';
import { note } from './terminal/note.ts';

/** What a command starts with: the settings, read once and validated together, and the log. */
export type Session = Pick<AppOptions, 'settings' | 'log' | 'onErased'>;

/**
 * `follows`: as `readSettings` takes it.
 * @throws UsageError where other users can write to the data folder: nothing in it is to be trusted then
 */
export async function openSession(options: { follows?: boolean } = {}): Promise<Session> {
  const [{ environment, readSettings }, { createLog }, { ensureUnwritable }] = await Promise.all([
    import('../base/config.ts'),
    import('../base/log.ts'),
    import('../base/access.ts'),
  ]);
  const settings = readSettings(environment, options);
  const log = createLog({ level: settings.logLevel, pretty: process.stderr.isTTY === true });
  for (const unknown of settings.unknown) log.warn(unknown);
  for (const { message, fix } of [...settings.readable, ...ensureUnwritable(settings.data)]) log.warn({ fix }, message);
  return {
    settings,
    log,
    onErased: report => {
      for (const line of linesOf(report)) note(line);
      if (!isClean(report)) process.exitCode = 1;
    },
  };
}
