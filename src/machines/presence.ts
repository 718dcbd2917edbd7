import { hostname } from 'node:os';
import { version } from '../base/version.ts';
import type { Catalogue } from './catalogue.ts';

/** A machine on which `ringneck up` runs, or ran lately. */
export interface Machine {
  host: string;
  /** Its data folder, there. */
  folder: string;
  version: string;
  /** Since when its `up` runs; ISO 8601. */
  since: string;
  /** How many seconds ago it was heard of last. */
  seen_seconds_ago: number;
  /** `works`, as long as its lease lasts; `gone`: not heard of for longer than a standby would be silent. */
  state: 'works' | 'waits' | 'gone';
}

const NOTE_MS = 5_000;
const SILENT_SECONDS = 30;
const FORGOTTEN_DAYS = 30;

const NOTE = `INSERT INTO ringneck.machines (place, host, folder, pid, version, since, seen) VALUES ($1, $2, $3, $4, $5, now(), now())
  ON CONFLICT (place) DO UPDATE SET host = excluded.host, folder = excluded.folder, version = excluded.version,
    since = CASE WHEN machines.pid = excluded.pid THEN machines.since ELSE now() END, pid = excluded.pid, seen = now()`;
const FORGET = `DELETE FROM ringneck.machines WHERE seen < now() - $1 * interval '1 day'`;
const LEAVE = 'DELETE FROM ringneck.machines WHERE place = $1 AND pid = $2';
const LIST = `SELECT m.host, m.folder, m.version, to_char(m.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since,
  extract(epoch FROM now() - m.seen)::int AS seen_seconds_ago,
  CASE WHEN l.until >= now() THEN 'works' WHEN m.seen < now() - $1 * interval '1 second' THEN 'gone' ELSE 'waits' END AS state
  FROM ringneck.machines m LEFT JOIN ringneck.lease l ON l.place = m.place AND l.pid = m.pid
  ORDER BY (l.until >= now()) IS TRUE DESC, m.host, m.folder`;

/**
 * Tells the others that `up` runs here, until what this gives is called.
 * @param place of `identityOfFolder`
 */
export function notePresence(catalogue: Catalogue, folder: string, place: string): () => Promise<void> {
  // Nothing depends on it: where it cannot be told now it is later.
  const note = () => catalogue.query(NOTE, [place, hostname(), folder, process.pid, version]).catch(() => undefined);
  const timer = setInterval(() => void note(), NOTE_MS).unref();
  void note().then(() => catalogue.query(FORGET, [FORGOTTEN_DAYS]).catch(() => undefined));
  return async () => {
    clearInterval(timer);
    await catalogue.query(LEAVE, [place, process.pid]).catch(() => undefined);
  };
}

/** Who works first, then who waits and who was heard of in the last 30 days. */
export const listMachines = (catalogue: Catalogue): Promise<Machine[]> => catalogue.query<Machine>(LIST, [SILENT_SECONDS]);
