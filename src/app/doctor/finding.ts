import { shownMessageOf } from '../../base/errors.ts';
import { withinTime } from '../../base/timeout.ts';

/** What a check found: plain JSON. */
export interface Finding {
  check: string;
  state: 'ok' | 'warn' | 'fail';
  message: string;
  /** What to do about it. */
  mend: string | null;
}

export const ok = (check: string, message: string): Finding => ({ check, state: 'ok', message, mend: null });

export const warn = (check: string, message: string, mend: string): Finding => ({ check, state: 'warn', message, mend });

export const fail = (check: string, message: string, mend: string): Finding => ({ check, state: 'fail', message, mend });

export const SEE_SERVICE = 'see what is said of the service';

export const notTried = (check: string, silence: string, mend = SEE_SERVICE): Finding =>
  fail(check, `not tried: the service gives no answer (${silence})`, mend);

/** Does a check within its time; what it throws is a finding too. */
export async function examined(check: string, ms: number, work: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await withinTime(work(), ms);
  } catch (error) {
    return [fail(check, shownMessageOf(error), 'see the message; if it stays so, run again with RINGNECK_LOG_LEVEL=debug')];
  }
}
