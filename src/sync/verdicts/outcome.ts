import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import { ServiceError, type ServiceErrorKind } from '../../client/error.ts';
import type { Outcome } from '../../ledger/windows.ts';

/** What a job does about an error. */
export type Decision =
  | { do: 'retry' }
  /** Leaves the worker and comes back, without consuming an attempt. */
  | { do: 'wait'; ms: number }
  /** The collection may not be offered: said once, that proves nothing. */
  | { do: 'confirm' }
  /** The account or the collection is not to be asked again: which of them, a probe tells. */
  | { do: 'park' }
  | { do: 'finish'; outcome: Outcome; reason: string };

/** Attempts of one window, each with the client's own retries inside. */
export const ATTEMPTS = 3;

const BY_KIND: Record<ServiceErrorKind, Decision['do'] | Outcome> = {
  unauthorized: 'park',
  forbidden: 'park',
  not_found: 'confirm',
  rate_limited: 'wait',
  unavailable: 'retry',
  malformed: 'retry',
  too_large: 'retry',
  invalid_request: 'failed',
  endless: 'failed',
  redirected: 'retry',
  stopped: 'stopped',
};

const WAIT_MS = 30_000;
/** One that asks for no time at all is not asked again in a busy loop. */
const SHORTEST_WAIT_MS = 1_000;

/**
 * Sorts an error by what to do next. A service that says for how long it is away (503) is waited for as one that sets a limit. Errors of
 * other origin (the warehouse) are retried too: what could not be stored must not be taken for read. Those that tell a person what to do
 * (a full disk, a wrong key) are not: seconds change nothing about them.
 * @param attemptsMade attempts before this one
 */
export function decide(error: unknown, attemptsMade: number): Decision {
  const known = error instanceof ServiceError ? error : undefined;
  if (known?.kind === 'unavailable' && known.retryAfterMs !== undefined) {
    return { do: 'wait', ms: Math.max(SHORTEST_WAIT_MS, known.retryAfterMs) };
  }
  const what = known ? BY_KIND[known.kind] : isForGood(error) ? 'failed' : 'retry';
  switch (what) {
    case 'wait':
      return { do: 'wait', ms: known?.retryAfterMs ?? WAIT_MS };
    case 'confirm':
    case 'park':
      return { do: what };
    case 'retry':
      if (attemptsMade + 1 < ATTEMPTS) return { do: 'retry' };
      return { do: 'finish', outcome: 'failed', reason: messageOf(error) };
    case 'finish':
      throw new Error('no kind finishes without an outcome');
    default:
      return { do: 'finish', outcome: what, reason: messageOf(error) };
  }
}

/** One with a cause passes on what failed below it (a statement, the file system): that may pass. */
const isForGood = (error: unknown) => error instanceof RingneckError && !(error instanceof TryLaterError) && error.cause === undefined;
