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
  /** How many seconds ago Redis answered it last; null: never, or its queue is embedded. */
  queue_seconds_ago: number | null;
  /** `works`, as long as its lease lasts; `gone`: not heard of for longer than a standby would be silent. */
  state: 'works' | 'waits' | 'gone';
}

const NOTE_MS = 5_000;
/** Longer than a Redis takes that starts again. */
const CUT_OFF_MS = 10_000;
/** A machine that Redis has answered since reaches it. */
const REACHES_SECONDS = 10;
const SILENT_SECONDS = 30;
const FORGOTTEN_DAYS = 30;

const NOTE = `INSERT INTO ringneck.machines (place, host, folder, pid, version, since, seen, queue_seen)
  VALUES ($1, $2, $3, $4, $5, now(), now(), CASE WHEN $6 THEN now() END)
  ON CONFLICT (place) DO UPDATE SET host = excluded.host, folder = excluded.folder, version = excluded.version,
    since = CASE WHEN machines.pid = excluded.pid THEN machines.since ELSE now() END, pid = excluded.pid, seen = now(),
    queue_seen = coalesce(excluded.queue_seen, machines.queue_seen)`;
const FIND_WITH_QUEUE = `SELECT host FROM ringneck.machines WHERE place <> $1 AND queue_seen > now() - $2 * interval '1 second'
  ORDER BY queue_seen DESC LIMIT 1`;
const FORGET = `DELETE FROM ringneck.machines WHERE seen < now() - $1 * interval '1 day'`;
const LEAVE = 'DELETE FROM ringneck.machines WHERE place = $1 AND pid = $2';
const LIST = `SELECT m.host, m.folder, m.version, to_char(m.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since,
  extract(epoch FROM now() - m.seen)::int AS seen_seconds_ago, extract(epoch FROM now() - m.queue_seen)::int AS queue_seconds_ago,
  CASE WHEN l.until >= now() THEN 'works' WHEN m.seen < now() - $1 * interval '1 second' THEN 'gone' ELSE 'waits' END AS state
  FROM ringneck.machines m LEFT JOIN ringneck.lease l ON l.place = m.place AND l.pid = m.pid
  ORDER BY (l.until >= now()) IS TRUE DESC, m.host, m.folder`;

interface PresenceOptions {
  catalogue: Catalogue;
  /** The data folder. */
  folder: string;
  /** Of `identityOfFolder`. */
  place: string;
  /** Rejects where Redis does not answer; undefined: the queue is embedded. */
  askQueue: (() => Promise<unknown>) | undefined;
  /** Called while Redis has not answered this machine for a while, and answers another one. */
  onCutOff(host: string): void;
  times?: { noteMs: number; cutOffMs: number };
}

/** Tells the others that `up` runs here, and whether Redis answers here, until what this gives is called. */
export function notePresence(options: PresenceOptions): () => Promise<void> {
  const { catalogue, folder, place, askQueue, onCutOff, times = { noteMs: NOTE_MS, cutOffMs: CUT_OFF_MS } } = options;
  let answeredAt = performance.now();
  const note = async () => {
    const answers = await askQueue?.().then(
      () => true,
      () => false,
    );
    if (answers !== false) answeredAt = performance.now();
    await catalogue.query(NOTE, [place, hostname(), folder, process.pid, version, answers === true]);
    if (performance.now() - answeredAt < times.cutOffMs) return;
    const [other] = await catalogue.query<{ host: string }>(FIND_WITH_QUEUE, [place, REACHES_SECONDS]);
    if (other) onCutOff(other.host);
  };
  let noting: Promise<void> | undefined;
  const noteAlone = () => {
    // What cannot be told now is told later.
    noting ??= note()
      .catch(() => undefined)
      .finally(() => {
        noting = undefined;
      });
    return noting;
  };
  const timer = setInterval(() => void noteAlone(), times.noteMs).unref();
  void noteAlone().then(() => catalogue.query(FORGET, [FORGOTTEN_DAYS]).catch(() => undefined));
  return async () => {
    clearInterval(timer);
    await noting;
    await catalogue.query(LEAVE, [place, process.pid]).catch(() => undefined);
  };
}

/** Who works first, then who waits and who was heard of in the last 30 days. */
export const listMachines = (catalogue: Catalogue): Promise<Machine[]> => catalogue.query<Machine>(LIST, [SILENT_SECONDS]);
