import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

const NAMES = { queue: 'the queue', disk: 'room on the disk' };

/** What the runs wait for to pass by itself: said once in the log when it begins and when it is over, and told to who watches. */
export class Waits {
  log: Log | undefined;
  readonly #reasons = new Map<keyof typeof NAMES, string>();
  readonly #tell: (reason: string | undefined) => void;

  constructor(tell: (reason: string | undefined) => void) {
    this.#tell = tell;
  }

  /** Undefined while nothing is waited for. */
  get reason(): string | undefined {
    return this.#reasons.size ? [...this.#reasons.values()].join('; ') : undefined;
  }

  begin(what: keyof typeof NAMES, error: unknown): void {
    const isNew = !this.#reasons.has(what);
    this.#reasons.set(what, `${NAMES[what]}: ${messageOf(error)}`);
    if (isNew) this.log?.warn({ reason: messageOf(error) }, `the run waits for ${NAMES[what]} and goes on by itself`);
    this.#tell(this.reason);
  }

  end(what: keyof typeof NAMES): void {
    if (!this.#reasons.delete(what)) return;
    this.log?.info(`the run waits for ${NAMES[what]} no more`);
    this.#tell(this.reason);
  }
}
