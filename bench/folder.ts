import { readSettings } from '../src/config.ts';
import { createLog } from '../src/log.ts';

/** A data folder, and what the pipeline that works on it talks to. */
export interface Folder {
  data: string;
  url: string;
  /** Of Redis; without one the queue is embedded. */
  queueUrl?: string | undefined;
}

export function openSettings({ data, url, queueUrl }: Folder) {
  const settings = readSettings({ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: url, ...(queueUrl ? { RINGNECK_QUEUE_URL: queueUrl } : {}) });
  return { settings, log: createLog({ level: 'warn', pretty: false }) };
}
