import type { EventLine } from '../sync/events/advance-event.ts';

const KEPT = 100;

/** What became of the last events that this process has worked off, for who looks on. */
export class RecentEvents {
  readonly #lines: EventLine[] = [];
  #count = 0;

  add(line: EventLine): void {
    this.#count++;
    if (this.#lines.push(line) > KEPT) this.#lines.shift();
  }

  /** Those after so many, as far as they are kept. @param after how many there were when it was asked last; undefined: none of them */
  since(after: number | undefined): { count: number; events: EventLine[] } {
    const fresh = after === undefined ? 0 : Math.min(this.#lines.length, Math.max(0, this.#count - after));
    return { count: this.#count, events: fresh ? this.#lines.slice(-fresh) : [] };
  }
}
