import { shownMessageOf } from '../../base/errors.ts';
import { withTimeout } from '../../base/timeout.ts';

/** What a check found: plain JSON. */
export interface CheckResult {
  check: string;
  state: 'ok' | 'warn' | 'fail';
  message: string;
  /** What to do about it. */
  fix: string | null;
}

export const ok = (check: string, message: string): CheckResult => ({ check, state: 'ok', message, fix: null });

export const warn = (check: string, message: string, fix: string): CheckResult => ({ check, state: 'warn', message, fix });

export const fail = (check: string, message: string, fix: string): CheckResult => ({ check, state: 'fail', message, fix });

export const SEE_SERVICE = 'see what is said of the service';

export const notTried = (check: string, silence: string, fix = SEE_SERVICE): CheckResult =>
  fail(check, `not tried: the service gives no answer (${silence})`, fix);

/** Does a check within its time; what it throws is a result too. */
export async function runCheck(check: string, ms: number, work: () => Promise<CheckResult[]>): Promise<CheckResult[]> {
  try {
    return await withTimeout(work(), ms);
  } catch (error) {
    return [fail(check, shownMessageOf(error), 'see the message; if it stays so, run again with RINGNECK_LOG_LEVEL=debug')];
  }
}
