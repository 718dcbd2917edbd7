import type { Resource, WireDocument } from '../../schema/resource.ts';
import { RingneckError } from '../base/errors.ts';
import { type ParsedDocuments, parseDocuments } from './documents/parse-document.ts';
import { readDocuments, readHeartRate, type StoredDocument } from './documents/read-documents.ts';
import { FORMAT } from './format.ts';
import { leaveHandover, takeHandover } from './handover.ts';
import { HeartRateChanges } from './heart-rate/heart-rate-changes.ts';
import { countByDay, countMissing, holdsJust } from './heart-rate/store-heart-rate.ts';
import { type HeartRateSpan, type HeartRateWithdrawal, joinSpans, selectSpans } from './heart-rate/withdraw-heart-rate.ts';
import { type Comparison, HeartRateAnswer, type Missing } from './heart-rate-answer.ts';
import { type Column, type Mapping, mapAll } from './mapping.ts';
import type { RequestClock } from './request-clock.ts';
import { keepCopy } from './schema/keep-copy.ts';
import type { KnownSchema } from './schema/known-schema.ts';
import type { PreparedSchema } from './schema/prepare-schema.ts';
import { prepareSchema } from './schema/prepare-schema.ts';
import { declarationsHash, evolveSchema } from './schema/schema-evolution.ts';
import type { Contents } from './snapshot/manifest.ts';
import { isPublished } from './snapshot/metadata.ts';
import type { Publication } from './snapshot/publisher.ts';
import { SnapshotCopies, type SnapshotFacts } from './snapshot/publisher.ts';
import type { LedgerEntry } from './sql.ts';
import { qualified, storable, type Value } from './sql.ts';
import { readRows } from './store/database.ts';
import type { Person } from './store/file/erase.ts';
import type { FileOptions } from './store/file/file-store.ts';
import { FileStore } from './store/file/file-store.ts';
import type { Renaming } from './store/file/move.ts';
import type { LakeOptions } from './store/lake/lake-store.ts';
import { SharedConnections } from './store/shared-connections.ts';
import type { Compacted, CopyOptions, Size, Store, Upkeep } from './store/store.ts';
import { NotOpenedAgain } from './store/store.ts';
import { listTables } from './tables.ts';
import { Committed } from './write/committed.ts';
import { KeptReadings } from './write/kept-readings.ts';
import { windowsFrom } from './write/store-changes.ts';
import type { DocumentPage, Ledger, WriteBatch } from './write/write-batch.ts';
import { type Lane, type LaneReport, Writer } from './write/writer.ts';
import type { WriteResult } from './write-result.ts';

export interface WarehouseOptions extends FileOptions {
  /** Where all of it lies in a lake: then the file at the path is there to keep others out of its folder. */
  lake?: LakeOptions | undefined;
  /** Of a lake on which another machine works: it is read alone, and what this gives is thrown where something would be written. */
  refusal?: (() => Error) | undefined;
  resources: readonly Resource[];
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** Called before each group of writes; throws when there is no room on the disk. */
  beforeGroup?: () => void;
  /** Called once when DuckDB can serve no further statement in this process. */
  onFatal?: (error: Error) => void;
  /** Told of a file of an earlier version, and where it is copied before it is changed. */
  onUpgrade?: (message: string) => void;
  /** Called once for a file in which generated heart rate may lie beside what is real. */
  onUnclearHeartRate?: () => void;
}

/** Where a warehouse is that nobody has open. */
type Place = Pick<WarehouseOptions, 'path' | 'lake'>;

export interface WriteOptions {
  /** Live work goes before bulk work. */
  lane?: Lane;
  /** Committed in the same transaction. */
  ledger?: Ledger;
  /** Throws where it must not be stored any more; asked when the commit begins. */
  guard?: () => void;
}

/** All rows, read or as they came, of one account from `from` (included) to `to` (excluded), in microseconds. */
export interface RawHeartRate {
  userId: string;
  from: number;
  to: number;
  requestedAt: number;
  rows: HeartRateAnswer | readonly unknown[];
}

interface Opened extends PreparedSchema {
  store: Store;
  /** The writer's. */
  connection: Upkeep['connection'];
  published: Publication | undefined;
}

