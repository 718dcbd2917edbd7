import { setImmediate } from 'node:timers/promises';
import { DurationHistogram, type Durations } from '../../base/duration-histogram.ts';
import { RingneckError } from '../../base/errors.ts';
import type { LedgerEntry } from '../sql.ts';
import { firstLine, isFatal } from '../store/database.ts';
import { NotOpenedAgain, type Store } from '../store/store.ts';
import type { WriteResult } from '../write-result.ts';
import { batchSize, isTwoGroups } from './batch-size.ts';
import { BulkThrottle } from './bulk-throttle.ts';
import { LowWatermark } from './low-watermark.ts';
import { type Storage, storeChanges } from './store-changes.ts';
import type { WriteBatch } from './write-batch.ts';

/** Live work goes first, but a stream of it must not stop a backfill. */
const LIVE_GROUPS_IN_A_ROW = 8;

export type Lane = 'live' | 'bulk';

const GROUP_TIMES = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What one lane of the writer has done since it was opened, and what waits for it. */
export interface LaneReport {
  groups: Durations;
  changes: number;
  waiting: number;
}

interface Waiting {
  change: WriteBatch;
  resolve(counts: WriteResult): void;
  reject(error: unknown): void;
}

export interface WriterOptions extends Omit<Storage, 'store' | 'lowWatermark'> {
  store: Pick<
    Store,
    'transaction' | 'takeSks' | 'openAppender' | 'beforeGroup' | 'afterGroup' | 'memory' | 'samplesBesideLive' | 'versions'
  >;
  /** Called before each group; throws when there is no room on the disk, which keeps out all that may not use the reserve. */
  beforeGroup?: () => void;
  /** Called once when DuckDB can serve no further statement in this process. */
  onFatal?: (error: Error) => void;
  /** Called with each group that is committed, before anybody else hears of it. */
  onCommitted?: (changes: readonly WriteBatch[], counts: readonly WriteResult[], ledger: readonly LedgerEntry[]) => void;
}

