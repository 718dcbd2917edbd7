import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import type { PgPool, PgPoolClient } from 'bullmq';
import { DiskFull } from '../base/disk.ts';
import { type Answer, Session, send } from './session.ts';
import { vacuum } from './vacuum.ts';

const vacuumAfter = 4_000;
const failureDelayMs = 300;
const fullMs = 1_000;
/** What PostgreSQL calls a disk that is full. */
const diskFull = '53100';
/** The queries that take jobs in. */
const addition = /\badd_jobs?(_bulk)?\s*\(/;

/**
 * PGlite in the shape of a `pg.Pool`, as much of it as BullMQ uses. One statement at a time: those that take jobs in and all others take
 * turns, each in the order they came, so that neither a flood of jobs nor a hundred busy workers keep the other from their turn. While the
 * disk is full the others are sent again. BullMQ's queries are functions that are transactions in themselves; it opens none (only its
 * migrations do, and those run before this exists).
 */
export class Pool extends EventEmitter implements PgPool {
  readonly #database: PGlite;
  readonly #sessions = new Set<Session>();
  readonly #additions: (() => Promise<void>)[] = [];
  readonly #others: (() => Promise<void>)[] = [];
  readonly #fullMs: number;
  readonly #ensureRoom: () => void;
  #tookAddition = false;
  #working: Promise<void> | undefined;
  #queries = 0;
  #closing = false;
  #ended = false;

  /**
   * @param options.fullMs how long a full disk is left alone
   * @param options.ensureRoom called before each statement; throws DiskFull
   */
  constructor(database: PGlite, options: { fullMs?: number; ensureRoom?: () => void } = {}) {
    super();
    this.#fullMs = options.fullMs ?? fullMs;
    this.#ensureRoom = options.ensureRoom ?? (() => undefined);
    // Each queue and worker listens; Node would warn of a leak at the eleventh.
    this.setMaxListeners(0);
    this.#database = database;
  }

  query(text: string, parameters?: readonly unknown[]): Promise<Answer> {
    const answer = this.#inTurn(text, parameters);
    this.#queries += 1;
    // A failure shows up at whoever comes next; here nobody waits for it.
    if (this.#queries % vacuumAfter === 0) for (const statement of vacuum) this.#inTurn(statement).catch(() => undefined);
    return answer.catch(async error => {
      const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
      // What a job came to is told once: were it lost, the job would be nobody's until its lock ends. What is added is kept by who adds it.
      if ((code === diskFull || error instanceof DiskFull) && !addition.test(text) && !this.#closing) {
        await sleep(this.#fullMs);
        return this.query(text, parameters);
      }
      // An error that is not of the connection makes a worker ask again at once; BM001 is BullMQ's own, an answer rather than an error.
      if (code !== 'BM001') await sleep(failureDelayMs);
      throw error;
    });
  }

  async connect(): Promise<PgPoolClient> {
    const session = new Session(
      (text, parameters) => this.query(text, parameters),
      released => this.#sessions.delete(released),
    );
    this.#sessions.add(session);
    return session;
  }

  /** What a full disk does not take is not tried again from now on: jobs that are left are nobody's at the next start. */
  closing(): void {
    this.#closing = true;
  }

  /** Resolves when the last statement is done; later ones are refused. */
  async end(): Promise<void> {
    this.closing();
    this.#ended = true;
    await this.#working;
  }

  #inTurn(text: string, parameters?: readonly unknown[]): Promise<Answer> {
    // BullMQ knows this text and keeps still while it closes.
    if (this.#ended) return Promise.reject(new Error('Cannot use a pool after calling end on the pool'));
    const answer = new Promise<Awaited<ReturnType<typeof send>>>((resolve, reject) => {
      const lane = addition.test(text) ? this.#additions : this.#others;
      lane.push(() => this.#send(text, parameters).then(resolve, reject));
    });
    this.#working ??= this.#work();
    return answer.then(({ notifications, ...rest }) => {
      for (const session of this.#sessions) for (const notification of notifications) session.notify(notification);
      return rest;
    });
  }

  async #send(text: string, parameters?: readonly unknown[]): ReturnType<typeof send> {
    this.#ensureRoom();
    return send(this.#database, text, parameters);
  }

  async #work(): Promise<void> {
    for (let next = this.#next(); next; next = this.#next()) {
      await next();
      // PGlite answers without ever leaving JavaScript: without a pause after each statement a busy queue starves sockets and timers.
      await pause();
    }
    // In the same turn in which nothing was found: a statement that comes later must start anew.
    this.#working = undefined;
  }

  #next(): (() => Promise<void>) | undefined {
    const lanes = this.#tookAddition ? [this.#others, this.#additions] : [this.#additions, this.#others];
    const lane = lanes.find(({ length }) => length > 0);
    this.#tookAddition = lane === this.#additions;
    return lane?.shift();
  }
}

function pause(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve));
}
