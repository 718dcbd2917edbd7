import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { diskReserveBytes, ensureDiskReserve } from '../../base/disk.ts';
import { kindOf, RingneckError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { App } from '../app.ts';

export interface CompactionSchedule {
  close(): Promise<void>;
}

interface ScheduleParts {
  warehouse: Pick<Warehouse, 'path' | 'commits' | 'size' | 'compact'>;
  /** Whether a run is under way. */
  isReading(): boolean;
  log: Pick<Log, 'info' | 'warn'>;
  /** Throws where the disk has less than so many bytes to spare. */
  ensureRoom?(path: string, bytes: number): void;
  /** Waits, or until the signal. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** What sorting may write to the disk for a row beside the new file, at the most: of a table larger than memory nearly all. */
const SPILLED_BYTES = 30;
const LOOK_MS = 600_000;
/** So often it is put off for something that was stored since the last look; then it is done beside that. */
const LOOKS_PUT_OFF = 144;
/** After one that failed: it has cost as much as one that did not. */
const LOOKS_AFTER_FAILURE = 36;

/**
 * Compacts the file of the warehouse when it has grown beyond what is in it, until closed: while no run is under way, and, within a day, while
 * nothing is stored. A failure is told once and tried again.
 */
export function keepCompact({ warehouse, isReading, log, sleep, ensureRoom = ensureFree }: ScheduleParts): CompactionSchedule {
  const closing = new AbortController();
  const { signal } = closing;

  async function keep(): Promise<void> {
    let failure: string | undefined;
    let putOff = 0;
    let resting = 0;
    for (;;) {
      const seen = warehouse.commits;
      await sleep(LOOK_MS, signal);
      if (signal.aborted) break;
      try {
        if (resting-- > 0 || isReading()) continue;
        const size = await warehouse.size();
        if (!size.isDue) putOff = 0;
        if (!size.isDue || (seen !== warehouse.commits && putOff++ < LOOKS_PUT_OFF)) continue;
        putOff = 0;
        ensureRoom(warehouse.path, size.bytes + size.rows * SPILLED_BYTES);
        const start = performance.now();
        resting = LOOKS_AFTER_FAILURE;
        const { bytes } = await warehouse.compact(signal);
        resting = 0;
        log.info({ before: size.bytes, bytes, seconds: Math.round((performance.now() - start) / 1000) }, 'the warehouse was compacted');
        failure = undefined;
      } catch (error) {
        if (signal.aborted) break;
        const reason = error instanceof RingneckError ? error.message : kindOf(error);
        if (reason !== failure) log.warn({ reason }, 'the warehouse could not be compacted; it stays as it is, and it is tried again');
        failure = reason;
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

/** On the disk of the file itself, where the path is a link. */
const ensureFree = (path: string, bytes: number) => ensureDiskReserve(dirname(realpathSync(path)), diskReserveBytes + bytes);

/** Keeps the file of the warehouse small, for as long as the folder is owned. */
export async function keepFileCompact(app: App, sleep = usualSleep): Promise<CompactionSchedule> {
  const { warehouse, log } = app;
  const { runs } = await app.pipeline();
  return keepCompact({
    warehouse,
    isReading: () => runs.active().length > 0,
    log,
    sleep,
    // A lake is put in order where it lies.
    ...(app.settings.warehouse ? { ensureRoom: () => undefined } : {}),
  });
}

const usualSleep = (ms: number, signal: AbortSignal): Promise<void> => setTimeout(ms, undefined, { signal }).catch(() => undefined);
