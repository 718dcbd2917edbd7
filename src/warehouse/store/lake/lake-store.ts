import { randomUUID } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { messageOf, RingneckError, TryLaterError } from '../../../base/errors.ts';
import { ensureFolder, realPath } from '../../../base/files.ts';
import type { Mapping } from '../../mapping.ts';
import { number, orNull, text } from '../../rows.ts';
import { qualified, quoteName, quoteText, type Value } from '../../sql.ts';
import { firstLine, readRows, select, withTransaction } from '../database.ts';
import { claimFile, openWaiting } from '../file/open-file.ts';
import { KnownVersions, versionKey } from '../known-versions.ts';
import { LARGE_BYTES, Memory, STORING_THREADS } from '../memory.ts';
import { type CopyOptions, NotOpenedAgain, type Store, type Upkeep } from '../store.ts';
import type { AppendTarget, TableAppender } from '../table-appender.ts';
import { copyOut } from './copy-out.ts';
import { ensureFilesOurs } from './mark.ts';
import { attachLake, CATALOGUE, inlinedRows, LAKE, LAKE_CONFIG, type LakePlace, setInlining } from './open-lake.ts';
import { isUpkeepDue, runUpkeep } from './upkeep.ts';

export interface LakeOptions extends LakePlace {
  /** The data folder that writes to it from now on; whoever did before stores nothing more. */
  owner: string;
  /** After so long a reading of what is stored all keys are learnt; tests learn them at once. */
  learningMs?: number;
}

export interface LakeStoreOptions {
  /** Of a file that keeps others out of the folder; what the lake holds is not in it. */
  path: string;
  lake: LakeOptions;
  /** Where another machine works on it: it is read alone, and what this gives is thrown where something would be written. */
  refusal?: (() => Error) | undefined;
  patienceMs?: number;
}

/** Numbers of versions that are taken from the catalogue at a time: a power of two, far from what a whole number of 53 bits ends at. */
export const SK_BLOCK = 131_072;
export const SK_SEQUENCE = 'ringneck_sk';
/** Where the lake says whose it is. */
export const OWNER_TABLE = `${LAKE}.ringneck.owner`;

/** What becomes a file of the bucket lies here first: appended to the lake itself it would be written, however slowly, on the JavaScript thread. */
const ARRIVING = 'arriving';

const LIMITS = { bytes: LARGE_BYTES, threads: STORING_THREADS };
/** Of a commit that others overtake. */
const MOST_ATTEMPTS = 30;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;
/** How long it is asked whether a commit came in of which no answer came. */
const UNKNOWN_COMMIT_MS = 60_000;

/** So long a commit of this process says that the lake is still its own: far less than a lease lasts. */
const TRUSTED_MS = 5_000;

/** Another commit came between the beginning of this one and its end. */
class Overtaken extends Error {}

interface Parts extends Pick<LakeStoreOptions, 'refusal'> {
  learningMs: number | undefined;
  instance: DuckDBInstance;
  /** Its own, for what is no part of a transaction. */
  connection: DuckDBConnection;
  release: () => void;
}

/** A warehouse that lies in a lake, with one owner. */
export class LakeStore implements Store {
  /**
   * Whoever has DuckDB use fewer threads waits until those end, and one that reads a lake asks its catalogue by statements of its own, each of which
   * waits for whoever changes the threads: neither ever goes on.
   */
  readonly memory = new Memory(LIMITS, { areThreadsFixed: true });
  readonly commentsOnAll = false;
  readonly samplesBesideLive = 400_000;
  /** Reading what is stored of a few documents takes longer than storing them: of each table the catalogue is asked a dozen questions. */
  readonly versions: KnownVersions;
  readonly #mappings: readonly Mapping[];
  readonly #refusal: (() => Error) | undefined;
  readonly #instance: DuckDBInstance;
  readonly #release: () => void;
  /** Its own, for what is no part of a transaction. */
  readonly #connection: DuckDBConnection;
  readonly #connections: DuckDBConnection[] = [];
  readonly #token = randomUUID();
  /** The last commit of this process that was its owner's: of a lake that is there still, nobody else has written to it. */
  #snapshot = -1;
  /** When that was made, by a clock that nobody sets. */
  #committedAt = 0;
  /** The newest commit that this process has seen. */
  #newest = -1;
  #found = -1;
  #sks = { next: 0, end: 0 };
  #isInliningLive = true;
  #isClosed = false;

