import { isDiskFull } from '../../base/disk.ts';
import { detailOf, messageOf } from '../../base/errors.ts';
import type { ReleaseWhile } from '../../client/client.ts';
import { isVerdict, ServiceError } from '../../client/error.ts';
import { type Account, changeAccounts, findAccount } from '../../ledger/accounts.ts';
import { hasSeveralDays, type Outcome, TooLarge, windowEntry } from '../../ledger/windows.ts';
import type { DeletionShare } from '../deletions/deletion-brake.ts';
import { ask, firstPages } from '../first-pages.ts';
import { type CollectContext, type Collection, type Pipeline, TokenReplaced, type WindowResult } from '../pipeline.ts';
import { ATTEMPTS, type Decision, decide } from '../verdicts/outcome.ts';
import { errorKindOf, park, type Refused } from '../verdicts/park.ts';
import { isRefusal } from '../verdicts/probe.ts';
import { confirmsRefusal, refuteRefusal } from '../verdicts/refusals.ts';
import { findUngranted } from '../verdicts/ungranted.ts';
import type { AccountWindows, OpenWindow } from './account-windows.ts';
import type { Run } from './run.ts';

const ONCE = ', for the first time: what a later run is answered decides, a minute later at the earliest';

/** How long a window stays away from a disk that was full and is not any more. */
const PLACE_MS = 1_000;

/** What an attempt needs besides its window. */
export interface AttemptParts {
  pipeline: Pipeline;
  run: Run;
  windows: AccountWindows;
  /** Accounts whose refusal is being looked into. */
  probing: Map<string, Promise<Refused>>;
  releaseWhile: ReleaseWhile;
}

/** What became of a window, for the ledger and for its run. */
interface End {
  outcome: Outcome;
  reason?: string | undefined;
  /** The outcome, unless said otherwise. */
  kind?: string;
  detail?: string | undefined;
  removed?: number | undefined;
  committedAt?: number | undefined;
}

/**
 * How an attempt stands: after how many milliseconds its window is to be begun again; undefined when it has its outcome, or its run is
 * over.
 */
type Away = number | undefined;

/** One attempt at a window. What it stores is guarded by the order of requests. */
export class Attempt {
  readonly #parts: AttemptParts;
  readonly #window: OpenWindow;
  readonly #collection: Collection | undefined;

  constructor(parts: AttemptParts, window: OpenWindow) {
    this.#parts = parts;
    this.#window = window;
    this.#collection = parts.pipeline.collections.find(({ name }) => name === window.collection);
  }

