import type { Compacted, Size } from '../store.ts';

/** A smaller file is not worth the work. */
const SMALL_BYTES = 16 * 1024 * 1024;
/** What rows that came since take in a sorted file, each. */
const BYTES_A_ROW = 3;
/** With so much more than a file compacted now would take it is worth the work, */
const MOST = 1.05;
/** and so much never matters: DuckDB takes and gives room by the block. */
const SLACK_BYTES = 2 * 1024 * 1024;
/** What grows faster than this can be helped is not helped by doing it again and again. */
const AT_MOST_EVERY_MICROS = 20 * 3_600_000_000;

/** Whether a file is so much larger than what is in it that compacting it is worth the work. Undefined: it never was compacted. */
export function isCompactionDue({ bytes, rows }: Size, last: Compacted | undefined, nowMicros: number): boolean {
  if (bytes < SMALL_BYTES) return false;
  if (!last) return true;
  // A clock that was set back must not put it off for years.
  if (Math.abs(nowMicros - last.at) < AT_MOST_EVERY_MICROS) return false;
  const expected = last.bytes * Math.min(1, rows / Math.max(1, last.rows)) + Math.max(0, rows - last.rows) * BYTES_A_ROW;
  return bytes > expected * MOST + SLACK_BYTES;
}
