import { setTimeout } from 'node:timers/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { TryLaterError } from '../../base/errors.ts';
import type { Store } from './store.ts';

/**
 * A connection does one statement after the other, so that a quick one would wait for a long one. Each that works holds one of Node's four
 * threads: the writer needs one too.
 */
const CONNECTIONS = 3;

/** Connections that several work with at once. */
export class SharedConnections {
  readonly #store: Pick<Store, 'connect' | 'memory' | 'explain'>;
  readonly #idle: DuckDBConnection[] = [];
  /** Who waits for a connection, in turn. */
  readonly #waiting: (() => void)[] = [];
  readonly #underWay = new Set<Promise<unknown>>();
  #working = 0;
  /** While somebody has them all to himself. */
  #held: Promise<unknown> | undefined;
  #isClosed = false;

  constructor(store: Pick<Store, 'connect' | 'memory' | 'explain'>) {
    this.#store = store;
  }

  /**
   * Work that lacks memory, which the writer may have at that moment, is done again with more of it.
   * @throws TryLaterError after `close`
   */
  async use<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    while (this.#held) await this.#held;
    if (this.#isClosed) throw new TryLaterError('the warehouse is closed');
    const working = this.#useInTurn(work);
    this.#underWay.add(working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(working);
    }
  }

  async #useInTurn<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    if (this.#working < CONNECTIONS) this.#working++;
    // Whoever ends passes the place on.
    else await new Promise<void>(resolve => this.#waiting.push(resolve));
    let connection: DuckDBConnection | undefined;
    try {
      connection = this.#idle.pop() ?? (await this.#store.connect());
      const using = connection;
      return await this.#store.memory.enough(using, 'a question to the warehouse', () => work(using));
    } catch (error) {
      throw this.#store.explain?.(error) ?? error;
    } finally {
      if (connection) this.#idle.push(connection);
      const next = this.#waiting.shift();
      if (next) next();
      else this.#working--;
    }
  }

  /**
   * Does work while none of them does anything: who comes meanwhile waits.
   * @throws TryLaterError where those at work do not end within the patience
   */
  async whileIdle<T>(work: () => Promise<T>, patienceMs: number): Promise<T> {
    if (this.#held) throw new TryLaterError('somebody has the connections already');
    let release = () => {};
    this.#held = new Promise<void>(resolve => {
      release = resolve;
    });
    try {
      const waiting = new AbortController();
      const late = setTimeout(patienceMs, undefined, { signal: waiting.signal, ref: false }).catch(() => undefined);
      await Promise.race([Promise.allSettled(this.#underWay), late]);
      waiting.abort();
      if (this.#underWay.size) throw new TryLaterError('something is being read that takes its time');
      return await work();
    } finally {
      this.#held = undefined;
      release();
    }
  }

  /** Waits for what is under way. DuckDB does not bear that a connection is closed while it works: the process may hang, or end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
  }
}
