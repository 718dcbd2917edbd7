import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { TryLaterError } from '../base/errors.ts';
import { identityOfFolder } from '../base/folder-identity.ts';
import { isRunning } from '../base/is-running.ts';
import { ANSWER_MS, type Catalogue } from './catalogue.ts';

/** Who works on a lake. */
export interface Holder {
  host: string;
  pid: number;
  /** As text of Postgres, in UTC. */
  since: string;
}

export interface LeaseTimes {
  /** How long it lasts where it is not renewed. */
  lastsMs: number;
  renewMs: number;
  /** How often somebody who waits looks. */
  lookMs: number;
}

export const LEASE_TIMES: LeaseTimes = { lastsMs: 15_000, renewMs: 3_000, lookMs: 1_000 };

interface LeaseOptions {
  catalogue: Catalogue;
  /** The data folder, which this process alone has. */
  folder: string;
  times?: LeaseTimes | undefined;
  /** Called once, at the latest when it may be somebody else's: nothing may be done for the lake any more. */
  onLost(message: string): void;
}

interface Waiting {
  /** Told who has it, each time it is looked; what it throws ends the waiting. */
  onHeld(holder: Holder): void | Promise<void>;
  signal?: AbortSignal | undefined;
}

interface Row extends Holder {
  token: string;
  place: string;
  until: string;
  /** By the clock of Postgres. */
  lasts: boolean;
}

const FIND = `SELECT token, place, host, pid, to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') AS since,
  until::text AS until, until >= clock_timestamp() AS lasts FROM ringneck.lease`;
/** Takes what is nobody's, has lapsed, or is just as a dead holder has left it. */
const TAKE = `INSERT INTO ringneck.lease AS held (token, place, host, pid, since, until)
  VALUES ($1, $2, $3, $4, now(), clock_timestamp() + $5 * interval '1 millisecond')
  ON CONFLICT (is_one) DO UPDATE SET token = excluded.token, place = excluded.place, host = excluded.host, pid = excluded.pid,
    since = excluded.since, until = excluded.until
  WHERE held.until < clock_timestamp() OR (held.token = $6 AND held.until = $7::timestamptz)
  RETURNING token`;
const RENEW = `UPDATE ringneck.lease SET until = clock_timestamp() + $2 * interval '1 millisecond' WHERE token = $1 RETURNING token`;
const GIVE_BACK = `UPDATE ringneck.lease SET until = '-infinity' WHERE token = $1`;

const TAKEN = 'another machine has taken the lake';
const LAPSED = 'the lake’s catalogue could not be asked for so long that another machine may have taken the lake';

/** Who has it by now; undefined: nobody. */
export async function findHolder(catalogue: Catalogue): Promise<Holder | undefined> {
  const [row] = await catalogue.query<Row>(FIND);
  return row?.lasts ? row : undefined;
}

/**
 * The right of one process to work on a lake, as long as it is renewed. Who has lost it may learn that late, by Postgres or by its own clock:
 * it is the row in the lake that keeps such a process from storing.
 */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #times: LeaseTimes;
  /** By which a statement of Postgres knows who has it. */
  readonly token: string;
  readonly #renewing: NodeJS.Timeout;
  #lapsing: NodeJS.Timeout;
  #until: number;
  #asking: Promise<void> | undefined;
  #isOver = false;

  private constructor(options: LeaseOptions, times: LeaseTimes, token: string, until: number) {
    this.#options = options;
    this.#times = times;
    this.token = token;
    this.#until = until;
    this.#lapsing = this.#whenLapsed();
    this.#renewing = setInterval(() => void this.ensure().catch(() => undefined), times.renewMs).unref();
  }

  /** Waits until nobody else has it; undefined where the signal comes before. */
  static async take(options: LeaseOptions, { onHeld, signal }: Waiting): Promise<Lease | undefined> {
    const { catalogue, folder, times = LEASE_TIMES } = options;
    const [token, place] = [randomUUID(), identityOfFolder(folder)];
    let seen: { row: Row; at: number } | undefined;
    for (;;) {
      if (signal?.aborted) return undefined;
      // A clock of Postgres that was set back would have a dead holder's last for as long as that.
      const isStill = seen && performance.now() - seen.at > times.lastsMs + ANSWER_MS;
      const left = seen && (isStill || isDead(seen.row, place)) ? seen.row : undefined;
      const at = performance.now();
      const values = [token, place, hostname(), process.pid, times.lastsMs, left?.token ?? '', left?.until ?? '-infinity'];
      try {
        if ((await catalogue.query(TAKE, values)).length) return new Lease(options, times, token, at + times.lastsMs);
        const [row] = await catalogue.query<Row>(FIND);
        if (!row) continue;
        if (row.token !== seen?.row.token || row.until !== seen.row.until) seen = { row, at: performance.now() };
      } catch (error) {
        // Who waits already waits for Postgres too.
        if (!seen || !(error instanceof TryLaterError)) throw error;
      }
      if (!left && isDead(seen.row, place)) continue;
      await onHeld(seen.row);
      await sleep(times.lookMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Whether it lasts, as far as this process knows: after a pause it knows at once. */
  get isHeld(): boolean {
    return !this.#isOver && performance.now() < this.#until;
  }

  /**
   * Renews it, and so asks Postgres whether it is still ours.
   * @throws TryLaterError where it is not, or no answer comes
   */
  ensure(): Promise<void> {
    this.#asking ??= this.#renew().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Whoever waits takes it at once. */
  async giveBack(): Promise<void> {
    this.#end();
    await this.#options.catalogue.query(GIVE_BACK, [this.token]).catch(() => undefined);
  }

  /** It is somebody else's, as has been seen elsewhere. */
  lose(message = TAKEN): void {
    if (this.#isOver) return;
    this.#end();
    this.#options.onLost(message);
  }

  async #renew(): Promise<void> {
    const at = performance.now();
    const rows = await this.#options.catalogue.query(RENEW, [this.token, this.#times.lastsMs]);
    if (!rows.length) this.lose();
    if (this.#isOver) throw new TryLaterError(TAKEN);
    this.#until = at + this.#times.lastsMs;
    clearTimeout(this.#lapsing);
    this.#lapsing = this.#whenLapsed();
    // An answer of before a pause of this process says nothing of now.
    if (!this.isHeld) throw new TryLaterError(LAPSED);
  }

  #whenLapsed(): NodeJS.Timeout {
    return setTimeout(() => this.lose(LAPSED), this.#until - performance.now()).unref();
  }

  #end(): void {
    this.#isOver = true;
    clearInterval(this.#renewing);
    clearTimeout(this.#lapsing);
  }
}

/** Whoever had it for the same folder is no more: this process has the folder. */
const isDead = ({ place, pid }: Row, ours: string) => place === ours && (pid === process.pid || !isRunning(pid));
