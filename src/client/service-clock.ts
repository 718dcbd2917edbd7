/** How long a service's clock that is not ours is believed without a new answer: it may stand still, or run fast. */
export const BELIEVED_MS = 5_000;
/** Clocks this near are the same clock, set a little differently. */
const SAME_MS = 60_000;

/** Clocks this near are of one time, and one of them is wrong: a service that is further away lives in another. As sync.over_at has it. */
const ONE_TIME_MS = 31 * 86_400_000;

/** No service lives further away, and there are no days of the interface near the year 10000. */
const FURTHEST_MS = 100 * 365.25 * 86_400_000;

/** Whether a clock that is so far from ours is of one time with it. */
export const isOneTime = (aheadMs: number): boolean => Math.abs(aheadMs) <= ONE_TIME_MS;

/**
 * What time it is at the service, as the `Date` of its own answers shows: which days are over there, and what can have been measured. Never
 * used for the order of anything.
 */
export interface ServiceClock {
  /** In milliseconds; ours where no answer has told. */
  now(): number;
  /** How far it is ahead of ours, in milliseconds; undefined where no answer has told. */
  readonly aheadMs: number | undefined;
  /** Whether to ask before relying on it: nothing was asked yet, one answer is doubted, or the last is too old for a clock that is not ours. */
  isStale(): boolean;
  /**
   * An answer shows this date, or none; it was made at some moment between these of ours. All in milliseconds. A date of another time is
   * believed when a second answer agrees, some seconds later where anything was known; after an answer without one it is given up for ours.
   */
  note(dateMs: number | undefined, between: { sentMs: number; receivedMs: number }): void;
}

/**
 * @param now our own time of day, in milliseconds
 * @param known how far it was ahead when it was last heard of
 * @param onLearned called when an answer has told otherwise
 */
export function createServiceClock(now: () => number, known?: number, onLearned: (aheadMs: number) => void = () => {}): ServiceClock {
  let aheadMs = Math.abs(known ?? 0) > FURTHEST_MS ? undefined : known;
  /** What a single answer showed, of another time than what is known. */
  let doubted: { aheadMs: number; receivedMs: number } | undefined;
  const learn = (ms: number) => {
    doubted = undefined;
    if (ms === aheadMs) return;
    aheadMs = ms;
    onLearned(ms);
  };
  let isHeard = false;
  let lastSentMs = Number.NEGATIVE_INFINITY;
  let lastReceivedMs = Number.NEGATIVE_INFINITY;

  function isSecond(nextMs: number, sentMs: number, receivedMs: number): boolean {
    if (doubted && isOneTime(nextMs - doubted.aheadMs)) return aheadMs === undefined || sentMs - doubted.receivedMs >= BELIEVED_MS;
    doubted = { aheadMs: nextMs, receivedMs };
    return false;
  }

  return {
    now: () => now() + (aheadMs ?? 0),
    get aheadMs() {
      return aheadMs;
    },
    isStale: () =>
      !isHeard || doubted !== undefined || (Math.abs(aheadMs ?? 0) > SAME_MS && Math.abs(now() - lastReceivedMs) > BELIEVED_MS),
    note(shownMs, { sentMs, receivedMs }) {
      const dateMs = Math.abs((shownMs ?? receivedMs) - receivedMs) > FURTHEST_MS ? undefined : shownMs;
      // Answers overtake each other; a clock of ours that was set back begins anew.
      if (dateMs !== undefined && sentMs < lastSentMs && receivedMs >= lastSentMs) return;
      isHeard = true;
      if (dateMs === undefined) {
        doubted = undefined;
        if (!isOneTime(aheadMs ?? 0)) learn(0);
        return;
      }
      lastSentMs = sentMs;
      lastReceivedMs = receivedMs;
      const before = aheadMs ?? 0;
      // The date is cut to whole seconds. What fits stays as it was, or every answer would move it a little.
      const least = dateMs - receivedMs;
      const next = before >= least && before <= dateMs + 1_000 - sentMs ? before : least;
      if (isOneTime(next - before) || isSecond(next, sentMs, receivedMs)) learn(next);
    },
  };
}
