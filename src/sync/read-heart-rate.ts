import { MICROS_PER_DAY } from '../../schema/instant.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import type { RequestTimes } from '../client/client.ts';
import { ServiceError } from '../client/error.ts';
import { type EarlierReading, rangeOf, TooLarge, type Window } from '../ledger/windows.ts';
import { type Comparison, HeartRateAnswer, type Missing } from '../warehouse/heart-rate-answer.ts';
import type { RequestScope } from '../warehouse/request-clock.ts';
import { nothingWritten, type WriteResult } from '../warehouse/write-result.ts';
import { ACCEPT, isTooMany, TOO_MANY_IN_RUN } from './deletions/deletion-brake.ts';
import { withdrawGenerated } from './generated-heart-rate.ts';
import { type CollectContext, tokenGuard, type WindowResult } from './pipeline.ts';
import { ensureAnswers, momentsOfRequest, UNASKED } from './read-collection.ts';

/** Rows of a window that are held at once, some 300 MB while they are stored. A window has about 35,000; with a row each second it would have 2.4 million. */
const MOST_ROWS = 150_000;

/** Before the pages of a reading in the ledger. To be raised when something else of the same row is stored: then each is read again. */
const STORED_AS = 'v1';

/** All rows of a range as they came. */
interface RangeAnswer extends RequestTimes {
  route: string;
  rows: HeartRateAnswer;
  requests: number;
  /** What its pages are known by when they come again; undefined where one cannot be. */
  pages: string | undefined;
}

/** Reads a window exactly, not widened; its rows are replaced once, after the last page. */
export function readHeartRate(window: Window, context: CollectContext): Promise<WindowResult> {
  return new HeartRateReading(window, context).collect();
}

class HeartRateReading {
  readonly #context: CollectContext;
  readonly #userId: string;
  readonly #from: number;
  readonly #to: number;
  /** The window ends later: of what lies between nothing can be known yet. */
  readonly #isCut: boolean;
  readonly #earlier: EarlierReading | undefined;
  readonly #guard: () => void;
  readonly #result: WindowResult = { outcome: 'complete', ...UNASKED, requests: 0, documents: 0 };

  constructor(window: Window, context: CollectContext) {
    const range = rangeOf(window);
    if (!range) throw new Error('heart rate is read by days');
    const { serviceClock, now, tokens } = context.pipeline;
    this.#context = context;
    this.#userId = window.userId;
    this.#from = range.startAt;
    // What is measured after the request cannot be in its answer, and must not be taken for absent. The Date of an answer may be that of a cache.
    this.#to = Math.min(range.endAt, Math.floor(Math.max(serviceClock.now(), now()) * 1000));
    this.#isCut = this.#to < range.endAt;
    // One that ended with its request may have had less than the range.
    this.#earlier = this.#isCut ? undefined : window.earlier;
    this.#guard = tokenGuard(tokens, window.userId, context.token);
  }

