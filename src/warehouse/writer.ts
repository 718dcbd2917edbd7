import { setImmediate } from 'node:timers/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../schema/heart-rate.ts';
import { messageOf, RingneckError } from '../errors.ts';
import { firstLine, isFatal, withTransaction } from './database.ts';
import { driftEntries } from './drift.ts';
import type { LedgerEntry } from './literals.ts';
import { ledgerStatements } from './literals.ts';
import type { Column, Mapping } from './mapping.ts';
import type { Moments } from './moments.ts';
import type { Drift, RejectedDocument } from './parse-document.ts';
import type { Counts, DocumentPage, Transaction } from './store-documents.ts';
import { noCounts, storeDocuments } from './store-documents.ts';
import type { HeartRateRange } from './store-heart-rate.ts';
import { rejectedHeartRate, storeHeartRate } from './store-heart-rate.ts';

/** Large groups go straight to the file, in whole row groups: they cost 0.6 of the CPU of groups of 125,000 samples. */
const GROUP_SAMPLES = 750_000;
/** DuckDB's. What a group leaves over begins a row group and a block of its own, and a checkpoint moves it again. */
const ROW_GROUP = 122_880;
/**
 * A bulk group while live work comes: a live change waits for the group before it, and one of 750,000 samples takes seconds. It costs the
 * backfill more CPU for as long as events arrive.
 */
const GROUP_SAMPLES_BESIDE_LIVE = 40_000;
/** What a document’s own row costs, counted in samples: pages of documents without any would make a group that takes as long as a large one. */
const DOCUMENT_AS_SAMPLES = 200;
/** So long after a live change others are expected. */
const LIVE_FOR_MS = 10_000;
/**
 * Beside a stream of live work bulk work has this part of the writer's time, its checkpoints included: a live change rarely meets it. A
 * backfill takes several times as long for as long as the stream lasts.
 */
const BULK_SHARE_BESIDE_LIVE = 1 / 10;
/** A stream of live work is one whose last change is no longer ago. */
const STREAM_MS = 1_000;
/**
 * DuckDB decides by the tables that a commit touches, more than by what it wrote, and would checkpoint after nearly every small commit
 * over many tables: 60 ms instead of 4. While live work comes we say when, by the size of the log.
 */
const CHECKPOINT_BYTES = { bulk: 16 * 1024 * 1024, live: 64 * 1024 * 1024 };
const NEVER_BYTES = 1024 ** 4;
/** Live work goes first, but a stream of it must not stop a backfill. */
const LIVE_GROUPS_IN_A_ROW = 8;
/** No more changes than this in one group, however few samples they have. */
const GROUP_CHANGES = 2_000;

export type Lane = 'live' | 'bulk';

/** A parsed change: all of it is committed in one transaction, or none. */
export interface Change {
  page?: DocumentPage;
  heartRate?: HeartRateRange & { rejected: readonly RejectedDocument[] };
  ledger?: Ledger;
  samples: number;
}

/** Entries to be committed with a change; as a function, of what storing it did. It may be called again when the transaction is. */
export type Ledger = readonly LedgerEntry[] | ((counts: Counts) => readonly LedgerEntry[]);

interface Waiting {
  change: Change;
  resolve(counts: Counts): void;
  reject(error: unknown): void;
}

interface Confirmation {
  moment: number;
  from?: number;
  to?: number;
}

export interface WriterOptions {
  connection: DuckDBConnection;
  moments: Moments;
  newestSk: number;
  columnsOf(table: string): readonly Column[];
  /** Lets DuckDB have more memory until what it resolves to is called. */
  raiseMemory(): Promise<() => Promise<void>>;
  /** Bytes of the write-ahead log. */
  logSize(): number;
  /** Called before each group; throws when there is no room on the disk. */
  beforeGroup?: () => void;
  /** Called once when DuckDB can serve no further statement in this process. */
  onFatal?: (error: Error) => void;
}

