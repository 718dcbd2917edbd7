import type { Value } from '../sql.ts';

/**
 * Small readings, kept in memory until a commit touches what they are of: most ask again and again for what rarely is there. A thing is a
 * table of the ledger, or a part of one that has a name of its own.
 */
export class KeptReadings {
  readonly #versions = new Map<string, number>();
  readonly #kept = new Map<string, { version: number; rows: Promise<readonly Value[][]> }>();

  /** Grows with each commit that touches the thing. */
  versionOf(thing: string): number {
    return this.#versions.get(thing) ?? 0;
  }

  /** To be called once a transaction has ended, whatever became of it, and before anybody is told of it. */
  touch(things: Iterable<string>): void {
    for (const thing of things) this.#versions.set(thing, this.versionOf(thing) + 1);
  }

  /** Others may have committed to anything. */
  forget(): void {
    this.#kept.clear();
  }

  /** @param sql one of few texts: each one's rows are kept */
  async read(thing: string, sql: string, read: (sql: string) => Promise<Value[][]>): Promise<readonly Value[][]> {
    const version = this.versionOf(thing);
    const known = this.#kept.get(sql);
    if (known?.version === version) return known.rows;
    const kept = { version, rows: read(sql) };
    this.#kept.set(sql, kept);
    try {
      return await kept.rows;
    } catch (error) {
      if (this.#kept.get(sql) === kept) this.#kept.delete(sql);
      throw error;
    }
  }
}
