import type { Settings } from '../config.ts';
import type { Log } from '../log.ts';

/** What a command starts with: the settings, read once and validated together, and the log. */
export interface Session {
  settings: Settings;
  log: Log;
}

export async function openSession(): Promise<Session> {
  const [{ environment, readSettings }, { createLog }] = await Promise.all([import('../config.ts'), import('../log.ts')]);
  const settings = readSettings(environment);
  const log = createLog({ level: settings.logLevel, pretty: process.stderr.isTTY === true });
  for (const remark of settings.unknown) log.warn(remark);
  return { settings, log };
}