/** The warehouse: one file, one owner, one writer. */
export class Warehouse {
  readonly path: string;
  readonly clock: RequestClock;
  /** Of all that has tables of documents. */
  readonly mappings: readonly Mapping[];
  /** The document types that the service lists and announces. */
  readonly resources: readonly Resource[];
  readonly #store: Store;
  readonly #writer: Writer;
  readonly #copies: SnapshotCopies;
  readonly #reader: SharedConnections;
  readonly #kept = new KeptReadings();
  readonly #heartRateChanges = new HeartRateChanges();
  readonly #schema: KnownSchema;
  readonly #columnsOf: (table: string) => readonly Column[];
  readonly #ensureRoom: () => void;
  /** Noted while it is compacted. */
  #committed: Committed | undefined;
  #commits = 0;
  /** Whether another machine writes to it. */
  readonly #isOfOthers: boolean;
  /** The newest commit of others that counts as one. */
  #noticed: number | undefined;
  #databaseVersion: Promise<string> | undefined;

  private constructor(options: WarehouseOptions, mappings: readonly Mapping[], opened: Opened) {
    const { path, beforeGroup, onFatal } = options;
    const { store, connection, columns, schema, clock, published } = opened;
    this.path = path;
    this.clock = clock;
    this.mappings = mappings;
    this.resources = options.resources;
    this.#store = store;
    this.#schema = schema;
    this.#columnsOf = table => columns.get(table) ?? missing(table);
    this.#ensureRoom = beforeGroup ?? (() => undefined);
    this.#writer = new Writer({
      store,
      connection,
      clock,
      kept: this.#kept,
      heartRateChanges: this.#heartRateChanges,
      columnsOf: this.#columnsOf,
      beforeGroup,
      onFatal,
      onCommitted: (...what) => this.#committed?.add(...what),
    });
    this.#reader = new SharedConnections(store);
    this.#isOfOthers = options.refusal !== undefined;
    this.#copies = new SnapshotCopies({
      store,
      mappings,
      clock,
      beforeTable: this.#ensureRoom,
      published,
      isOfOthers: this.#isOfOthers,
    });
  }

  /**
   * Opens the file as its only owner, makes what is missing in it, and reads again what earlier declarations could not place.
   * @throws TryLaterError naming the process that holds the file
   * @throws RingneckError when tables of ours differ from their declarations, or a newer program made the file
   */
  static async open(options: WarehouseOptions): Promise<Warehouse> {
    const mappings = mapAll(options.resources);
    const tellHandover = takeHandover(options.path);
    const store = await openStore(options, mappings);
    let warehouse: Warehouse | undefined;
    try {
      // Who only reads a lake has no commit to know it by.
      const handover = options.refusal ? undefined : tellHandover(store.commits?.found);
      const connection = await store.connect();
      // A lake may be larger than this disk, and its keeper has copies of it elsewhere.
      const beforeUpgrade = async (format: number | null) => (options.lake ? undefined : keepCopy(store, connection, format, options));
      const prepared = await prepareSchema(store, connection, mappings, { now: options.now, known: handover?.schema, beforeUpgrade });
      if (prepared.isUnclear) options.onUnclearHeartRate?.();
      warehouse = new Warehouse(options, mappings, { ...prepared, store, connection, published: handover?.publication });
      if (!prepared.isKnown) await warehouse.#evolveSchema();
      return warehouse;
    } catch (error) {
      if (warehouse) await warehouse.#writer.close();
      await store.close();
      throw error;
    }
  }

  /**
   * Replaces a warehouse that nobody has open by one of all that is not a person's: nothing of what was is left in its files. Of a lake it
   * may be repeated until it has come to its end.
   * @param beforeTable throws when there is no room on the disk
   * @returns how many rows went, by table
   * @throws TryLaterError naming the process that holds the file
   */
  static async erase({ path, lake }: Place, person: Person, beforeTable: () => void): Promise<Record<string, number>> {
    const { erasingOf, rewriteWithout } = await import('./store/file/erase.ts');
    if (!lake) return rewriteWithout(path, person, beforeTable);
    const { rewriteLake } = await import('./store/lake/rewrite.ts');
    return rewriteLake({ path, lake }, erasingOf(person));
  }

  /**
   * Replaces a warehouse that nobody has open by one in which an account has another name.
   * @param beforeTable throws when there is no room on the disk
   * @returns how many rows are the account's, by table
   * @throws TryLaterError naming the process that holds the file
   */
  static async rename({ path, lake }: Place, renaming: Renaming, beforeTable: () => void): Promise<Record<string, number>> {
    const { renamingOf, rewriteRenamed } = await import('./store/file/move.ts');
    if (!lake) return rewriteRenamed(path, renaming, beforeTable);
    const { rewriteLake } = await import('./store/lake/rewrite.ts');
    return rewriteLake({ path, lake }, renamingOf(renaming));
  }

  async #evolveSchema(): Promise<void> {
    const hash = declarationsHash(this.mappings);
    const meta = new Map((await this.read('SELECT key, value FROM sync.meta')).map(([key, value]) => [key, value]));
    const fact = (key: string, value: string) => ({ table: 'sync.meta', key: { key }, row: { value } });
    if (!meta.has('format')) await this.record([fact('format', String(FORMAT)), fact('declarations', hash)]);
    if (meta.has('format') && meta.get('declarations') !== hash) {
      await this.#reader.use(connection => evolveSchema(connection, this.mappings, change => this.#writer.write(change, 'bulk')));
      // What is read from now on may differ from what is stored although the service changed nothing.
      await this.record([fact('declarations', hash), fact('declared_at', String(this.clock.next()))]);
    }
  }

  /**
   * Stores the answer to one request for documents. Resolves once it is committed.
   * @param page.requestedAt the moment the request was sent, from `clock.lease()`
   * @param page.known documents of an answer that is, byte for byte, an earlier one; those that are stored otherwise by now are counted as
   *   `differing` and left as they are
   * @param page.removed documents that the answer says are gone
   * @param page.missing documents that the answer lacks: noted as a first proof, unless a newer answer has brought them
   * @param page.absentFrom the days from which they are absent; undefined where each is known to be gone
   * @param page.completes with the last answer of a complete reading
   */
  async storeDocuments(
    page: Pick<DocumentPage, 'userId' | 'requestedAt' | 'known' | 'missing' | 'absentFrom' | 'range' | 'completes'> & {
      resource: Resource;
      documents: readonly unknown[];
      removed?: readonly string[];
    },
    { lane = 'bulk', ledger, guard }: WriteOptions = {},
  ): Promise<WriteResult> {
    const { userId, requestedAt, known, missing, absentFrom, range, completes } = page;
    const mapping = this.mapping(page.resource.name);
    // What cannot be an id of ours is not here to be removed.
    const removed = (page.removed ?? []).filter(storable);
    const parsing = this.#writer.room(lane).then(() => parseDocuments(mapping, page.documents));
    // What waits for its commit holds nothing of the documents as they came: they take several times the memory of what is made of them.
    return this.#storeParsed({ userId, mapping, requestedAt, known, removed, missing, absentFrom, range, completes }, parsing, {
      lane,
      ledger,
      guard,
    });
  }

  #storeParsed(
    page: Omit<DocumentPage, 'documents' | 'rejected'>,
    parsing: Promise<ParsedDocuments>,
    { lane, ledger, guard }: { lane: Lane; ledger: Ledger | undefined; guard: (() => void) | undefined },
  ): Promise<WriteResult> {
    return this.clock.withRequest(async request => {
      request.keep(page.requestedAt);
      const { documents, rejected, samples } = await parsing;
      return this.#write({ page: { ...page, documents, rejected }, ledger, guard, samples }, lane);
    });
  }

  /**
   * Replaces the heart-rate rows of an account from `from` (included) to `to` (excluded), microseconds, by all that the service has.
   * @param range.requestedAt when the first of its requests was sent
   * @param range.compared what `countMissingHeartRate` has said of the same answer
   * @param range.isSuspicious adds rows that lie well before or after all that is stored, and touches nothing else
   * @param options.ledger makes what is committed with the rows, of how many came of each UTC day and of what storing them did
   */
  storeHeartRate(
    range: RawHeartRate & { isSuspicious?: boolean; compared?: Comparison },
    {
      lane = 'bulk',
      ledger,
      guard,
    }: Omit<WriteOptions, 'ledger'> & { ledger?: (rowsByDay: readonly number[], counts: WriteResult) => readonly LedgerEntry[] } = {},
  ): Promise<WriteResult> {
    return this.clock.withRequest(async request => {
      request.keep(range.requestedAt);
      await this.#writer.room(lane);
      const answer = answerOf(range.rows);
      const same = range.compared?.same;
      const rowsByDay = same?.rowsByDay ?? countByDay(answer.rows, range);
      const entries = ledger && ((counts: WriteResult) => ledger(rowsByDay, counts));
      const heartRate = {
        ...range,
        // Of the same answer as before they are read only if something was stored meanwhile.
        get rows() {
          return answer.rows;
        },
        get rejected() {
          return answer.rejected;
        },
      };
      return this.#write({ heartRate, ledger: entries, guard, samples: same ? 0 : answer.rows.length }, lane);
    });
  }

  /**
   * How many stored rows of each week of a range an answer would take away, and how many there are. Changes nothing.
   * @returns also what `storeHeartRate` is given, which then need not compare again unless something has changed
   */
  async countMissingHeartRate(range: RawHeartRate): Promise<{ weeks: Missing[]; compared: Comparison }> {
    const { version } = this.#heartRateChanges;
    const { weeks, found } = await this.#reader.use(connection => countMissing(connection, { ...range, rows: answerOf(range.rows).rows }));
    return { weeks, compared: { found, version } };
  }

  /** The same of an answer that is, byte for byte, an earlier one; undefined where what that one brought is not all that is stored of the range. */
  async findSameHeartRate(
    range: Pick<RawHeartRate, 'userId' | 'from' | 'to'>,
    earlier: { requestedAt: number; rows: number; rowsByDay: readonly number[] },
  ): Promise<Comparison | undefined> {
    const { version } = this.#heartRateChanges;
    if (!(await this.#reader.use(connection => holdsJust(connection, range, earlier)))) return undefined;
    return { found: 'these', version, same: { rows: earlier.rows, rowsByDay: earlier.rowsByDay } };
  }

  /** @throws what the next group of writes would be refused with: no room on the disk */
  ensureRoom(): void {
    this.#ensureRoom();
  }

  /** What the ledger says was read from a path of heart rate, by account. */
  async readHeartRateSpans(route: string): Promise<HeartRateSpan[]> {
    return joinSpans(await this.#kept.read(windowsFrom(route), selectSpans(route), text => this.read(text)));
  }

  /**
   * Removes the heart rate that was read from a path; its windows, and all others that lose rows by it, count as failed.
   * @returns how many rows left
   */
  async withdrawHeartRate(withdrawal: HeartRateWithdrawal): Promise<number> {
    return (await this.#write({ withdrawal, samples: 0 }, 'live')).removed;
  }

  /**
   * Commits entries alone, before anything that waits as bulk.
   * @param options.usesReserve also while the disk is too full for all else
   */
  async record(ledger: readonly LedgerEntry[], { usesReserve = false } = {}): Promise<void> {
    if (ledger.length) await this.#write({ ledger, usesReserve, samples: 0 }, 'live');
  }

  async #write(change: WriteBatch, lane: Lane): Promise<WriteResult> {
    const counts = await this.#copies.noting(change, () => this.#writer.write(change, lane));
    const entries = typeof change.ledger === 'object' ? change.ledger : [];
    if (change.page || change.heartRate || change.withdrawal || entries.some(({ table }) => isPublished(table))) this.#commits++;
    return counts;
  }

  /** Grows with every committed change of what a snapshot holds: tells whether a copy is still fresh. */
  get commits(): number {
    return this.#commits;
  }

  /** Where another machine writes: what it has committed since this was called last is told and copied from here on. */
  async noticeOthers(): Promise<void> {
    const newest = await this.#store.newest?.();
    if (newest === this.#noticed) return;
    this.#noticed = newest;
    this.#commits++;
    this.#kept.forget();
  }

  mapping(name: string): Mapping {
    return this.mappings.find(({ table }) => table === name) ?? missing(name);
  }

  /** Rows of a small internal query, as plain values: instants in microseconds, days as text. Never for an analyst's SQL. */
  read(sql: string): Promise<Value[][]> {
    return this.#reader.use(connection => readRows(connection, sql));
  }

  /**
   * The same of a small table of the ledger, from memory as long as no commit touches the table.
   * @param sql one of few texts: each one's rows are kept
   */
  readKept(table: string, sql: string): Promise<readonly Value[][]> {
    return this.#kept.read(table, sql, text => this.read(text));
  }

  /** Stored documents as the wire documents they came from; `where` may end in ORDER BY and LIMIT. */
  readDocuments(name: string, where: string): Promise<StoredDocument[]> {
    return this.#reader.use(connection => readDocuments(connection, this.mapping(name), where));
  }

  readHeartRate(userId: string, query: Parameters<typeof readHeartRate>[2]): Promise<WireDocument[]> {
    return this.#reader.use(connection => readHeartRate(connection, userId, query));
  }

  /** Publishes a sorted copy of the warehouse for readers, as large as this one at most. Copies never overlap. */
  snapshot(path: string, mode: number, signal = NEVER): Promise<SnapshotFacts> {
    return this.#copies.publish(path, mode, signal);
  }

  /**
   * Brings the copy at this path up to date, which costs a copy of the file and what has changed.
   * @throws NeedsRebuild when it has to be made anew
   */
  refreshSnapshot(path: string, mode: number, signal = NEVER): Promise<SnapshotFacts> {
    return this.#copies.refresh(path, mode, signal);
  }

  /** Writes a sorted copy that is none of those that are brought up to date, and tells what it holds. */
  copy(path: string, mode: number, signal = NEVER): Promise<SnapshotFacts & { contents: Contents }> {
    return this.#copies.keep(path, mode, signal);
  }

  /**
   * Writes all that is committed into a new file, which can take the place of this one. Nobody waits for it but copies for readers.
   * @param parts.beforeTable throws when there is no room where the file is written
   * @param parts.atBeginning see CopyOptions
   * @returns the version of DuckDB that wrote it
   */
  async backup(path: string, parts: Pick<CopyOptions, 'beforeTable' | 'atBeginning'>, signal = NEVER): Promise<{ duckdb: string }> {
    await this.#copies.use('a backup', connection => this.#store.copy(path, { ...parts, connection, signal }));
    return { duckdb: await this.databaseVersion() };
  }

  /** As `v1.5.5`. */
  databaseVersion(): Promise<string> {
    this.#databaseVersion ??= this.read('SELECT version()').then(rows => String(rows[0]?.[0]));
    return this.#databaseVersion;
  }

  /** What the writer has done since the file was opened, and what waits for it; asks nobody. */
  get writing(): Record<Lane, LaneReport> {
    return this.#writer.report();
  }

  /** How large the file is, and when it was compacted last. */
  async size(): Promise<Size & { compacted: Compacted | undefined; isDue: boolean }> {
    const counts = listTables(this.mappings).map(({ name }) => `(SELECT count(*) FROM ${qualified(name)})`);
    const [[rows, known] = []] = await this.read(`SELECT ${counts.join(' + ')}, (SELECT value FROM sync.meta WHERE key = 'compacted')`);
    const size = { ...(await this.#store.size()), rows: rows as number };
    const compacted = known == null ? undefined : (JSON.parse(known as string) as Compacted);
    return { ...size, compacted, isDue: this.#store.isDue(size, compacted, this.clock.wall()) };
  }

  /**
   * Replaces the file by a sorted one of all that it holds, beside whoever reads and writes. It takes the time of a snapshot, and, with
   * what sorting spills, several times its room on the disk; killed at any moment it leaves a whole file.
   * @throws TryLaterError where somebody reads for long just when the files change places
   */
  async compact(signal = NEVER): Promise<Compacted> {
    try {
      await this.#copies.use('compacting the warehouse', connection =>
        this.#store.maintain({
          connection,
          columnsOf: this.#columnsOf,
          beforeTable: this.#ensureRoom,
          signal,
          takeCommitted: () => {
            const taken = this.#committed ?? new Committed();
            this.#committed = new Committed();
            return taken;
          },
          alone: work => this.#reader.whileIdle(() => this.#writer.whileIdle(work), READERS_PATIENCE_MS),
          betweenGroups: work => this.#writer.whileIdle(work),
        }),
      );
    } catch (error) {
      throw error instanceof NotOpenedAgain ? this.#writer.breakDown(error) : error;
    } finally {
      this.#committed = undefined;
    }
    const { bytes, rows, commits } = await this.size();
    const compacted = { at: this.clock.wall(), bytes, rows, ...(commits === undefined ? {} : { commits }) };
    await this.record([{ table: 'sync.meta', key: { key: 'compacted' }, row: { value: JSON.stringify(compacted) } }]);
    return compacted;
  }

  /** Commits what waits, then closes the file. */
  async close(): Promise<void> {
    await this.#writer.close();
    await this.#copies.close();
    await this.#reader.close();
    const { publication } = this.#copies;
    const commits = this.#store.commits?.last;
    await this.#store.close();
    if (!this.#isOfOthers) leaveHandover(this.path, { schema: this.#schema, publication, commits });
  }
}

const NEVER = new AbortController().signal;
/** What is read while `up` runs is read in less; who comes after it waits that long too. */
const READERS_PATIENCE_MS = 200;

async function openStore(options: WarehouseOptions, mappings: readonly Mapping[]): Promise<Store> {
  const { lake } = options;
  if (!lake) return FileStore.open(options, mappings);
  const { LakeStore } = await import('./store/lake/lake-store.ts');
  return LakeStore.open({ ...options, lake }, mappings);
}

function answerOf(rows: RawHeartRate['rows']): HeartRateAnswer {
  if (rows instanceof HeartRateAnswer) return rows;
  const answer = new HeartRateAnswer();
  answer.add(rows);
  return answer;
}

function missing(name: string): never {
  throw new RingneckError(`no such table: ${name}`);
}
