import type { PlannedWindow } from '../../ledger/windows.ts';

/** The 404s of one run: said once, that may be a mistake, of the service or of something on the way. */
export class NotFounds {
  readonly #firstAt = new Map<string, number>();
  #offers: Promise<boolean> | undefined;

  /** How long until a 404 counts as the second one; 0 where this one does. */
  note({ userId, collection }: Pick<PlannedWindow, 'userId' | 'collection'>, apartMs: number): number {
    const key = `${userId}\n${collection}`;
    const now = performance.now();
    const first = this.#firstAt.get(key);
    if (first !== undefined) return Math.max(0, first + apartMs - now);
    this.#firstAt.set(key, now);
    return apartMs;
  }

  /** Whether the service offers anything, asked once at a time. */
  askOffers(ask: () => Promise<boolean>): Promise<boolean> {
    this.#offers ??= ask().finally(() => {
      this.#offers = undefined;
    });
    return this.#offers;
  }
}
