import type { DuckDBConnection } from '@duckdb/node-api';
import { RingneckError } from '../errors.ts';

/** A connection that several work with at once. */
export class SharedConnection {
  readonly #connection: DuckDBConnection;
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(connection: DuckDBConnection) {
    this.#connection = connection;
  }

  /** @throws RingneckError after `close` */
  async use<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new RingneckError('the warehouse is closed');
    const working = work(this.#connection);
    this.#underWay.add(working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(working);
    }
  }

  /** Waits for what is under way. DuckDB does not bear that a connection is closed while it works: the process may hang, or end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
  }
}
