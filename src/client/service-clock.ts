/** How long a service's clock that runs otherwise than ours is believed without a new answer. */
const BELIEVED_MS = 5_000;
/** Less than this is the way of an answer, or a clock that is being set right. */
const DRIFT_MS = 2_000;

/** How far a service's clock is ahead of ours, and whether it runs otherwise. */
export interface ServiceTime {
  aheadMs: number;
  /** It was seen to move against ours. */
  drifts: boolean;
}

/**
 * What time it is at the service, as the `Date` of its own answers shows: which days are over there, and what can have been measured. Never
 * used for the order of anything.
 */
export interface ServiceClock {
  /** In milliseconds. Ours where no answer has told yet; never more than the answers show. */
  now(): number;
  /** How far it is ahead of ours, in milliseconds; 0 where no answer has told yet. */
  readonly aheadMs: number;
  /** Whether to ask before relying on it: nothing is known yet, or what is known is too old for a clock that runs otherwise than ours. */
  isStale(): boolean;
  /** An answer shows this date; it was made at some moment between these of ours. All in milliseconds. */
  note(dateMs: number, between: { sentMs: number; receivedMs: number }): void;
}

/**
 * @param now our own time of day, in milliseconds
 * @param known what an earlier process has learned
 * @param onLearned called when an answer has told something new
 */
export function createServiceClock(
  now: () => number,
  known?: ServiceTime,
  onLearned: (time: ServiceTime) => void = () => {},
): ServiceClock {
  let { aheadMs, drifts } = known ?? { aheadMs: 0, drifts: false };
  let isKnown = known !== undefined;
  let lastSentMs = Number.NEGATIVE_INFINITY;
  let heardMs = Number.NEGATIVE_INFINITY;
  return {
    now: () => now() + aheadMs,
    get aheadMs() {
      return aheadMs;
    },
    isStale: () => !isKnown || (drifts && Math.abs(now() - heardMs) > BELIEVED_MS),
    note(dateMs, { sentMs, receivedMs }) {
      // Answers overtake each other; a clock of ours that was set back begins anew.
      if (sentMs < lastSentMs && receivedMs >= lastSentMs) return;
      const isLater = Math.abs(receivedMs - heardMs) > BELIEVED_MS;
      lastSentMs = sentMs;
      heardMs = receivedMs;
      // The date is cut to whole seconds.
      const least = dateMs - receivedMs;
      const most = Math.max(least, dateMs + 1_000 - sentMs);
      const next = Math.min(Math.max(aheadMs, least), most);
      const before = { aheadMs, drifts };
      if (isKnown && Math.abs(next - aheadMs) > DRIFT_MS) drifts = true;
      else if (isLater && next === aheadMs) drifts = false;
      if (isKnown && next === before.aheadMs && drifts === before.drifts) return;
      aheadMs = next;
      isKnown = true;
      onLearned({ aheadMs, drifts });
    },
  };
}