  private constructor(mappings: readonly Mapping[], { instance, connection, release, refusal, learningMs }: Parts) {
    this.versions = new KnownVersions(
      { count: () => this.#countDocuments(), read: (add, signal) => this.#readKeys(add, signal) },
      learningMs,
    );
    this.#mappings = mappings;
    this.#refusal = refusal;
    this.#instance = instance;
    this.#connection = connection;
    this.#release = release;
  }

  /**
   * @throws TryLaterError naming the process that has the folder, or where catalogue or bucket cannot be reached
   * @throws RingneckError where there is no lake
   */
  static async open({ path, lake, refusal, patienceMs }: LakeStoreOptions, mappings: readonly Mapping[]): Promise<LakeStore> {
    ensureFolder(dirname(path));
    const release = claimFile(path);
    let instance: DuckDBInstance | undefined;
    try {
      if (isMainThread) process.umask(process.umask() | 0o077);
      const config = { ...LAKE_CONFIG, memory_limit: `${LIMITS.bytes}B`, threads: String(LIMITS.threads) };
      instance = await openWaiting(realPath(path), config, patienceMs);
      chmodSync(path, 0o600);
      await attachLake(instance, lake, { isReader: refusal !== undefined });
      const store = new LakeStore(mappings, {
        instance,
        connection: await connectTo(instance),
        release,
        refusal,
        learningMs: lake.learningMs,
      });
      if (!refusal) await store.#claim(lake);
      return store;
    } catch (error) {
      instance?.closeSync();
      release();
      throw error;
    }
  }

  async connect(): Promise<DuckDBConnection> {
    const connection = await connectTo(this.#instance);
    this.#connections.push(connection);
    return connection;
  }

  async transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T> {
    if (this.#refusal) throw this.#refusal();
    for (let attempt = 1; ; attempt++) {
      try {
        const mark = randomUUID();
        const whole = async () => {
          await this.#mark(connection, mark);
          this.versions.begin(await this.#ensureOurs(connection));
          return work();
        };
        const result = await withTransaction(connection, whole, () => this.#commit(connection, mark));
        this.versions.end(this.#snapshot === -1 ? undefined : this.#snapshot);
        return result;
      } catch (error) {
        this.versions.end(undefined);
        // A Postgres that took the place of another one may not know that it has given the rest of it.
        this.#sks = { next: 0, end: 0 };
        if (!(error instanceof Overtaken)) throw this.explain(error);
        if (attempt === MOST_ATTEMPTS) throw new TryLaterError(`the lake was written to by others ${attempt} times in a row`);
        await sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt));
      }
    }
  }

  async openAppender(connection: DuckDBConnection, { table, columns, rows }: AppendTarget): Promise<TableAppender> {
    // They stay in memory until the commit, as rows of the catalogue.
    if (rows < inlinedRows(this.#isInliningLive)) return { appender: await connection.createAppender(table) };
    const list = columns.map(({ name, type }) => `${quoteName(name)} ${type}`).join(', ');
    await connection.run(`CREATE OR REPLACE TEMP TABLE ${ARRIVING} (${list})`);
    return {
      appender: await connection.createAppender(ARRIVING, 'main', 'temp'),
      async finish() {
        await connection.run(`INSERT INTO ${qualified(table)} FROM temp.main.${ARRIVING}`);
        await connection.run(`DROP TABLE temp.main.${ARRIVING}`);
      },
    };
  }

  async #countDocuments(): Promise<number> {
    const names = this.#mappings.map(({ table }) => quoteText(table)).join(', ');
    const asked = `SELECT coalesce(sum(record_count), 0) FROM ducklake_table_stats JOIN ducklake_table USING (table_id)
      WHERE end_snapshot IS NULL AND table_name IN (${names})`;
    const [[count] = []] = await this.#askCatalogue(asked);
    return Number(count);
  }

  async #readKeys(add: (key: string) => void, signal: AbortSignal): Promise<void> {
    const connection = await connectTo(this.#instance);
    const interrupt = () => connection.interrupt();
    signal.addEventListener('abort', interrupt);
    try {
      for (const { table } of this.#mappings) {
        const documents = await connection.stream(`SELECT user_id, id FROM ${qualified(table)}`);
        for await (const some of documents.yieldRows()) {
          if (signal.aborted) return;
          for (const [userId, id] of some) add(versionKey(table, String(userId), String(id)));
        }
      }
    } finally {
      signal.removeEventListener('abort', interrupt);
      connection.closeSync();
    }
  }

  /** Those of a block that are left when the process ends are nobody's. */
  async takeSks(count: number): Promise<number> {
    if (this.#refusal) throw this.#refusal();
    if (this.#sks.end - this.#sks.next < count) this.#sks = await this.#takeBlocks(Math.ceil(count / SK_BLOCK));
    const first = this.#sks.next;
    this.#sks.next += count;
    return first;
  }

  async #takeBlocks(blocks: number): Promise<{ next: number; end: number }> {
    const asked = `SELECT nextval('${SK_SEQUENCE}') AS n FROM generate_series(1, ${blocks})`;
    for (;;) {
      const rows = await this.#askCatalogue(asked);
      const [first = 0, last = 0] = [Number(rows[0]?.[0]), Number(rows.at(-1)?.[0])];
      // Somebody else may have taken one in between.
      if (last - first === (blocks - 1) * SK_BLOCK) return { next: first, end: last + SK_BLOCK };
    }
  }

  async beforeGroup(isLive: boolean): Promise<void> {
    if (this.#isInliningLive === isLive) return;
    try {
      await setInlining(this.#connection, isLive);
      this.#isInliningLive = isLive;
    } catch {
      // What is stored is the same either way.
    }
  }

  async afterGroup(): Promise<void> {}

  async maintain(upkeep: Upkeep): Promise<void> {
    await runUpkeep({ ...upkeep, run: statement => upkeep.betweenGroups(() => this.runAsOwner(upkeep.connection, statement)) });
  }

  /**
   * Runs a statement that is a commit of its own, or none, and stores nothing new.
   * @throws NotOpenedAgain where the lake is another process's
   */
  async runAsOwner(connection: DuckDBConnection, statement: string): Promise<void> {
    if (this.#refusal) throw this.#refusal();
    try {
      await this.#ensureOurs(connection);
      // It may commit after somebody else: whose lake it is is looked up the next time.
      this.#snapshot = -1;
      await connection.run(statement);
    } catch (error) {
      throw inOneLine(error);
    }
  }

  async size(): Promise<{ bytes: number; commits: number }> {
    const [size] = await select(
      this.#connection,
      { bytes: orNull(number), commits: number },
      `SELECT (SELECT sum(file_size_bytes)::BIGINT FROM ducklake_table_info('${LAKE}')), (SELECT id FROM ducklake_current_snapshot('${LAKE}'))`,
    );
    return { bytes: size?.bytes ?? 0, commits: size?.commits ?? 0 };
  }

  readonly isDue = isUpkeepDue;

  explain(error: unknown): unknown {
    return sayUnreachable(sayLacking(error));
  }

  copy(path: string, parts: CopyOptions): Promise<void> {
    return copyOut({ ...parts, memory: this.memory, mappings: this.#mappings, path });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.versions.close();
    for (const connection of [this.#connection, ...this.#connections]) connection.closeSync();
    this.#instance.closeSync();
    this.#release();
  }

  newest(): Promise<number> {
    return readSnapshot(this.#connection);
  }

  get commits(): { found: number; last: number } {
    return { found: this.#found, last: this.#snapshot };
  }

  /** Notes this process as the one that writes. */
  async #claim({ owner, address }: LakeOptions): Promise<void> {
    const connection = this.#connection;
    await ensureFilesOurs(connection, address).catch(error => {
      throw inOneLine(error);
    });
    this.#found = await readSnapshot(connection);
    for (let attempt = 1; ; attempt++) {
      try {
        const mark = randomUUID();
        const note = async () => {
          await this.#mark(connection, mark);
          await this.#noteOwner(owner);
        };
        // A frozen process in the middle of its commit would be waited for.
        await this.#endCommits();
        await withTransaction(connection, note, () => this.#commit(connection, mark));
        return;
      } catch (error) {
        if (!(error instanceof Overtaken) || attempt === MOST_ATTEMPTS) throw inOneLine(error);
        await sleep(Math.random() * LONGEST_PAUSE_MS);
      }
    }
  }

  async #noteOwner(owner: string): Promise<void> {
    const values = [owner, hostname(), this.#token].map(quoteText).join(', ');
    await this.#connection.run(`DELETE FROM ${OWNER_TABLE}; INSERT INTO ${OWNER_TABLE} VALUES (${values}, now()::TIMESTAMP)`);
  }

  /** What is read after it in the same transaction is of the same state. @returns the commit that has left it */
  async #ensureOurs(connection: DuckDBConnection): Promise<number> {
    const current = await readSnapshot(connection);
    // What this process keeps in its memory may be of what is no more.
    if (current < this.#newest)
      throw new NotOpenedAgain('the lake’s catalogue has lost commits: was it restored, or is it another Postgres?');
    this.#newest = current;
    if (current === this.#snapshot && performance.now() - this.#committedAt < TRUSTED_MS) return current;
    const [owner] = await readOwner(connection);
    if (owner?.token !== this.#token) {
      throw new NotOpenedAgain(`another process has taken the lake${owner ? `, on ${owner.host} at ${owner.since} UTC` : ''}`);
    }
    return current;
  }

  /** By its mark a commit is found of which no answer came. */
  async #mark(connection: DuckDBConnection, mark: string): Promise<void> {
    await connection.run(`CALL ducklake_set_commit_message('${LAKE}', 'ringneck', '${mark}')`);
  }

  async #commit(connection: DuckDBConnection, mark: string): Promise<void> {
    try {
      await connection.run('COMMIT');
    } catch (error) {
      if (isOvertaken(error)) throw new Overtaken(firstLine(error), { cause: error });
      if (!(await this.#hasCommitted(mark))) throw inFirstLine(error);
      this.#snapshot = -1;
      return;
    }
    // Of this process alone: what comes last in the lake may be somebody else's by now.
    const [[last] = []] = await readRows(connection, `SELECT id FROM ducklake_last_committed_snapshot('${LAKE}')`).catch(() => []);
    this.#snapshot = Number(last ?? -1);
    this.#committedAt = performance.now();
    this.#newest = Math.max(this.#newest, this.#snapshot);
  }

  async #hasCommitted(mark: string): Promise<boolean> {
    const until = performance.now() + UNKNOWN_COMMIT_MS;
    for (;;) {
      try {
        await this.#endCommits();
        const asked = `SELECT 1 AS found FROM ducklake_snapshot_changes WHERE commit_message = ${quoteText(mark)}`;
        return (await this.#askCatalogue(asked)).length > 0;
      } catch (error) {
        if (performance.now() > until) throw new NotOpenedAgain(`whether a commit to the lake came in is not known: ${firstLine(error)}`);
        await sleep(LONGEST_PAUSE_MS * Math.random());
      }
    }
  }

  /** Ends connections of ours that are in the middle of a commit: Postgres may wait for hours for who is frozen, or cut off from it. */
  async #endCommits(): Promise<void> {
    const until = performance.now() + UNKNOWN_COMMIT_MS;
    while ((await this.#askCatalogue(END_COMMITS)).length) {
      if (performance.now() > until) throw new TryLaterError('a commit to the lake that was begun before does not end');
      await sleep(FIRST_PAUSE_MS);
    }
  }

  #askCatalogue(asked: string): Promise<Value[][]> {
    return readRows(this.#connection, `FROM postgres_query(${quoteText(CATALOGUE)}, ${quoteText(asked)})`);
  }
}

/** Who has noted the next number of a commit, and not yet committed. */
const END_COMMITS = `SELECT pg_terminate_backend(pid) AS ended FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = 'public.ducklake_snapshot'::regclass AND mode = 'RowExclusiveLock' AND usename = current_user AND pid <> pg_backend_pid()`;

const isOvertaken = (error: unknown) => /conflict|duplicate key value/i.test(messageOf(error));

/** Of Postgres, or of the way to it. */
const isUnreachable = (error: unknown) =>
  /Postgres|connection (to server|refused|reset)|server closed the connection|terminating connection|SSL SYSCALL|no connection to the server|from DuckLake: Current transaction is aborted|Failed to execute query "ROLLBACK"/i.test(
    messageOf(error),
  );

function sayUnreachable(error: unknown): unknown {
  if (error instanceof RingneckError || error instanceof NotOpenedAgain || !isUnreachable(error)) return error;
  return new TryLaterError(`the lake’s catalogue does not answer: ${firstLine(error)}`, { cause: error });
}

/** Where a catalogue, or the files, were brought back as they were at another moment. */
function sayLacking(error: unknown): unknown {
  const [, file] = /(\S+\.parquet)['"]?.*(?:No such file|404|NoSuchKey)/.exec(firstLine(error)) ?? [];
  if (file === undefined || error instanceof RingneckError) return error;
  const message = `the lake lacks the file ${file.replace(/^['"]/, '')}, which its catalogue names: the two are to be of one moment, bring back both`;
  return new RingneckError(message, 1, { cause: error });
}

/** What DuckDB says of a commit after its first line quotes the values of rows. */
function inFirstLine(error: unknown): unknown {
  const said = sayUnreachable(error);
  return said === error ? new Error(firstLine(error)) : said;
}

function inOneLine(error: unknown): unknown {
  if (error instanceof RingneckError || error instanceof NotOpenedAgain) return error;
  const said = inFirstLine(error);
  return said instanceof RingneckError ? said : new RingneckError(`the lake: ${firstLine(said)}`);
}

async function connectTo(instance: DuckDBInstance): Promise<DuckDBConnection> {
  const connection = await instance.connect();
  await connection.run(`USE ${LAKE}`);
  return connection;
}

export async function readSnapshot(connection: DuckDBConnection): Promise<number> {
  const [[id] = []] = await readRows(connection, `SELECT id FROM ducklake_current_snapshot('${LAKE}')`);
  return Number(id);
}

const readOwner = (connection: DuckDBConnection) =>
  select(
    connection,
    { folder: text, host: text, token: text, since: text },
    `SELECT folder, host, token, strftime(since, '%Y-%m-%d %H:%M') FROM ${OWNER_TABLE}`,
  );
