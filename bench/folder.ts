import { readSettings } from '../src/base/config.ts';
import { createLog } from '../src/base/log.ts';

/** A data folder, and what the pipeline that works on it talks to. */
export interface Folder {
  data: string;
  url: string;
  /** Of Redis; without one the queue is embedded. */
  queueUrl?: string | undefined;
}

export const settingsOf = ({ data, url, queueUrl }: Folder) => ({
  RINGNECK_DATA: data,
  RINGNECK_SERVICE_URL: url,
  ...(queueUrl ? { RINGNECK_QUEUE_URL: queueUrl } : {}),
});

export function openSettings(folder: Folder) {
  return { settings: readSettings(settingsOf(folder)), log: createLog({ level: 'warn', pretty: false }) };
}