  async collect(): Promise<WindowResult> {
    const { warehouse } = this.#context.pipeline;
    if (this.#from >= this.#to) {
      await warehouse.record(this.#context.ledger(this.#result));
      return this.#result;
    }
    let isFirst = true;
    let isDoubted = false;
    for (;;) {
      const result = await warehouse.clock.withRequest(async request => {
        const answer = await this.#read(request, isFirst ? this.#earlier : undefined);
        const isWithdrawn = isFirst && (await this.#withdraw(answer));
        isFirst = false;
        if (isWithdrawn) return undefined;
        const { doubt, compared } = await this.#compare(answer, isDoubted ? undefined : this.#earlier);
        // Doubted once it is asked again.
        if (doubt === undefined || isDoubted) return this.#store(answer, doubt, compared);
        isDoubted = true;
        return undefined;
      });
      if (result) return result;
    }
  }

  /** @param earlier pages that are the same as this reading's are not parsed before their rows are asked for */
  async #read(request: RequestScope, earlier: EarlierReading | undefined): Promise<RangeAnswer> {
    const { pipeline, token, signal, releaseWhile, onAnswer } = this.#context;
    const iso = (micros: number) => new Date(micros / 1000).toISOString();
    const [version, ...known] = earlier?.pages.split(' ') ?? [];
    const range = { from: iso(this.#from), to: iso(this.#to), known: version === STORED_AS ? known : [] };
    const answer: RangeAnswer = { ...UNASKED, route: '', rows: new HeartRateAnswer(), requests: 0, pages: undefined };
    const { rows } = answer;
    const digests: (string | undefined)[] = [];
    const readRows = (bytes: Buffer) => rows.readPage(bytes);
    for await (const page of pipeline.client.heartRate({ token, ...range, signal, releaseWhile, readRows })) {
      if (!answer.requests) Object.assign(answer, momentsOfRequest(page), { route: page.route });
      request.beginRead(page.requestedAt);
      answer.requests++;
      onAnswer();
      digests.push(page.digest);
      if (page.parse) rows.hold(page.parse);
      else if (page.rows) rows.addColumns(page.rows);
      else rows.add(page.documents);
      if (!rows.isHeld && rows.length > MOST_ROWS && this.#to - this.#from > MICROS_PER_DAY) throw new TooLarge();
    }
    if (!rows.isHeld) ensureAnswers(answer.route, rows.rows.columns.micros, { startAt: this.#from, endAt: this.#to });
    if (digests.length && !digests.includes(undefined)) answer.pages = [STORED_AS, ...digests].join(' ');
    this.#result.requests += answer.requests;
    return answer;
  }

  /** Where the plain path has answered: whether rows that another path had generated were taken away for it. */
  async #withdraw({ route }: RangeAnswer): Promise<boolean> {
    const { pipeline, onStored, goesOnIn } = this.#context;
    if (route !== heartRate.plainPath || pipeline.client.heartRatePath !== heartRate.plainPath) return false;
    const withdrawn = await withdrawGenerated(pipeline);
    if (!withdrawn) return false;
    onStored({ ...nothingWritten(), removed: withdrawn.removed }, 0);
    if (withdrawn.reading) goesOnIn(withdrawn.reading);
    return true;
  }

  /** Why an answer is not believed, where it is not: it lacks too much of what is stored. */
  async #compare(answer: RangeAnswer, earlier: EarlierReading | undefined): Promise<{ doubt: string | undefined; compared: Comparison }> {
    const { warehouse } = this.#context.pipeline;
    const range = this.#rangeOf(answer);
    if (earlier && earlier.pages === answer.pages && earlier.route === answer.route) {
      const { requestedAt, documents: rows, rowsByDay } = earlier;
      const same = await warehouse.findSameHeartRate(range, { requestedAt, rows, rowsByDay });
      if (same) return { doubt: undefined, compared: same };
    }
    const { weeks, compared } = await warehouse.countMissingHeartRate(range);
    return { doubt: await this.#findDoubt(answer, weeks), compared };
  }

  async #findDoubt({ rows }: RangeAnswer, weeks: readonly Missing[]): Promise<string | undefined> {
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
    const [missing, stored] = [sum(weeks.map(week => week.missing)), sum(weeks.map(week => week.stored))];
    const isEmpty = rows.rows.within(this.#from, this.#to).length === 0;
    if (stored && isEmpty) return `two empty answers over ${stored} stored rows; ${ACCEPT}`;
    // Nothing else confirms that rows are gone: of a whole window, days could be missing before they were a fifth.
    const doubtful = [{ missing, stored }, ...weeks].find(counts => isTooMany(counts.missing, counts.stored));
    if (doubtful) return `${doubtful.missing} of ${doubtful.stored} stored rows are missing from two answers; ${ACCEPT}`;
    return (await this.#context.share.take(missing, 'ts')) ? undefined : TOO_MANY_IN_RUN;
  }

  async #store(answer: RangeAnswer, doubt: string | undefined, compared: Comparison): Promise<WindowResult> {
    const { pipeline, acceptDeletions, onStored } = this.#context;
    const { warehouse } = pipeline;
    const guard = this.#guard;
    const range = this.#rangeOf(answer);
    const result = this.#result;
    Object.assign(result, momentsOfRequest(answer), { route: answer.route });
    // Of what lies behind the end that was asked for nothing is known, whatever a clock showed when the answer came, perhaps after a wait.
    if (this.#isCut) {
      result.readAt = Math.min(result.readAt, this.#to);
      if (result.serviceAt !== null) result.serviceAt = Math.min(result.serviceAt, this.#to);
    }
    this.#refuseGenerated(answer);
    if (doubt !== undefined && !acceptDeletions) {
      // What is new in it may be all that there is of the last hours. Generated rows can be found again by a complete window only.
      if (answer.route !== heartRate.sandboxPath) onStored(await warehouse.storeHeartRate({ ...range, isSuspicious: true }, { guard }), 0);
      return { ...result, outcome: 'suspicious', reason: doubt };
    }
    result.documents = compared.same?.rows ?? answer.rows.length;
    const ledger = (rowsByDay: readonly number[], counts: WriteResult) => {
      const isAllStored = !this.#isCut && counts.outdated + counts.rejected + counts.undated === 0;
      const pages = isAllStored ? answer.pages : undefined;
      return this.#context.ledger({ ...result, removed: counts.removed, rowsByDay, pages, rejects: counts });
    };
    // Rows are samples: documents are what has an identifier.
    onStored(await warehouse.storeHeartRate({ ...range, compared }, { ledger, guard }), 0);
    return result;
  }

  /** What came from the sandbox path is not stored where the plain one has answered somebody meanwhile. */
  #refuseGenerated({ route }: RangeAnswer): void {
    const { sandboxPath, plainPath } = heartRate;
    if (route !== sandboxPath || this.#context.pipeline.client.heartRatePath !== plainPath) return;
    throw new ServiceError('unavailable', sandboxPath, `left, because ${plainPath} has answered meanwhile; to be read from there`);
  }

  #rangeOf({ requestedAt, rows }: RangeAnswer) {
    return { userId: this.#userId, from: this.#from, to: this.#to, requestedAt, rows };
  }
}
