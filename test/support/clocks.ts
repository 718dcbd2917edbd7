import { afterEach, beforeEach, vi } from 'vitest';

/**
 * Has the clock of everybody begin at a moment for each test; timers are real.
 * @returns has time go by, on it and on the clock that nobody sets
 */
export function useClocks(startMs: number): (seconds: number) => void {
  const steady = performance.now.bind(performance);
  let aheadMs = 0;
  beforeEach(() => {
    aheadMs = 0;
    vi.useFakeTimers({ toFake: ['Date'], now: startMs });
    vi.spyOn(performance, 'now').mockImplementation(() => steady() + aheadMs);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });
  return seconds => {
    aheadMs += seconds * 1000;
    vi.setSystemTime(Date.now() + seconds * 1000);
  };
}
