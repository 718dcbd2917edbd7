import { readRunSpans } from '../../ledger/window-rows.ts';
import type { PlannedWindow } from '../../ledger/windows.ts';
import { countStored } from '../../warehouse/stored-documents.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';

/** More than these many rows, and more than this share of what is stored, are not removed unless somebody says so. */
const MOST_REMOVED = 10;
const MOST_REMOVED_SHARE = 1 / 5;

export const isTooMany = (count: number, stored: number): boolean => count > MOST_REMOVED && count > stored * MOST_REMOVED_SHARE;

export const ACCEPT = 'nothing was removed: if they are gone, backfill --refresh --accept-deletions removes them';

/** The same for every window, so that many of them are one failure. */
export const TOO_MANY_IN_RUN = `with these more than ${MOST_REMOVED} and more than a fifth of what is stored would leave in one run; ${ACCEPT}`;

type Place = Pick<PlannedWindow, 'userId' | 'collection'>;

const keyOf = ({ userId, collection }: Place) => `${userId}\n${collection}`;

/**
 * Counts what one run takes away of each collection of an account: a service that has lost most of what it had may lack little in each
 * window. What earlier parts of the run have removed is in the ledger.
 */
export class DeletionBrake {
  readonly #counts = new Map<string, number>();

  /** @param removed by the windows of the run that are complete */
  constructor(removed: Iterable<Place & { count: number }> = []) {
    for (const { count, ...place } of removed) this.add(place, count);
  }

  add(place: Place, count: number): number {
    const sum = (this.#counts.get(keyOf(place)) ?? 0) + count;
    this.#counts.set(keyOf(place), sum);
    return sum;
  }

  /** What one attempt at a window may remove. */
  share(warehouse: Pick<Warehouse, 'read'>, window: PlannedWindow): DeletionShare {
    return new DeletionShare(this, warehouse, window);
  }
}

export class DeletionShare {
  readonly #brake: DeletionBrake;
  readonly #warehouse: Pick<Warehouse, 'read'>;
  readonly #window: PlannedWindow;
  #taken = 0;

  constructor(brake: DeletionBrake, warehouse: Pick<Warehouse, 'read'>, window: PlannedWindow) {
    this.#brake = brake;
    this.#warehouse = warehouse;
    this.#window = window;
  }

  /**
   * Takes so many out of what the run may remove, instead of what was taken before; false, and then none are taken, when that is more
   * than it may. At once: windows that are read side by side must not take the same.
   * @param column of the table, the one that tells to which window a row belongs; undefined where all do
   */
  async take(count: number, column: string | undefined): Promise<boolean> {
    const inRun = this.#set(count);
    if (count === 0 || inRun <= MOST_REMOVED || !isTooMany(inRun, await this.#countStored(column))) return true;
    this.giveBack();
    return false;
  }

  /** Fewer are removed than were taken. */
  keep(count: number): void {
    this.#set(Math.min(count, this.#taken));
  }

  giveBack(): void {
    this.#set(0);
  }

  #set(count: number): number {
    const sum = this.#brake.add(this.#window, count - this.#taken);
    this.#taken = count;
    return sum;
  }

  /** What is stored in all windows of the run, with what it has removed of them. */
  async #countStored(column: string | undefined): Promise<number> {
    const { userId, collection } = this.#window;
    const { spans, removed } = await readRunSpans(this.#warehouse, this.#window);
    return (await countStored(this.#warehouse, collection, userId, { column, spans })) + removed;
  }
}
