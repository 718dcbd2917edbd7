import type { Random } from './random.ts';
import { AWAKE, EPOCH, SHORTEST } from './stages.ts';

interface About {
  userId: string;
  /** The day of the document. */
  day: string;
}

/** What somebody, or a later analysis, did to documents after they were made. Edits apply in the order of their log. */
export type Edit =
  /** A sleep is gone: nothing answers to its identifier any more. */
  | (About & { kind: 'delete-sleep'; id: string })
  /** The user confirms, rejects or deletes a sleep. */
  | (About & { kind: 'retype-sleep'; id: string; type: 'deleted' | 'sleep' | 'long_sleep' | 'late_nap' | 'rest' })
  /** The user moves bedtime or waking by so many seconds; a start moves in steps of 300, as its samples do, an end in steps of 30. */
  | (About & { kind: 'edit-bedtime'; id: string; startShift: number; endShift: number })
  /** All sleeps of a day are analysed anew. */
  | (About & { kind: 'reanalyse-day' })
  /** A nap between two moments, in seconds, that is in nobody's plans. */
  | (About & { kind: 'record-nap'; start: number; end: number });

const LONGEST_SHIFT = 3 * 3600;
const EPOCHS_IN_SAMPLE = 10;

/** How many epochs an edit adds (negative: takes away) before and after a sleep of so many, so that 15 minutes remain. */
export function shifts(
  { startShift, endShift }: { startShift: number; endShift: number },
  epochs: number,
): { before: number; after: number } {
  const within = (seconds: number, step: number) => Math.round(Math.max(-LONGEST_SHIFT, Math.min(LONGEST_SHIFT, seconds)) / step) || 0;
  const before = Math.max(
    -within(startShift, EPOCH * EPOCHS_IN_SAMPLE) * EPOCHS_IN_SAMPLE,
    -Math.floor((epochs - SHORTEST) / EPOCHS_IN_SAMPLE) * EPOCHS_IN_SAMPLE,
  );
  return { before, after: Math.max(within(endShift, EPOCH), SHORTEST - epochs - before) };
}

/** Cuts a list, or lengthens it with what `fill` gives, at both ends. */
export function reshape<T>(items: readonly T[], before: number, after: number, fill: () => T): T[] {
  const inner = items.slice(Math.max(0, -before), items.length + Math.min(0, after));
  const padding = (count: number) => Array.from({ length: Math.max(0, count) }, fill);
  return [...padding(before), ...inner, ...padding(after)];
}

/** Time that was added to a sleep was spent awake, moving now and then. */
export const addedStage = () => AWAKE;
export const addedMovement = (random: Random) => () => random.pick([1, 2, 2, 3, 4]);