/**
 * The one writer. It owns its connection and has no timer: when idle it commits at once what waits; what arrives meanwhile is the
 * next group.
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #lanes: Record<Lane, Waiting[]> = { live: [], bulk: [] };
  /** By table, user and id, or by user for ranges of heart rate. Kept only while an older answer may still arrive. */
  readonly #confirmed = new Map<string, Confirmation[]>();
  #sk: number;
  #bulkSamples = 0;
  #liveInARow = 0;
  #liveAt = Number.NEGATIVE_INFINITY;
  /** Before, bulk work waits beside a stream of live work. */
  #bulkFrom = Number.NEGATIVE_INFINITY;
  #endPause = () => {};
  /** While live work comes: gives back the memory that it needs. */
  #lowerMemory: (() => Promise<void>) | undefined;
  #running: Promise<void> | undefined;
  /** Why nothing more is taken; what was taken before is committed all the same, unless DuckDB cannot. */
  #closed: Error | undefined;
  #fatal: Error | undefined;
  #roomWanted: (() => void)[] = [];

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#sk = options.newestSk;
  }

  /** Resolves when less than two groups wait: the back-pressure on whoever reads from the service. Live work never waits for it. */
  async room(lane: Lane): Promise<void> {
    if (lane === 'live') return;
    while ((this.#bulkSamples >= 2 * this.#groupSamples || this.#lanes.bulk.length >= 2 * GROUP_CHANGES) && !this.#closed) {
      await new Promise<void>(resolve => this.#roomWanted.push(resolve));
    }
  }

  /** Resolves once the change is committed; rejects when it is not, and then nothing of it is stored. */
  write(change: Change, lane: Lane): Promise<Counts> {
    if (this.#closed) return Promise.reject(this.#closed);
    for (const moment of momentsOf(change)) this.#options.moments.hold(moment);
    const committed = new Promise<Counts>((resolve, reject) => this.#lanes[lane].push({ change, resolve, reject }));
    if (lane === 'bulk') this.#bulkSamples += change.samples;
    else {
      // The ledger's own entries come with a backfill too.
      if (change.page || change.heartRate) this.#liveAt = performance.now();
      this.#endPause();
    }
    this.#running ??= this.#run();
    return committed.finally(() => {
      for (const moment of momentsOf(change)) this.#options.moments.end(moment);
      this.#prune();
    });
  }

  /** Waits until everything given so far is committed. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  /** Waits until everything given so far is committed, and takes nothing more. */
  async close(): Promise<void> {
    this.#closed ??= new RingneckError('the warehouse is closed');
    for (const wanted of this.#roomWanted.splice(0)) wanted();
    this.#endPause();
    await this.idle();
  }

  async #run(): Promise<void> {
    // A turn of the loop for those who call in the same moment: they share the first group.
    await setImmediate();
    for (let next = this.#nextGroup(); next; next = this.#nextGroup()) {
      if (next === 'later') {
        await this.#pause();
        continue;
      }
      const startedAt = performance.now();
      await this.#commit(next.group);
      await this.#checkpoint();
      const now = performance.now();
      if (next.lane === 'bulk') this.#bulkFrom = now + (now - startedAt) * (1 / BULK_SHARE_BESIDE_LIVE - 1);
    }
    // In the same turn in which nothing was found: a change that comes later must start a new run.
    this.#running = undefined;
  }

  /** Undefined when nothing waits; later when what waits is bulk work whose time has not come. */
  #nextGroup(): { lane: Lane; group: Waiting[] } | 'later' | undefined {
    const { live, bulk } = this.#lanes;
    if (!live.length && !bulk.length) return undefined;
    const mayBulk = bulk.length > 0 && !this.#mustBulkWait();
    if (!live.length && !mayBulk) return 'later';
    const lane = live.length && (this.#liveInARow < LIVE_GROUPS_IN_A_ROW || !mayBulk) ? 'live' : 'bulk';
    this.#liveInARow = lane === 'live' ? this.#liveInARow + 1 : 0;
    const waiting = this.#lanes[lane];
    const group = waiting.splice(0, this.#isLive() ? groupLengthBesideLive(waiting) : groupLength(waiting));
    if (lane === 'bulk') {
      for (const { change } of group) this.#bulkSamples -= change.samples;
      for (const wanted of this.#roomWanted.splice(0)) wanted();
    }
    return { lane, group };
  }

  #isLive(withinMs = LIVE_FOR_MS): boolean {
    return performance.now() - this.#liveAt < withinMs;
  }

  get #groupSamples(): number {
    return this.#isLive() ? GROUP_SAMPLES_BESIDE_LIVE : GROUP_SAMPLES;
  }

  #mustBulkWait(): boolean {
    return !this.#closed && this.#isLive(STREAM_MS) && performance.now() < this.#bulkFrom;
  }

  /** Until bulk work may go on, or something comes that goes before it. */
  #pause(): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, Math.max(1, this.#bulkFrom - performance.now()));
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Says who decides on checkpoints and what memory there is, and makes a checkpoint when it is ours and due. */
  async #checkpoint(): Promise<void> {
    const { connection, logSize, raiseMemory } = this.#options;
    try {
      if (this.#isLive() && !this.#lowerMemory) {
        await connection.run(`SET wal_autocheckpoint = '${NEVER_BYTES}B'`);
        this.#lowerMemory = await raiseMemory();
      } else if (!this.#isLive() && this.#lowerMemory) {
        await connection.run(`SET wal_autocheckpoint = '${CHECKPOINT_BYTES.bulk}B'`);
        await this.#lowerMemory();
        this.#lowerMemory = undefined;
      }
      if (this.#lowerMemory && logSize() > CHECKPOINT_BYTES.live) await connection.run('CHECKPOINT');
    } catch {
      // A checkpoint gives way to another transaction and comes after the next group; what else is wrong, that one meets and tells.
    }
  }

  /** Commits a group; what fails is tried again in halves, so that a lack of memory, or one bad change, takes no neighbour with it. */
  async #commit(group: readonly Waiting[]): Promise<void> {
    if (this.#fatal) {
      for (const { reject } of group) reject(this.#fatal);
      return;
    }
    try {
      this.#options.beforeGroup?.();
      const counts = await this.#store(group.map(({ change }) => change));
      for (let i = 0; i < group.length; i++) group[i]!.resolve(counts[i]!);
    } catch (error) {
      if (isFatal(error)) {
        this.#fatal = new RingneckError(`DuckDB cannot go on: ${firstLine(error)}; start again`, 1, { cause: error });
        this.#closed = this.#fatal;
        for (const { reject } of group) reject(this.#fatal);
        for (const wanted of this.#roomWanted.splice(0)) wanted();
        this.#options.onFatal?.(this.#fatal);
      } else if (group.length === 1 || error instanceof RingneckError) {
        const failure = error instanceof RingneckError ? error : new RingneckError(`not stored: ${messageOf(error)}`, 1, { cause: error });
        for (const { reject } of group) reject(failure);
      } else {
        const half = group.length >> 1;
        await this.#commit(group.slice(0, half));
        await this.#commit(group.slice(half));
      }
    }
  }

  async #store(changes: readonly Change[]): Promise<Counts[]> {
    const { connection, columnsOf } = this.#options;
    const confirmations: (readonly [string, Confirmation])[] = [];
    const counts = await withTransaction(connection, async () => {
      confirmations.length = 0;
      const transaction: Transaction = {
        connection,
        nextSk: () => ++this.#sk,
        columnsOf,
        confirmedAt: (table, userId, id) => this.#confirmed.get(`${table}\n${userId}\n${id}`)?.[0]?.moment,
        confirm: (table, userId, id, moment) => confirmations.push([`${table}\n${userId}\n${id}`, { moment }]),
      };
      const results = changes.map(() => noCounts());
      const ledger: LedgerEntry[] = [];
      const observed: { collection: string; drift: readonly Drift[] }[] = [];
      const indexes = byMapping(changes);
      const pages = new Map([...indexes].map(([mapping, of]) => [mapping, of.map(i => changes[i]!.page!)]));
      for (const [mapping, done] of await storeDocuments(transaction, pages)) {
        indexes.get(mapping)!.forEach((i, n) => {
          results[i] = done.counts[n]!;
        });
        for (const entry of done.ledger) ledger.push(entry);
        observed.push({ collection: mapping.resource.name, drift: done.drift });
      }
      // Ranges of one group may overlap: each is settled before the next is cut.
      const settled: (readonly [string, Confirmation])[] = [];
      for (let i = 0; i < changes.length; i++) {
        const range = changes[i]!.heartRate;
        if (!range) continue;
        const newer = [...(this.#confirmed.get(range.userId) ?? []), ...settled.filter(([key]) => key === range.userId).map(([, c]) => c)];
        const segments = subtract(range, newer);
        const done = await storeHeartRate(transaction, range, segments);
        observed.push({ collection: heartRate.name, drift: done.drift });
        const refused = await rejectedHeartRate(connection, range, segments);
        results[i] = { ...done.counts, rejected: range.rejected.length, undated: refused.undated };
        ledger.push(...refused.ledger);
        settled.push([range.userId, { moment: range.requestedAt, from: range.from, to: range.to }]);
      }
      confirmations.push(...settled);
      ledger.push(...(await driftEntries(connection, observed, this.#options.moments.latest())));
      ledger.push(...changes.flatMap(({ ledger = [] }, i) => (typeof ledger === 'function' ? ledger(results[i]!) : ledger)));
      for (const statement of ledgerStatements(ledger, columnsOf)) await connection.run(statement);
      return results;
    });
    this.#remember(confirmations);
    return counts;
  }

  #remember(confirmations: readonly (readonly [string, Confirmation])[]): void {
    const oldest = this.#options.moments.oldestHeld();
    for (const [key, confirmation] of confirmations) {
      if (confirmation.moment <= oldest) continue;
      if (confirmation.from === undefined) this.#confirmed.set(key, [confirmation]);
      else this.#confirmed.set(key, [...(this.#confirmed.get(key) ?? []), confirmation]);
    }
  }

  #prune(): void {
    if (!this.#confirmed.size) return;
    const oldest = this.#options.moments.oldestHeld();
    for (const [key, confirmations] of this.#confirmed) {
      const kept = confirmations.filter(({ moment }) => moment > oldest);
      if (kept.length === confirmations.length) continue;
      if (kept.length) this.#confirmed.set(key, kept);
      else this.#confirmed.delete(key);
    }
  }
}

/** How many of the changes that wait go into the next group: of more than half of one as many as fill their last row group best, else all. */
function groupLength(waiting: readonly Waiting[]): number {
  let samples = 0;
  let length = 0;
  let best = { length: 0, unused: Number.POSITIVE_INFINITY };
  while (length < waiting.length && length < GROUP_CHANGES && (length === 0 || samples < GROUP_SAMPLES)) {
    samples += waiting[length++]!.change.samples;
    const unused = (ROW_GROUP - (samples % ROW_GROUP)) % ROW_GROUP;
    if (samples >= GROUP_SAMPLES / 2 && unused <= best.unused) best = { length, unused };
  }
  return best.length || length;
}

/** As many as a live change can wait for, but one in any case. */
function groupLengthBesideLive(waiting: readonly Waiting[]): number {
  let cost = 0;
  let length = 0;
  while (length < waiting.length && length < GROUP_CHANGES) {
    const { samples, page } = waiting[length]!.change;
    cost += samples + DOCUMENT_AS_SAMPLES * (page?.documents.length ?? 0);
    if (length > 0 && cost > GROUP_SAMPLES_BESIDE_LIVE) break;
    length++;
  }
  return length;
}

function momentsOf({ page, heartRate }: Change): number[] {
  return [...(page ? [page.requestedAt] : []), ...(heartRate ? [heartRate.requestedAt] : [])];
}

function byMapping(changes: readonly Change[]): Map<Mapping, number[]> {
  const indexes = new Map<Mapping, number[]>();
  changes.forEach(({ page }, i) => {
    if (!page) return;
    const list = indexes.get(page.mapping);
    if (list) list.push(i);
    else indexes.set(page.mapping, [i]);
  });
  return indexes;
}

/** The parts of a range that no newer answer has settled. */
function subtract(range: HeartRateRange, settled: readonly Confirmation[]): (readonly [number, number])[] {
  let parts: (readonly [number, number])[] = [[range.from, range.to]];
  for (const { moment, from = 0, to = 0 } of settled) {
    if (moment <= range.requestedAt) continue;
    parts = parts.flatMap(([start, end]): (readonly [number, number])[] => {
      if (to <= start || from >= end) return [[start, end]];
      return [[start, from] as const, [to, end] as const].filter(([a, b]) => a < b);
    });
  }
  return parts;
}
