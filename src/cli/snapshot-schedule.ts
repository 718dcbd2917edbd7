import { setTimeout } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Owner } from './owner.ts';

export interface SnapshotSchedule {
  close(): Promise<void>;
}

export interface SnapshotScheduleParts {
  snapshots: {
    readonly isFresh: boolean;
    /** Brings the last one up to date. */
    refresh(): Promise<unknown>;
    /** Makes one whose rows are all sorted. */
    publish(): Promise<unknown>;
  };
  /** Whether much is being read: a backfill or the nightly run. */
  isReadingMuch(): boolean;
  log: Pick<Log, 'warn'>;
  /** Milliseconds of a clock that never goes back. */
  now?: () => number;
  /** Waits, or until the signal. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** How often it is asked whether something has changed. */
const LOOK_MS = 250;
/** What comes together is published together: several changes in a row cost one copy. */
const GATHER_MS = 500;
/** A changed document is there for readers after at most so long, where a refresh takes three seconds or less: that costs up to half of the time. */
const FRESH_WITHIN_MS = 9_000;
const QUICK_MS = 5_000;
/** Of all time, what quick ones may take as long as that holds: with more than a twentieth the writer's p95 is that beside a refresh. */
const QUICK_SHARE = 1 / 40;
/** What they may take where that does not hold: a slow one, or while much is read. */
const SHARE = 1 / 10;
/** But while little is read none waits longer than this: a slow one was one that had to be made anew. */
const LONGEST_PAUSE_MS = 60_000;
const RETRY_MS = 30_000;

/**
 * Keeps the published snapshot up to date until it is closed: changes follow within seconds, and after much was read all is sorted anew.
 * A failure is told once and tried again.
 */
export function keepSnapshots({
  snapshots,
  isReadingMuch,
  log,
  sleep,
  now = () => performance.now(),
}: SnapshotScheduleParts): SnapshotSchedule {
  const closing = new AbortController();
  const { signal } = closing;

  async function keep(): Promise<void> {
    let mustSort = false;
    let failure: string | undefined;
    for (let waitMs = LOOK_MS; !signal.aborted; ) {
      await sleep(waitMs, signal);
      waitMs = LOOK_MS;
      const isReading = isReadingMuch();
      if (isReading) mustSort = true;
      const isToSort = mustSort && !isReading;
      if (signal.aborted || (snapshots.isFresh && !isToSort)) continue;
      await sleep(GATHER_MS, signal);
      if (signal.aborted) break;
      const start = now();
      try {
        await (isToSort ? snapshots.publish() : snapshots.refresh());
        failure = undefined;
        // Sorting is done once: what comes after it is as quick as ever.
        if (isToSort) mustSort = false;
        else waitMs = pauseAfter(now() - start, isReading);
      } catch (error) {
        if (signal.aborted) break;
        const reason = messageOf(error);
        if (reason !== failure) log.warn({ reason }, 'the snapshot could not be published; the last one stays, and it is tried again');
        failure = reason;
        waitMs = RETRY_MS;
      }
    }
  }

  const kept = keep();
  return {
    close() {
      closing.abort();
      return kept;
    },
  };
}

/** Keeps what readers open up to date, for as long as the folder is owned. */
export async function keepUpToDate(owner: Owner): Promise<SnapshotSchedule> {
  const { snapshots, log } = owner;
  const { runs } = await owner.pipeline();
  snapshots.isKept = true;
  const schedule = keepSnapshots({
    snapshots,
    isReadingMuch: () => runs.active().some(({ request }) => request.kind !== 'sweep'),
    log,
    sleep: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => undefined),
  });
  return {
    close() {
      snapshots.close();
      return schedule.close();
    },
  };
}

/** How long the next one waits after one that took so long. */
export function pauseAfter(tookMs: number, isReading: boolean): number {
  const share = tookMs * (1 / SHARE - 1);
  // Two in a row, for a change may come right after the first has begun.
  const fresh = FRESH_WITHIN_MS - 2 * tookMs - GATHER_MS - LOOK_MS;
  if (isReading) return share;
  if (tookMs > QUICK_MS) return Math.min(share, LONGEST_PAUSE_MS);
  return Math.min(tookMs * (1 / QUICK_SHARE - 1), Math.max(fresh, tookMs));
}
