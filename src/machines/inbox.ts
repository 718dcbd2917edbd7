import { messageOf, TryLaterError } from '../base/errors.ts';
import { type Inbox, writeJournal } from '../base/journal.ts';
import type { Log } from '../base/log.ts';
import type { Catalogue } from './catalogue.ts';
import type { Lease } from './lease.ts';

const POLL_MS = 500;
const AT_ONCE = 500;
/** Ended ones are kept so long at least, to know a repetition by. */
const KEPT_HOURS = 24;
const REMOVE_EVERY_MS = 3_600_000;

const OURS = 'WITH ours AS (SELECT 1 FROM ringneck.lease WHERE token = $1 FOR SHARE)';
const ACCEPT = `INSERT INTO ringneck.inbox (signature, event) SELECT * FROM unnest($1::text[], $2::text[])
  ON CONFLICT (signature) DO NOTHING`;
const FIND_NEW = 'SELECT signature, event FROM ringneck.inbox WHERE key IS NULL AND done IS NULL ORDER BY received LIMIT $1';
const NUMBER = `${OURS} UPDATE ringneck.inbox AS i SET key = n.key FROM unnest($2::text[], $3::bigint[]) AS n (signature, key), ours
  WHERE i.signature = n.signature AND i.key IS NULL AND i.done IS NULL RETURNING i.key`;
const FIND_OPEN = 'SELECT key, event FROM ringneck.inbox WHERE key IS NOT NULL AND done IS NULL ORDER BY key';
/** Those that nobody has numbered yet, too. */
const FIND_ALL = 'SELECT coalesce(key::text, signature) AS key, event FROM ringneck.inbox WHERE done IS NULL ORDER BY received';
const APPEND = `${OURS} INSERT INTO ringneck.inbox (signature, event, key) SELECT 'again ' || $2, $3, $2::bigint FROM ours
  ON CONFLICT (signature) DO UPDATE SET event = excluded.event, done = NULL RETURNING key`;
const FINISH = `${OURS} UPDATE ringneck.inbox SET event = NULL, done = now() FROM ours WHERE key = ANY($2::bigint[]) AND done IS NULL`;
const FORGET = `${OURS} UPDATE ringneck.inbox SET event = NULL, done = now() FROM ours WHERE signature = ANY($2::text[])`;
const REMOVE_OLD = `${OURS} DELETE FROM ringneck.inbox USING ours WHERE done < now() - $2 * interval '1 millisecond'`;

interface Arrived {
  signature: string;
  event: string;
  take(): void;
  fail(error: unknown): void;
}

/** Keeps events for whoever works on the lake. Those that come while some are being written are written together. */
export class EventAcceptance {
  readonly #catalogue: Pick<Catalogue, 'query'>;
  #waiting: Arrived[] = [];
  #isWriting = false;

  constructor(catalogue: Pick<Catalogue, 'query'>) {
    this.#catalogue = catalogue;
  }

  /** When this resolves the event is there for good, or one of the same signature was. */
  accept(signature: string, event: string): Promise<void> {
    const kept = new Promise<void>((take, fail) => this.#waiting.push({ signature, event, take, fail }));
    if (!this.#isWriting) void this.#write();
    return kept;
  }

  /** In the turn in which nothing waits any more it has ended: what comes later begins another one. */
  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length) await this.#keep(this.#waiting.splice(0, AT_ONCE));
    this.#isWriting = false;
  }

  async #keep(arrived: readonly Arrived[]): Promise<void> {
    const columns = [arrived.map(({ signature }) => signature), arrived.map(({ event }) => event)];
    try {
      await this.#catalogue.query(ACCEPT, columns);
      for (const { take } of arrived) take();
    } catch (error) {
      // What Postgres refuses may be one of them.
      if (arrived.length === 1 || error instanceof TryLaterError) for (const { fail } of arrived) fail(error);
      else for (const one of arrived) await this.#keep([one]);
    }
  }
}

interface Intake {
  /** The number of an event, greater than all of before. */
  next(): number;
  /** Whether no byte of it is to be kept. */
  isForgotten(event: string): Promise<boolean>;
  onAccepted(key: string): void;
}

interface CommonInboxOptions {
  catalogue: Catalogue;
  lease: Pick<Lease, 'token' | 'ensure' | 'lose'>;
  log: Log;
  /** How long a signature may be repeated. */
  replayMs: number;
  /** Whether another machine works them off: all that wait are counted then. */
  isReader?: boolean;
}

interface Open {
  key: string;
  event: string;
}

/**
 * The accepted events that have no outcome yet, of all machines. Each is a row from before its 2xx until the ledger has its outcome; from then on
 * the row has its signature alone, by which a repetition is known. Any machine adds rows; who holds the lease numbers them, and works them off.
 */
