import { DurationHistogram, type Durations } from '../base/duration-histogram.ts';
import { EVENT_OUTCOMES, type EventOutcome } from '../ledger/events.ts';
import type { EventLine } from '../sync/events/advance-event.ts';

const KEPT = 100;

/** From a document that is there at once to one that the service gives out hours later. */
const LAGS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 21_600];
/** Of the others it says nothing how long they took: they wait for somebody. */
const WORKED_OFF: ReadonlySet<string> = new Set<EventOutcome>(['stored', 'unchanged', 'removed']);

/** What became of the last events that this process has worked off, for who looks on. */
export class RecentEvents {
  readonly #lines: EventLine[] = [];
  readonly #outcomes = new Map<string, number>(EVENT_OUTCOMES.map(outcome => [outcome, 0]));
  readonly #lags = new DurationHistogram(LAGS);
  #count = 0;

  add(line: EventLine): void {
    this.#count++;
    this.#outcomes.set(line.outcome, (this.#outcomes.get(line.outcome) ?? 0) + 1);
    if (WORKED_OFF.has(line.outcome)) this.#lags.observe(line.ms / 1000);
    if (this.#lines.push(line) > KEPT) this.#lines.shift();
  }

  /** Those after so many, as far as they are kept. @param after how many there were when it was asked last; undefined: none of them */
  since(after: number | undefined): { count: number; events: EventLine[] } {
    const fresh = after === undefined ? 0 : Math.min(this.#lines.length, Math.max(0, this.#count - after));
    return { count: this.#count, events: fresh ? this.#lines.slice(-fresh) : [] };
  }

  /** All of them, by outcome, and how long those took that were worked off. */
  measured(): { outcomes: Record<string, number>; lag: Durations } {
    return { outcomes: Object.fromEntries(this.#outcomes), lag: this.#lags.read() };
  }
}
