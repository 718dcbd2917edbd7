import { environment, readSettings, type Settings } from '../config.ts';
import { createLog, type Log } from '../log.ts';

/** What a command starts with: the settings, read once and validated together, and the log. */
export interface Session {
  settings: Settings;
  log: Log;
}

export function openSession(given: Partial<Settings> = {}): Session {
  const settings = { ...readSettings(environment), ...given };
  const log = createLog({ level: settings.logLevel, pretty: process.stderr.isTTY === true });
  for (const remark of settings.unknown) log.warn(remark);
  return { settings, log };
}
