import { isVerdict, ServiceError } from '../src/client/error.ts';
import { ask, firstPages } from './first-pages.ts';
import type { Pipeline } from './pipeline.ts';
import type { PlannedWindow } from './windows.ts';

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

/** Whether anything of a person is offered at this address. Rejects where no clear answer comes. */
export async function offersAnything(pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'now'>, token: string): Promise<boolean> {
  for (const read of firstPages(pipeline, token).values()) {
    try {
      await ask(read);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.kind === 'not_found') continue;
      if (error instanceof ServiceError && isVerdict(error)) return true;
      throw error;
    }
  }
  return false;
}

/** What is asked where nothing of an account is offered. */
export function askForAddress(address: string, userId: string): string {
  const hint = /\/v2$/.test(address) ? ' Ringneck adds /v2 itself' : '';
  return `${address} offers nothing of ${userId}, all of it is 404: is RINGNECK_SERVICE_URL right?${hint}`;
}