/**
 * The one writer. It owns its connection and has no timer: when idle it commits at once what waits; what arrives meanwhile is the
 * next group.
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #storage: Storage;
  readonly #lanes: Record<Lane, Waiting[]> = { live: [], bulk: [] };
  readonly #bulkThrottle = new BulkThrottle();
  readonly #done = { live: newCount(), bulk: newCount() };
  #bulkSamples = 0;
  #liveInARow = 0;
  #endPause = () => {};
  #running: Promise<void> | undefined;
  /** Why nothing more is taken; what was taken before is committed all the same, unless DuckDB cannot. */
  #closed: Error | undefined;
  #fatal: Error | undefined;
  #roomWanted: (() => void)[] = [];
  /** To be done between two groups. */
  readonly #between: (() => Promise<void>)[] = [];

  constructor(options: WriterOptions) {
    const { store, connection, columnsOf, clock, kept, heartRateChanges } = options;
    this.#options = options;
    this.#storage = { store, connection, columnsOf, clock, lowWatermark: new LowWatermark(clock), kept, heartRateChanges };
  }

  /** Resolves when less than two groups wait: the back-pressure on whoever reads from the service. Live work never waits for it. */
  async room(lane: Lane): Promise<void> {
    if (lane === 'live') return;
    while (isTwoGroups(this.#lanes.bulk.length, this.#bulkSamples, this.#besideLive) && !this.#closed) {
      await new Promise<void>(resolve => this.#roomWanted.push(resolve));
    }
  }

  /** Resolves once the change is committed; rejects when it is not, and then nothing of it is stored. */
  write(change: WriteBatch, lane: Lane): Promise<WriteResult> {
    if (this.#closed) return Promise.reject(this.#closed);
    const { clock, lowWatermark } = this.#storage;
    const request = clock.openRequest();
    for (const moment of momentsOf(change)) request.keep(moment);
    const committed = new Promise<WriteResult>((resolve, reject) => this.#lanes[lane].push({ change, resolve, reject }));
    if (lane === 'bulk') this.#bulkSamples += change.samples;
    else {
      // The ledger's own entries come with a backfill too.
      if (change.page || change.heartRate) this.#bulkThrottle.note();
      this.#endPause();
    }
    this.#running ??= this.#run();
    return committed.finally(() => {
      request.end();
      lowWatermark.prune();
    });
  }

  /** Does work while nothing is committed, before anything that waits; what comes meanwhile waits for it. */
  whileIdle<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(this.#closed);
    const done = new Promise<T>((resolve, reject) => this.#between.push(() => work().then(resolve, reject)));
    this.#endPause();
    this.#running ??= this.#run();
    return done;
  }

  /** What it has done and has to do, by lane; asks nobody. */
  report(): Record<Lane, LaneReport> {
    const of = (lane: Lane): LaneReport => {
      const { groups, changes } = this.#done[lane];
      return { groups: groups.read(), changes, waiting: this.#lanes[lane].length };
    };
    return { live: of('live'), bulk: of('bulk') };
  }

  /** Nothing more can be stored by this process. */
  breakDown(error: unknown): Error {
    if (this.#fatal) return this.#fatal;
    const exitCode = error instanceof NotOpenedAgain ? 75 : 1;
    this.#fatal = new RingneckError(`DuckDB cannot go on: ${firstLine(error)}; start again`, exitCode, { cause: error });
    this.#closed = this.#fatal;
    this.#giveRoom();
    try {
      this.#options.onFatal?.(this.#fatal);
    } catch {
      // Whoever waits for the writer hears of it all the same.
    }
    return this.#fatal;
  }

  /** Waits until everything given so far is committed, and takes nothing more. */
  async close(): Promise<void> {
    this.#closed ??= new RingneckError('the warehouse is closed');
    this.#giveRoom();
    this.#endPause();
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    // A turn of the loop for those who call in the same moment: they share the first group.
    await setImmediate();
    const findNext = () => this.#between.shift() ?? this.#nextGroup();
    for (let next = findNext(); next; next = findNext()) {
      if (typeof next === 'function') {
        await next();
        continue;
      }
      if (next === 'later') {
        await this.#pause();
        continue;
      }
      const startedAt = performance.now();
      await this.#options.store.beforeGroup?.(next.lane === 'live');
      await this.#commit(next.group);
      await this.#options.store.afterGroup(this.#bulkThrottle.isExpected());
      const tookMs = performance.now() - startedAt;
      this.#done[next.lane].groups.observe(tookMs / 1000);
      this.#done[next.lane].changes += next.group.length;
      if (next.lane === 'bulk') this.#bulkThrottle.noteBulk(tookMs);
    }
    // In the same turn in which nothing was found: a change that comes later must start a new run.
    this.#running = undefined;
  }

  /** The samples of a group while live work comes; undefined while none does. */
  get #besideLive(): number | undefined {
    return this.#bulkThrottle.isExpected() ? this.#options.store.samplesBesideLive : undefined;
  }

  /** Undefined when nothing waits; later when what waits is bulk work whose time has not come. */
  #nextGroup(): { lane: Lane; group: Waiting[] } | 'later' | undefined {
    const { live, bulk } = this.#lanes;
    if (!live.length && !bulk.length) return undefined;
    const mayBulk = bulk.length > 0 && (this.#closed !== undefined || this.#bulkThrottle.bulkWaitMs() === 0);
    if (!live.length && !mayBulk) return 'later';
    const lane = live.length && (this.#liveInARow < LIVE_GROUPS_IN_A_ROW || !mayBulk) ? 'live' : 'bulk';
    this.#liveInARow = lane === 'live' ? this.#liveInARow + 1 : 0;
    const waiting = this.#lanes[lane];
    const group = waiting.splice(0, batchSize(waiting, this.#besideLive));
    if (lane === 'bulk') {
      for (const { change } of group) this.#bulkSamples -= change.samples;
      this.#giveRoom();
    }
    return { lane, group };
  }

  #giveRoom(): void {
    for (const wanted of this.#roomWanted.splice(0)) wanted();
  }

  /** Until bulk work may go on, or something comes that goes before it. */
  #pause(): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, Math.max(1, this.#bulkThrottle.bulkWaitMs()));
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Rejects what there is no room for on the disk. */
  #withRoom(group: readonly Waiting[]): readonly Waiting[] {
    try {
      if (group.length) this.#options.beforeGroup?.();
      return group;
    } catch (error) {
      const [small, others] = [group.filter(({ change }) => change.usesReserve), group.filter(({ change }) => !change.usesReserve)];
      for (const { reject } of others) reject(asRefusal(error));
      return small;
    }
  }

  /**
   * Commits a group; what fails is tried again in halves, so that a lack of memory, or one bad change, takes no neighbour with it. A change
   * that alone lacks memory, for a document of many megabytes, gets more of it.
   */
  async #commit(waiting: readonly Waiting[]): Promise<void> {
    if (this.#fatal) {
      for (const { reject } of waiting) reject(this.#fatal);
      return;
    }
    const group = this.#withRoom(waiting.filter(passesGuard));
    if (!group.length) return;
    try {
      const changes = group.map(({ change }) => change);
      const { connection, store } = this.#options;
      const storeAll = () => storeChanges(this.#storage, changes);
      const { counts, ledger } = await (group.length === 1
        ? store.memory.enough(connection, 'what is to be stored', storeAll)
        : storeAll());
      this.#options.onCommitted?.(changes, counts, ledger);
      for (let i = 0; i < group.length; i++) group[i]!.resolve(counts[i]!);
    } catch (error) {
      if (isFatal(error) || error instanceof NotOpenedAgain) {
        const fatal = this.breakDown(error);
        for (const { reject } of group) reject(fatal);
      } else if (group.length === 1 || error instanceof RingneckError) {
        for (const { reject } of group) reject(asRefusal(error));
      } else {
        const half = group.length >> 1;
        await this.#commit(group.slice(0, half));
        await this.#commit(group.slice(half));
      }
    }
  }
}

const asRefusal = (error: unknown): RingneckError =>
  error instanceof RingneckError ? error : new RingneckError(`not stored: ${firstLine(error)}`, 1, { cause: error });

const newCount = () => ({ groups: new DurationHistogram(GROUP_TIMES), changes: 0 });

/** Rejects what must not be stored any more. */
function passesGuard({ change, reject }: Waiting): boolean {
  try {
    change.guard?.();
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}

function momentsOf({ page, heartRate }: WriteBatch): number[] {
  return [...(page ? [page.requestedAt] : []), ...(heartRate ? [heartRate.requestedAt] : [])];
}