export class CommonInbox implements Inbox {
  readonly damaged = 0;
  readonly #options: CommonInboxOptions;
  readonly #open = new Map<string, string>();
  /** What has its outcome, and is not noted so yet. */
  readonly #finished = new Set<string>();
  #intake: Intake | undefined;
  #polling: NodeJS.Timeout | undefined;
  #taking: Promise<void> | undefined;
  #noting: Promise<void> | undefined;
  /** No answer came to a numbering: rows may have numbers that are not known here. */
  #isUnsure = false;
  #isTold = false;
  #removedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  private constructor(options: CommonInboxOptions) {
    this.#options = options;
  }

  static async open(options: CommonInboxOptions): Promise<CommonInbox> {
    const inbox = new CommonInbox(options);
    for (const { key, event } of await inbox.#query<Open>(options.isReader ? FIND_ALL : FIND_OPEN)) inbox.#open.set(key, event);
    return inbox;
  }

  /** Takes up what any machine accepts, until it is closed. */
  start(intake: Intake): void {
    this.#intake = intake;
    this.#polling ??= setInterval(() => this.look(), POLL_MS).unref();
    this.look();
  }

  /** Looks now: something has just come. */
  look(): void {
    this.#taking ??= this.#take()
      .then(
        () => {
          this.#isTold = false;
        },
        error => {
          this.#isUnsure = true;
          if (!this.#isTold) this.#options.log.warn({ reason: messageOf(error) }, 'accepted events could not be taken up: tried again');
          this.#isTold = true;
        },
      )
      .finally(() => {
        this.#taking = undefined;
      });
    this.#note();
  }

  async append(key: string, text: string): Promise<void> {
    if (this.#open.has(key)) return;
    const rows = await this.#fenced(APPEND, key, text);
    if (!rows.length) this.#options.lease.lose();
    this.#finished.delete(key);
    this.#open.set(key, text);
  }

  finish(key: string): void {
    if (!this.#open.delete(key)) return;
    this.#finished.add(key);
    this.#note();
  }

  has(key: string): boolean {
    return this.#open.has(key);
  }

  find(key: string): string | undefined {
    return this.#open.get(key);
  }

  keys(): string[] {
    return [...this.#open.keys()];
  }

  get size(): number {
    return this.#open.size;
  }

  damagedFiles(): string[] {
    return [];
  }

  async ensureWritable(): Promise<void> {
    await this.#options.lease.ensure();
  }

  async rewrite(keep: (key: string, text: string) => boolean): Promise<void> {
    for (const [key, text] of [...this.#open]) if (!keep(key, text)) this.finish(key);
    await this.#noteAll();
    await this.#query('VACUUM (FULL) ringneck.inbox');
  }

  copyTo(folder: string): number {
    return writeJournal(
      folder,
      [...this.#open].map(([key, text]) => ({ key, text })),
    );
  }

  /** What is not noted then the next one finds in the ledger. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#polling);
    await this.#taking;
    await this.#noting;
    await this.#noteAll().catch(() => undefined);
  }

  async #take(): Promise<void> {
    const intake = this.#intake;
    if (!intake || this.#isClosed) return;
    if (this.#isUnsure) {
      for (const { key, event } of await this.#query<Open>(FIND_OPEN)) this.#add(intake, key, event);
      this.#isUnsure = false;
    }
    for (;;) {
      const found = await this.#query<{ signature: string; event: string }>(FIND_NEW, AT_ONCE);
      if (!found.length || this.#isClosed) break;
      await this.#options.lease.ensure();
      const forgotten: string[] = [];
      const taken: { signature: string; key: string; event: string }[] = [];
      for (const { signature, event } of found) {
        if (await intake.isForgotten(event)) forgotten.push(signature);
        else taken.push({ signature, key: String(intake.next()), event });
      }
      if (forgotten.length) await this.#fenced(FORGET, forgotten);
      const columns = [taken.map(({ signature }) => signature), taken.map(({ key }) => key)];
      const numbered = new Set((await this.#fenced<{ key: string }>(NUMBER, ...columns)).map(({ key }) => key));
      for (const { key, event } of taken) if (numbered.has(key)) this.#add(intake, key, event);
    }
    if (performance.now() - this.#removedAt < REMOVE_EVERY_MS) return;
    await this.#fenced(REMOVE_OLD, Math.max(KEPT_HOURS * 3_600_000, this.#options.replayMs));
    this.#removedAt = performance.now();
  }

  #add(intake: Intake, key: string, event: string): void {
    if (this.#open.has(key) || this.#finished.has(key)) return;
    this.#open.set(key, event);
    intake.onAccepted(key);
  }

  /** One that fails is noted with the next. */
  #note(): void {
    if (!this.#finished.size) return;
    this.#noting ??= this.#noteAll()
      .catch(() => undefined)
      .finally(() => {
        this.#noting = undefined;
      });
  }

  async #noteAll(): Promise<void> {
    const keys = [...this.#finished];
    if (!keys.length) return;
    await this.#fenced(FINISH, keys);
    for (const key of keys) this.#finished.delete(key);
  }

  #fenced<Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> {
    return this.#query<Row>(sql, this.#options.lease.token, ...values);
  }

  #query<Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> {
    return this.#options.catalogue.query<Row>(sql, values);
  }
}
