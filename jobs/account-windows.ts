import type { PlannedWindow } from './windows.ts';

/** A window that has no outcome yet. */
export interface OpenWindow extends PlannedWindow {
  /** Attempts that have failed. */
  attemptsMade: number;
  /** Not to be begun before, by a clock that nobody sets. */
  dueAt: number;
}

const open = (window: PlannedWindow): OpenWindow => ({ ...window, attemptsMade: 0, dueAt: 0 });

/** The windows of one account that have no outcome in a run, and which of them may be begun. */
export class AccountWindows {
  /** The number of its job. */
  number: number;
  readonly #mostAtOnce: number;
  readonly #inHand = new Set<OpenWindow>();
  #waiting: OpenWindow[];
  /** Those that need what the others bring: begun when these are settled. */
  #later: readonly PlannedWindow[];
  #isSlow = false;

  constructor(number: number, [first, later]: readonly [PlannedWindow[], PlannedWindow[]], mostAtOnce: number) {
    this.number = number;
    this.#mostAtOnce = mostAtOnce;
    this.#waiting = (first.length ? first : later).map(open);
    this.#later = first.length ? later : [];
  }

  get inHand(): number {
    return this.#inHand.size;
  }

  /** How many are put off. */
  get putAside(): number {
    return this.#waiting.length - this.#findDue().length;
  }

  /** Whether all have their outcome. */
  get isDone(): boolean {
    return !this.#inHand.size && !this.#waiting.length;
  }

  /** Whether this one is worked on and has no outcome. */
  has(window: OpenWindow): boolean {
    return this.#inHand.has(window);
  }

  /** Whether there is one to be begun, besides so many that somebody is about to take. */
  hasNext(others = 0): boolean {
    return this.#inHand.size + others < this.#places && this.#findDue().length > others;
  }

  /** Takes the next one in hand. */
  take(): OpenWindow | undefined {
    if (!this.hasNext()) return undefined;
    const [next] = this.#findDue();
    this.#waiting.splice(this.#waiting.indexOf(next!), 1);
    this.#inHand.add(next!);
    return next;
  }

  /** How long until the next of those that are put off is due; undefined where none is. */
  findWait(): number | undefined {
    const now = performance.now();
    const waits = this.#waiting.map(({ dueAt }) => dueAt - now).filter(ms => ms > 0);
    return waits.length ? Math.min(...waits) : undefined;
  }

  /** The same while nothing is worked on and nothing could be begun. */
  findIdleWait(): number | undefined {
    return this.#inHand.size || this.#findDue().length ? undefined : this.findWait();
  }

  putOff(window: OpenWindow, ms: number): void {
    if (this.#inHand.delete(window)) this.#waiting.unshift(Object.assign(window, { dueAt: performance.now() + ms }));
  }

  /** After a long wait for a limit they go one at a time: together they would use up the next allowance without any of them coming to its end. */
  slowDown(): void {
    this.#isSlow = true;
  }

  close(window: OpenWindow): void {
    this.#inHand.delete(window);
    if (!this.isDone) return;
    this.#waiting = this.#later.map(open);
    this.#later = [];
  }

  /** Parts of a window come in its place, before all that waits. */
  replace(window: OpenWindow, parts: readonly PlannedWindow[]): void {
    this.#inHand.delete(window);
    this.#waiting.unshift(...parts.map(open));
  }

  get #places(): number {
    return this.#isSlow ? 1 : this.#mostAtOnce;
  }

  #findDue(): OpenWindow[] {
    const now = performance.now();
    return this.#waiting.filter(({ dueAt }) => dueAt <= now);
  }
}
