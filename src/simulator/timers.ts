/** Timers as tests may replace them. */
export interface Timers {
  set(run: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

export const realTimers: Timers = {
  set: (run, ms) => setTimeout(run, ms),
  clear: timer => clearTimeout(timer as NodeJS.Timeout | undefined),
};
