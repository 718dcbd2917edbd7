import { setTimeout } from 'node:timers/promises';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { App } from '../app.ts';

export interface SnapshotSchedule {
  close(): Promise<void>;
}

export interface SnapshotScheduleParts {
  snapshots: {
    readonly isFresh: boolean;
    /** Brings the last one up to date; where that means to make it anew, only if it may. */
    refresh(mayRebuild: boolean): Promise<unknown>;
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
/**
 * Of all time, what refreshes may take, where they can be that rare: they need both cores, and with more than a twentieth the p95 of live
 * work is that beside a refresh.
 */
const SHARE = 1 / 40;
/** But while little is read no change waits longer than this for a slow one: it was slow because it had to be made anew. */
const LONGEST_PAUSE_MS = 60_000;
/** Of all time while much is read, what making it anew may take: all is sorted when that is over. */
const REBUILD_SHARE = 1 / 100;
/** And so old it may be meanwhile. */
export const LONGEST_STALE_MS = 600_000;
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
    const next = { refresh: Number.NEGATIVE_INFINITY, rebuild: Number.NEGATIVE_INFINITY, sort: Number.NEGATIVE_INFINITY };
    for (;;) {
      await sleep(LOOK_MS, signal);
      if (signal.aborted) break;
      const isReading = isReadingMuch();
      if (isReading) mustSort = true;
      const isToSort = mustSort && !isReading;
      if (isToSort ? now() < next.sort : snapshots.isFresh || now() < next.refresh) continue;
      await sleep(GATHER_MS, signal);
      if (signal.aborted) break;
      const start = now();
      try {
        if (isToSort) {
          await snapshots.publish();
          // Once: what comes after it is as quick as ever.
          mustSort = false;
          next.refresh = Number.NEGATIVE_INFINITY;
        } else {
          const mayRebuild = !isReading || start >= next.rebuild;
          await snapshots.refresh(mayRebuild);
          const tookMs = now() - start;
          next.refresh = now() + pauseAfter(tookMs, isReading);
          if (mayRebuild) next.rebuild = now() + Math.min(tookMs * (1 / REBUILD_SHARE - 1), LONGEST_STALE_MS);
        }
        failure = undefined;
      } catch (error) {
        if (signal.aborted) break;
        const reason = messageOf(error);
        if (reason !== failure) log.warn({ reason }, 'the snapshot could not be published; the last one stays, and it is tried again');
        failure = reason;
        next.refresh = now() + RETRY_MS;
        next.sort = next.refresh;
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
export async function keepUpToDate(app: App): Promise<SnapshotSchedule> {
  const { snapshots, log } = app;
  const { runs } = await app.pipeline();
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
  if (isReading) return share;
  if (tookMs > QUICK_MS) return Math.min(share, LONGEST_PAUSE_MS);
  // Two in a row, for a change may come right after the first has begun.
  const fresh = FRESH_WITHIN_MS - 2 * tookMs - GATHER_MS - LOOK_MS;
  return Math.min(share, Math.max(fresh, tookMs));
}
