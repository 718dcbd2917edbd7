import type { HeartRateSpan } from './withdraw-heart-rate.ts';

/** How many are remembered: what was compared earlier is compared again. */
const MOST = 1_000;

/** Which heart rate was changed last: what was compared with the stored rows before, and was not touched since, holds when it is stored. */
export class HeartRateChanges {
  readonly #last: HeartRateSpan[] = [];
  #count = 0;

  /** To be asked for before the stored rows are read. */
  get version(): number {
    return this.#count;
  }

  /** To be called once a transaction has ended, whatever became of it. */
  note(spans: Iterable<HeartRateSpan>): void {
    for (const { userId, from, to } of spans) {
      this.#count++;
      this.#last.push({ userId, from, to });
    }
    this.#last.splice(0, this.#last.length - MOST);
  }

  isUnchanged(version: number, span: HeartRateSpan): boolean {
    const since = this.#count - version;
    return since <= this.#last.length && !overlaps(this.#last.slice(this.#last.length - since), span);
  }
}

export const overlaps = (spans: readonly HeartRateSpan[], { userId, from, to }: HeartRateSpan) =>
  spans.some(span => span.userId === userId && span.from < to && span.to > from);