  /**
   * Takes the window as far as it comes: it has its outcome then, or is put off. One whose last attempt cannot even be noted in the ledger
   * fails all the same: its run must not wait for it without end.
   */
  async make(): Promise<void> {
    const { pipeline, run, windows } = this.#parts;
    const window = this.#window;
    try {
      // Before the service is asked for what could not be stored.
      const awayMs = pipeline.runs.findDiskWait() ?? (await this.#collect());
      if (awayMs !== undefined) windows.putOff(window, awayMs);
    } catch (error) {
      // What was asked with the earlier token is no attempt at the window.
      if (!(error instanceof TokenReplaced)) window.attemptsMade++;
      if (window.attemptsMade < ATTEMPTS) windows.putOff(window, pipeline.retryDelayMs * 2 ** Math.max(0, window.attemptsMade - 1));
      else await run.finishWindow(window, 'failed', messageOf(error), errorKindOf(error), detailOf(error));
    }
  }

  /** Throwing is a failed attempt. */
  async #collect(): Promise<Away> {
    const { pipeline, run } = this.#parts;
    const account = await this.#findAccount();
    if (account?.state !== 'active') {
      const reason = `the account is ${account?.state ?? 'removed'}${account?.reason ? `: ${account.reason}` : ''}`;
      // The service has refused nothing: after whatever is done to the account from then on, this says nothing of the collection.
      return this.#finish({ outcome: 'not_authorised', reason, committedAt: account?.since });
    }
    const token = this.#findToken();
    // Planned before its person signed in again and allowed less.
    const ungranted = this.#collection && findUngranted(pipeline.tokens, this.#window.userId, this.#collection);
    if (ungranted !== undefined) return this.#finish({ outcome: 'not_authorised', reason: ungranted });
    try {
      return await this.#read(token);
    } catch (error) {
      if (run.signal.aborted) return undefined;
      if (error instanceof TooLarge || (errorKindOf(error) === 'too_large' && hasSeveralDays(this.#window))) {
        await pipeline.runs.cut(run, this.#window);
        return undefined;
      }
      // What was said to it says nothing of the new one.
      if (error instanceof ServiceError && this.#findToken() !== token) throw new TokenReplaced(messageOf(error));
      if (error instanceof TokenReplaced) throw error;
      return this.#answerTo(error, account);
    }
  }

  async #findAccount(): Promise<Account | undefined> {
    const { warehouse } = this.#parts.pipeline;
    const find = () => findAccount(warehouse, this.#window.userId);
    const found = await find();
    // Without a token it may be in the middle of being removed.
    const isCertain = found?.state === 'active' && this.#findToken() !== undefined;
    return isCertain ? found : changeAccounts(warehouse, find);
  }

  #findToken(): string | undefined {
    return this.#parts.pipeline.tokens.find(this.#window.userId);
  }

  /** Does what an error asks for. */
  async #answerTo(error: unknown, account: Account): Promise<Away> {
    const { pipeline, run, windows } = this.#parts;
    // Its attempts are for what may be wrong with the window.
    if (isDiskFull(error)) return pipeline.runs.findDiskWait() ?? PLACE_MS;
    const decision = decide(error, this.#window.attemptsMade);
    switch (decision.do) {
      case 'wait':
        run.progress.waits++;
        windows.slowDown();
        return decision.ms;
      case 'retry':
        throw error;
      case 'confirm':
        return this.#confirmNotFound(error, account);
      case 'park':
        return this.#park(error, account);
      case 'finish':
        return this.#finishFailed(error, decision);
    }
  }

  async #confirmNotFound(error: unknown, account: Account): Promise<Away> {
    const token = this.#findToken();
    try {
      return await this.#confirmNotOffered(error);
    } catch (unclear) {
      if (unclear === error || unclear instanceof TokenReplaced) throw unclear;
      if (isRefusal(unclear) && this.#findToken() !== token) throw new TokenReplaced(messageOf(unclear));
      return this.#answerTo(unclear, account);
    }
  }

  /** A collection is not offered once it has said 404 twice, where the service offers anything at all: else the address is wrong. */
  async #confirmNotOffered(notFound: unknown): Promise<Away> {
    const { pipeline, run } = this.#parts;
    const { client } = pipeline;
    const window = this.#window;
    const waitMs = run.notFounds.note(window, pipeline.secondLookMs);
    if (waitMs > 0) return waitMs;
    const token = this.#findToken();
    if (token === undefined) throw notFound;
    // A gateway whose service is away answers 404 to all, and in JSON.
    const offers = await run.notFounds.askOffers(() => offersAnything(pipeline, token));
    if (!offers && client.hasAnswered()) {
      const route = notFound instanceof ServiceError ? notFound.route : window.collection;
      throw new ServiceError('unavailable', route, 'answered 404, and so does everything that has answered before');
    }
    if (!offers) {
      await run.fail(window, 'wrong_address', askForAddress(client.address, window.userId));
      return undefined;
    }
    if (this.#collection?.collectNotOffered) return this.#read(token, this.#collection.collectNotOffered);
    return this.#finish({ outcome: 'not_offered', ...tellOf(notFound) });
  }

  async #park(error: unknown, account: Account): Promise<Away> {
    const { pipeline, probing } = this.#parts;
    let refused: Refused;
    try {
      refused = await park(pipeline, account, error, probing);
    } catch (unclear) {
      // What the refusal means is unknown while the probe has no answer: that is decided as the probe's own error.
      return this.#answerTo(unclear, account);
    }
    if (refused === 'replaced_token') throw new TokenReplaced(messageOf(error));
    // Of a sign-in whose scopes the service never said it may be the first word on them.
    const isUntold = pipeline.tokens.findSignIn(account.userId)?.areScopesTold === false;
    const isUngranted = isUntold && isRefusal(error) && !error.expired;
    if (refused === 'account' || isUngranted || (await confirmsRefusal(pipeline, this.#window)))
      return this.#finish({ outcome: 'not_authorised', ...tellOf(error) });
    return this.#finish({ outcome: 'suspicious', reason: `${messageOf(error)}${ONCE}`, detail: detailOf(error) });
  }

  async #finishFailed(error: unknown, { outcome, reason }: Extract<Decision, { do: 'finish' }>): Promise<Away> {
    const { pipeline, run } = this.#parts;
    const unreached = outcome === 'failed' ? await pipeline.runs.findUnreached(run, false) : undefined;
    if (!unreached) return this.#finish({ ...tellOf(error), outcome, reason });
    pipeline.runs.breakOff(run, unreached);
    return undefined;
  }

  /** Reads the window from the service into the warehouse. */
  async #read(token: string | undefined, collect = this.#collection?.collect): Promise<Away> {
    const { pipeline, run } = this.#parts;
    const window = this.#window;
    if (!collect) return this.#finish({ outcome: 'failed', reason: `no collection ${window.collection} in this version` });
    // No refusal of the service's: with a token, or at the address that it was given for, the same window is read again.
    if (!token) return this.#finish({ outcome: 'failed', reason: pipeline.tokens.whyMissing(window.userId) });
    const share = run.brake.share(pipeline.warehouse, window);
    let answered = false;
    const onAnswer = () => {
      answered = true;
      run.progress.requests++;
    };
    let result: WindowResult;
    try {
      result = await collect(window, { ...this.#contextOf(token, share), onAnswer });
    } catch (error) {
      // A refusal is an answer too.
      if (error instanceof ServiceError && error.status !== undefined) run.progress.requests++;
      share.giveBack();
      throw error;
    } finally {
      if (answered) await refuteRefusal(pipeline, window);
    }
    const { outcome, reason, removed } = result;
    if (outcome !== 'complete') {
      share.keep(removed ?? 0);
      return this.#finish({ outcome, reason, removed });
    }
    await run.finishWindow(window, 'complete', undefined, 'complete');
    return undefined;
  }

  #contextOf(token: string, share: DeletionShare): Omit<CollectContext, 'onAnswer'> {
    const { pipeline, run, releaseWhile } = this.#parts;
    const window = this.#window;
    return {
      pipeline,
      token,
      signal: run.signal,
      releaseWhile,
      acceptDeletions: run.request.acceptDeletions ?? false,
      share,
      expectsEvents: run.request.kind !== 'backfill',
      onStored: (counts, documents) => run.count(counts, documents),
      // What was read to its end, and is not believed, has stored what it brought; a first refusal has brought nothing.
      hasFailed: name =>
        run.failures.some(
          failure =>
            failure.user_id === window.userId &&
            failure.collection === name &&
            (failure.kind !== 'suspicious' || failure.message.endsWith(ONCE)),
        ),
      goesOnIn: next => run.goesOnIn.push(next),
      ledger: result => [windowEntry(window, { ...result, committedAt: pipeline.warehouse.clock.next() })],
    };
  }

  /** Notes what became of the window, in the ledger first. */
  async #finish({ outcome, reason, kind = outcome, detail, removed, committedAt }: End): Promise<undefined> {
    const { pipeline, run } = this.#parts;
    const { warehouse, runs } = pipeline;
    const window = this.#window;
    await runs.store(run, () =>
      warehouse.record([windowEntry(window, { outcome, reason, removed, committedAt: committedAt ?? warehouse.clock.next() })]),
    );
    await run.finishWindow(window, outcome, reason, kind, detail);
  }
}

const tellOf = (error: unknown): Pick<End, 'reason' | 'kind' | 'detail'> => ({
  reason: messageOf(error),
  kind: errorKindOf(error),
  detail: detailOf(error),
});

/** Whether anything of a person is offered at this address. Rejects where no clear answer comes. */
async function offersAnything(pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'now'>, token: string): Promise<boolean> {
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
function askForAddress(address: string, userId: string): string {
  const hint = /\/v2$/.test(address) ? ' Ringneck adds /v2 itself' : '';
  return `${address} offers nothing of ${userId}, all of it is 404: is RINGNECK_SERVICE_URL right?${hint}`;
}
