import type { Log } from '../base/log.ts';

/** Why a request for the webhook is refused, and what it is answered. */
export const STATUS = {
  bad_token: 401,
  bad_challenge: 400,
  missing_header: 401,
  doubled_header: 401,
  bad_timestamp: 401,
  too_old: 401,
  too_new: 401,
  bad_signature: 401,
  not_json: 400,
  wrong_fields: 400,
  unknown_event_type: 400,
  bad_request: 400,
  wrong_method: 405,
  too_large: 413,
  gone: 410,
  unavailable: 503,
} as const;
export type Reason = keyof typeof STATUS;

const LINE_EVERY_MS = 60_000;

/** Counts what was refused. A line for each reason, once a minute at most: whoever knows the address must not fill the log. */
export class Refusals {
  readonly #counts = new Map<Reason, number>();
  readonly #lines = new Map<Reason, { at: number; untold: number }>();
  readonly #log: Log;
  readonly #now: () => number;

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** `because` comes from us, never from the request. */
  add(reason: Reason, because?: string): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    const line = this.#lines.get(reason) ?? { at: Number.NEGATIVE_INFINITY, untold: 0 };
    this.#lines.set(reason, line);
    line.untold += 1;
    if (Math.abs(this.#now() - line.at) >= LINE_EVERY_MS) this.#tell(reason, line, because);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  /** Says what no line has said yet. */
  tellRest(): void {
    for (const [reason, line] of this.#lines) if (line.untold > 0) this.#tell(reason, line);
  }

  #tell(reason: Reason, line: { at: number; untold: number }, because?: string): void {
    this.#log.warn({ reason, count: line.untold, ...(because === undefined ? {} : { because }) }, 'requests for the webhook are refused');
    line.at = this.#now();
    line.untold = 0;
  }
}
