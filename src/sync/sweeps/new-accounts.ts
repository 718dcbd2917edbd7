import { addDays } from '../../../schema/instant.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { messageOf, TryLaterError } from '../../base/errors.ts';
import { type Account, listNeverRead } from '../../ledger/accounts.ts';
import type { Pipeline } from '../pipeline.ts';
import { lastDays, prepareRequest } from '../runs/backfill.ts';
import type { Run } from '../runs/run.ts';
import { askServiceClock } from '../service-clock.ts';
import { listActive } from './sweep.ts';

/** A command that adds an account may be about to read it itself: it has until the next look. */
const LOOK_MS = 2_000;
/** What could not be begun, for want of room or of the service, is begun later. */
const AGAIN_MS = 60_000;

/**
 * Reads the last days of accounts that nobody has read before, once. The ledger tells which those are, so that a process that ends between
 * the adding and the reading leaves it to the next one.
 */
export class NewAccounts {
  readonly #pipeline: Pipeline;
  readonly #days: number;
  /** Accounts that were read, by this class or before, and since when they were what they were then: one that was refused may be read by now. */
  readonly #known = new Map<string, number>();
  /** Those that the look before has found; undefined before the first one, which waits for nobody. */
  #found: ReadonlySet<string> | undefined;
  readonly #closing = new AbortController();
  #notBefore = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  /** @param days how many, tomorrow (UTC) being the last; 0 reads nothing */
  constructor(pipeline: Pipeline, days: number) {
    this.#pipeline = pipeline;
    this.#days = days;
  }

  /** Reads those that there are, and from now on those that are added. */
  start(): void {
    if (!this.#days) return;
    void this.look();
    this.#timer = setInterval(() => void this.look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Begins no further reading; one under way ends with its run. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    await this.#looking;
  }

  /** Reads those that the last look has found and that nobody reads yet. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch(error => {
        if (this.#closing.signal.aborted) return;
        this.#notBefore = this.#pipeline.now() + AGAIN_MS;
        const level = error instanceof TryLaterError ? 'info' : 'warn';
        this.#pipeline.log[level]({ reason: messageOf(error) }, 'new accounts could not be read: tried again in a minute');
      })
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { warehouse, now } = this.#pipeline;
    if (now() < this.#notBefore) return;
    const unknown = (await listActive(this.#pipeline)).filter(({ userId, since }) => this.#known.get(userId) !== since);
    const names = unknown.map(({ userId }) => userId);
    const isNew = new Set(names.length ? await listNeverRead(warehouse, names, heartRate.name) : []);
    for (const { userId, since } of unknown) if (!isNew.has(userId)) this.#known.set(userId, since);
    const due = unknown.filter(({ userId }) => isNew.has(userId) && (this.#found?.has(userId) ?? true));
    if (due.length) await this.#read(due);
    this.#found = isNew;
  }

  async #read(accounts: readonly Pick<Account, 'userId' | 'since'>[]): Promise<void> {
    const users = accounts.map(({ userId }) => userId);
    const range = lastDays(this.#days, await askServiceClock(this.#pipeline, this.#closing.signal));
    const { request } = await prepareRequest(this.#pipeline, { users }, { ...range, kind: 'backfill', refresh: false });
    if (!request.users.length) return;
    const run = await this.#pipeline.runs.start(request);
    for (const { userId, since } of accounts) if (request.users.includes(userId)) this.#known.set(userId, since);
    run.claim();
    void this.#tellEnd(run);
  }

  async #tellEnd(run: Run): Promise<void> {
    const { log } = this.#pipeline;
    const { users, from } = run.request;
    const [only] = users;
    const accounts = users.length === 1 ? only : users.length;
    try {
      const { state, documents, failures } = await run.done;
      const more = `for more: ringneck backfill${users.length === 1 ? ` --user ${only}` : ''} --from ${addDays(from, -365)}`;
      log.info({ run: run.id, accounts, from, state, documents, failures: failures.length }, `new accounts were read; ${more}`);
    } catch (error) {
      const level = error instanceof TryLaterError ? 'info' : 'warn';
      log[level]({ run: run.id, accounts, reason: messageOf(error) }, 'the first reading of new accounts did not come to its end');
    }
  }
}
