import type { PlannedWindow } from '../../ledger/windows.ts';

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
  /** Those that nobody has begun, each of which may be. */
  #planned: PlannedWindow[];
  /** Those that were put off, and parts of others: they come before what nobody has begun. */
  #begun: OpenWindow[] = [];
  /** Those that need what the others bring: begun when these have their outcome. */
  #later: PlannedWindow[];
  #isSlow = false;

  constructor(number: number, [first, later]: readonly [PlannedWindow[], PlannedWindow[]], mostAtOnce: number) {
    this.number = number;
    this.#mostAtOnce = mostAtOnce;
    this.#planned = first.length ? first : later;
    this.#later = first.length ? later : [];
  }

  get inHand(): number {
    return this.#inHand.size;
  }

  /** How many are put off. */
  get putAside(): number {
    return this.#begun.length - this.#findDue().length;
  }

  /** Whether all have their outcome. */
  get isDone(): boolean {
    return !this.#inHand.size && !this.#begun.length && !this.#planned.length;
  }

  /** Whether this one is worked on and has no outcome. */
  has(window: OpenWindow): boolean {
    return this.#inHand.has(window);
  }

  /** Whether there is one to be begun, besides so many that somebody is about to take. */
  hasNext(others = 0): boolean {
    return this.#inHand.size + others < this.#places && this.#countDue() > others;
  }

  /** Takes the next one in hand. */
  take(): OpenWindow | undefined {
    if (!this.hasNext()) return undefined;
    const [due] = this.#findDue();
    const planned = due ? undefined : this.#planned.shift();
    const next = due ?? (planned && open(planned));
    if (due) this.#begun.splice(this.#begun.indexOf(due), 1);
    if (next) this.#inHand.add(next);
    return next;
  }

  /** How long until the next of those that are put off is due; undefined where none is. */
  findWait(): number | undefined {
    const now = performance.now();
    const waits = this.#begun.map(({ dueAt }) => dueAt - now).filter(ms => ms > 0);
    return waits.length ? Math.min(...waits) : undefined;
  }

  /** The same while nothing is worked on and nothing could be begun. */
  findIdleWait(): number | undefined {
    return this.#inHand.size || this.#countDue() ? undefined : this.findWait();
  }

  putOff(window: OpenWindow, ms: number): void {
    if (this.#inHand.delete(window)) this.#begun.unshift(Object.assign(window, { dueAt: performance.now() + ms }));
  }

  /** After a long wait for a limit they go one at a time: together they would use up the next allowance without any of them coming to its end. */
  slowDown(): void {
    this.#isSlow = true;
  }

  close(window: OpenWindow): void {
    this.#inHand.delete(window);
    if (!this.isDone) return;
    this.#planned = this.#later;
    this.#later = [];
  }

  /** Parts of a window come in its place, before all that waits. */
  replace(window: OpenWindow, parts: readonly PlannedWindow[]): void {
    this.#inHand.delete(window);
    this.#begun.unshift(...parts.map(open));
  }

  get #places(): number {
    return this.#isSlow ? 1 : this.#mostAtOnce;
  }

  #countDue(): number {
    return this.#findDue().length + this.#planned.length;
  }

  #findDue(): OpenWindow[] {
    const now = performance.now();
    return this.#begun.filter(({ dueAt }) => dueAt <= now);
  }
}
