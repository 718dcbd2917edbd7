import type { Settings } from '../base/config.ts';
import type { Log } from '../base/log.ts';

/** What a command starts with: the settings, read once and validated together, and the log. */
export interface Session {
  settings: Settings;
  log: Log;
}

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
  return { settings, log };
}
