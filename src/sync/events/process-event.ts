import type { Resource } from '../../../schema/resource.ts';
import { dataTypeOf } from '../../../schema/webhook.ts';
import { messageOf } from '../../base/errors.ts';
import { printable } from '../../base/printable.ts';
import { isAskable } from '../../client/base-url.ts';
import type { DocumentAnswer } from '../../client/client.ts';
import { ServiceError } from '../../client/error.ts';
import { type Account, accountEntry, changeAccounts, createAccountFinder } from '../../ledger/accounts.ts';
import type { EventOutcome } from '../../ledger/events.ts';
import { isWithdrawn } from '../../ledger/unproven.ts';
import { KeyedSemaphore } from '../../queue/keyed-semaphore.ts';
import { storable } from '../../warehouse/sql.ts';
import { type Pipeline, TokenReplaced } from '../pipeline.ts';
import { decide } from '../verdicts/outcome.ts';
import { park, type Refused } from '../verdicts/park.ts';
import { findUngranted } from '../verdicts/ungranted.ts';
import { type AbsentDelays, findRange, finishAbsent } from './absent-documents.ts';
import { DocumentFetches, hasTrustedRoute, isNamed } from './document-fetches.ts';
import { wasErased } from './erased-ids.ts';
import {
  type AcceptedEvent,
  type EventInWork,
  type EventResult,
  type EventStep,
  FORGOTTEN,
  giveWay,
  noteEvents,
  parked,
  type RouteSaid,
  storeAnswer,
} from './event-outcome.ts';
import { mapCommand } from './map-command.ts';
import { RangeReads } from './range-reads.ts';
import { takeUpEvents } from './take-up.ts';
import { findOnlyAccount } from './unknown-person.ts';

/** Events of one account that are worked on at a time: enough to share a range, and few enough of all workers that others find one. */
const PLACES = 16;

/** The outcomes of events that are taken up when their account changes. */
const WAITING: ReadonlySet<EventOutcome> = new Set(['parked', 'unknown_user']);

/** When work on an event goes on, in milliseconds. */
export interface EventDelays extends AbsentDelays {
  /** After an answer that is none, or one that could not be stored: one after the other. */
  failed: readonly number[];
  /** Between two refusals of one collection: the first may be a mistake, of the service or of something on the way. */
  refused: number;
  /** At the longest, of an account that has too many events in work. */
  crowded: number;
}

const DELAYS: EventDelays = {
  unreadable: [5_000, 30_000, 120_000],
  confirm: 30_000,
  confirmDelete: 5_000,
  failed: [5_000, 30_000, 120_000, 600_000, 1_800_000],
  refused: 61_000,
  crowded: 15_000,
};

/** Where an event stands, and the account that it is about, where known. */
export interface Processed {
  userId: string | null;
  step: EventStep;
}

/** Takes events to their next steps. */
export class EventProcessor {
  readonly #pipeline: Pipeline;
  readonly #delays: EventDelays;
  readonly #resources: ReadonlyMap<string, Resource>;
  readonly #find: ReturnType<typeof createAccountFinder>;
  readonly #places: KeyedSemaphore;
  readonly #documents: DocumentFetches;
  readonly #ranges: RangeReads;
  /** Routes that answered 404 and that the service may not have: where one of them is meant the range is read at once. */
  readonly #unknownRoutes = new Set<string>();
  readonly #triedRoutes = new Set<string>();
  /** Whose events the log was told of. */
  readonly #warned = new Set<string>();
  readonly #probing = new Map<string, Promise<Refused>>();

  constructor(pipeline: Pipeline, options: { delays?: Partial<EventDelays> | undefined }) {
    const { warehouse } = pipeline;
    const delays = { ...DELAYS, ...options.delays };
    this.#pipeline = pipeline;
    this.#delays = delays;
    this.#resources = new Map(
      warehouse.resources.flatMap(resource => (resource.dataType === undefined ? [] : [[resource.dataType, resource]])),
    );
    this.#find = createAccountFinder(warehouse);
    this.#places = new KeyedSemaphore(PLACES, () => performance.now(), delays.crowded);
    this.#documents = new DocumentFetches(pipeline);
    this.#ranges = new RangeReads(pipeline, (event, read) => finishAbsent(pipeline, event, read, delays));
  }

  /** Takes an event to its next step. Where not even the outcome can be noted it rejects, and the queue comes back to it. */
  async process(accepted: AcceptedEvent): Promise<Processed> {
    this.#places.returned(String(accepted.receivedAt));
    const { user_id: id } = accepted.event;
    const account = await this.#find(id);
    const done = await this.#processOf({ ...accepted, accountSince: account?.since }, account);
    if (!('finished' in done.step && WAITING.has(done.step.finished.outcome))) return done;
    // What waits for its account is taken up when that changes; what was noted only after it goes on by itself.
    const now = await this.#find(id);
    const isLate = now?.state === 'active' && now.since !== account?.since;
    return isLate ? { userId: now.userId, step: { again: 0, tries: accepted.tries } } : done;
  }

  async #processOf(accepted: AcceptedEvent, account: Account | undefined): Promise<Processed> {
    const { event } = accepted;
    const userId = account?.userId ?? null;
    const note = async (finished: EventResult): Promise<Processed> => ({
      userId,
      step: { finished: await noteEvents(this.#pipeline.warehouse, [accepted], userId, finished) },
    });
    // Nothing of the event is kept: whoever it is about was erased or removed, or has withdrawn, and the service goes on speaking of them.
    const isGone = account ? account.state === 'removed' || isWithdrawn(account.reason) : await wasErased(this.#pipeline, event.user_id);
    if (isGone) return { userId, step: { finished: FORGOTTEN } };
    const resource = this.#resources.get(dataTypeOf(event.data_type));
    if (!resource) return note({ outcome: 'unknown_type', reason: 'this version holds no documents of this kind' });
    if (!account) return this.#processUnknown(accepted, resource);
    if (account.state !== 'active') return note(parked(`the account is ${account.state}${account.reason ? `: ${account.reason}` : ''}`));
    if (!storable(event.object_id)) return note(parked('no document can have this identifier'));
    if (!isAskable(event.object_id)) return note(parked('no document can be asked for by this identifier: it would name another path'));
    return this.#inPlace(account, accepted, account.userId, async () => {
      const token = this.#findToken(account);
      // What was done to the account while it waited for its place counts.
      const now = await this.#find(event.user_id);
      if (now?.userId !== account.userId || now.since !== account.since || now.state !== 'active')
        return { userId, step: { again: 0, tries: accepted.tries } };
      if (!token) return note(parked(this.#pipeline.tokens.whyMissing(account.userId) ?? 'no token'));
      const ungranted = findUngranted(this.#pipeline.tokens, account.userId, resource);
      if (ungranted !== undefined) return note(parked(ungranted));
      const inWork = { ...accepted, userId: account.userId, resource, token };
      const step = await this.#fetch(inWork).catch(error => this.#answerTo(error, inWork, account));
      return { userId, step };
    });
  }

  /** Works in one of the places of an account; where all are taken the event comes back later. */
  async #inPlace(
    account: Account,
    { receivedAt, tries }: AcceptedEvent,
    userId: string | null,
    work: () => Promise<Processed>,
  ): Promise<Processed> {
    const jobId = String(receivedAt);
    const delayMs = await this.#places.acquire(account.userId, jobId);
    if (delayMs !== undefined) return { userId, step: { again: delayMs, tries } };
    try {
      return await work();
    } finally {
      this.#places.release(account.userId, jobId);
    }
  }

  #findToken({ userId }: Pick<Account, 'userId'>): string | undefined {
    return this.#pipeline.tokens.find(userId);
  }

  /**
   * An event about somebody whom no account is known to be. Where there is one account alone its token may be theirs: a document that it
   * brings says so, and nothing else does.
   */
  async #processUnknown(accepted: AcceptedEvent, resource: Resource): Promise<Processed> {
    const { client, warehouse } = this.#pipeline;
    const { event } = accepted;
    const only = isAskable(event.object_id) && storable(event.object_id) ? await findOnlyAccount(warehouse) : undefined;
    const token = only && this.#findToken(only);
    if (!only || !token) return { userId: null, step: await this.#noteUnknown(accepted) };
    return this.#inPlace(only, accepted, null, async () => {
      const query = { token, lane: 'live', releaseWhile: giveWay } as const;
      const inWork = { ...accepted, userId: only.userId, resource, token };
      try {
        return await client.document(resource, event.object_id, query, answer => this.#takeUnknown(answer, inWork));
      } catch (error) {
        return { userId: null, step: await this.#answerToUnknown(error, accepted) };
      }
    });
  }

  /** Whether the account's token has brought the document: then it is the account of whoever the event is about. */
  async #takeUnknown(answer: DocumentAnswer, inWork: EventInWork): Promise<Processed> {
    const { warehouse, log } = this.#pipeline;
    const { userId, event, token, tries } = inWork;
    const isTheirs = isNamed(answer.document, event.object_id);
    const isAsAsked = await changeAccounts(warehouse, async () => {
      // What was done to the account meanwhile counts.
      const now = await findOnlyAccount(warehouse);
      if (now?.userId !== userId || !this.#pipeline.tokens.isSame(userId, token)) return false;
      if (isTheirs) await warehouse.record([accountEntry({ ...now, serviceUserId: event.user_id })]);
      return true;
    });
    if (!isAsAsked) return { userId: null, step: { again: 0, tries } };
    if (!isTheirs) return { userId: null, step: await this.#noteUnknown(inWork) };
    const finished = await storeAnswer(this.#pipeline, answer, [inWork]);
    const facts = { account: userId, service_user_id: event.user_id };
    log.info(facts, 'the account has this id at the service: its token brought the document');
    await takeUpEvents(this.#pipeline);
    return { userId, step: { finished } };
  }

  async #answerToUnknown(error: unknown, accepted: AcceptedEvent): Promise<EventStep> {
    const { tries } = accepted;
    const decision = decide(error, 0);
    if (decision.do === 'wait') return { again: decision.ms, tries };
    const next = decision.do === 'retry' ? this.#delays.failed[tries.failures] : undefined;
    if (next !== undefined) return { again: next, tries: { ...tries, failures: tries.failures + 1 } };
    if (decision.do === 'finish' && decision.outcome === 'stopped') throw error;
    return this.#noteUnknown(accepted);
  }

  async #noteUnknown(accepted: AcceptedEvent): Promise<EventStep> {
    const { warehouse, log } = this.#pipeline;
    const { user_id: id } = accepted.event;
    // Another event may have told meanwhile who it is.
    if (await this.#find(id)) return { again: 0, tries: accepted.tries };
    const command = mapCommand(id);
    if (!this.#warned.has(id)) {
      this.#warned.add(id);
      log.warn({ service_user_id: printable(id) }, `events for a service user that no account is mapped to: ${command}`);
    }
    const reason = `no account is mapped to this service user: ${command}`;
    return { finished: await noteEvents(warehouse, [accepted], null, { outcome: 'unknown_user', reason }) };
  }

  async #fetch(event: EventInWork): Promise<EventStep> {
    const { warehouse, serviceClock } = this.#pipeline;
    const { tries } = event;
    const routeSaid = tries.routeSaid ?? (await this.#fetchByRoute(event));
    if (typeof routeSaid === 'object') return routeSaid;
    const absent = { ...event, isGone: routeSaid === 'gone' };
    const range = await findRange(warehouse, absent, { clock: serviceClock, delays: this.#delays });
    const step = await this.#ranges.read(absent, range).catch((error): EventStep => {
      const decision = decide(error, 0);
      if (decision.do !== 'wait') throw error;
      return { again: decision.ms, tries };
    });
    // The same look goes on, or the next one begins.
    if (!('finished' in step)) return step.tries.misses > tries.misses ? step : { ...step, tries: { ...step.tries, routeSaid } };
    if (step.finished.outcome !== 'parked' && step.finished.outcome !== 'removed') await this.#tryRoute(event);
    return step;
  }

  /** @returns the next step, or what the document's own route says where it did not bring it */
  async #fetchByRoute(event: EventInWork): Promise<EventStep | RouteSaid> {
    const { resource, tries } = event;
    if (this.#unknownRoutes.has(resource.name) && !hasTrustedRoute(this.#pipeline.client, resource)) return 'nothing';
    const fetched = await this.#documents.fetch(event);
    if ('finished' in fetched) return fetched;
    const { isGone, isRouteUnknown } = fetched.missing;
    if (isRouteUnknown) this.#unknownRoutes.add(resource.name);
    const next = this.#delays.unreadable[tries.misses];
    if (isGone && next !== undefined) return { again: next, tries: { ...tries, misses: tries.misses + 1 } };
    return isGone ? 'gone' : 'nothing';
  }

  /** A document that is there tells whether its route is: one that answers is asked first from then on. */
  async #tryRoute({ resource, event, token }: EventInWork): Promise<void> {
    const { client } = this.#pipeline;
    if (this.#triedRoutes.has(resource.name) || hasTrustedRoute(client, resource)) return;
    this.#triedRoutes.add(resource.name);
    try {
      await client.document(resource, event.object_id, { token, lane: 'live', releaseWhile: giveWay }, () => undefined);
    } catch (error) {
      // Anything else, a 429 say, tells nothing of the route: the next document tries it again.
      if (!isOfService(error) || error.kind !== 'not_found') this.#triedRoutes.delete(resource.name);
    }
  }

  /** The step that an error asks for. */
  async #answerTo(error: unknown, event: EventInWork, account: Account): Promise<EventStep> {
    const { tries } = event;
    const most = this.#delays.failed.length;
    if (error instanceof TokenReplaced) return { again: 0, tries };
    const decision = decide(error, 0);
    switch (decision.do) {
      case 'wait':
        return { again: decision.ms, tries };
      case 'confirm':
        // The range of a type that the service may not have: said twice it is its word, and the next sweep asks all the same.
        return tries.failures ? this.#noteParked(event, messageOf(error)) : this.#later(event, 0);
      case 'retry':
        if (tries.failures < most) return this.#later(event, tries.failures);
        return this.#noteParked(event, isOfService(error) ? `the service did not answer: ${messageOf(error)}` : messageOf(error));
      case 'park':
        return this.#answerToRefusal(error, event, account);
      case 'finish':
        if (decision.outcome === 'stopped') throw error;
        // A full disk, a key that is wrong: it ends, and what is to be stored waits for that.
        if (!isOfService(error)) return this.#later(event, Math.min(tries.failures, most - 1));
        // It may have been said of the days of other events, which were read with its own.
        return tries.failures ? this.#noteParked(event, decision.reason) : this.#later(event, 0);
    }
  }

  async #answerToRefusal(error: unknown, event: EventInWork, account: Account): Promise<EventStep> {
    const { tries, token } = event;
    // The refusal of a token that was replaced meanwhile says nothing of the new one.
    if (this.#findToken(event) !== token) return { again: 0, tries };
    let refused: Refused;
    try {
      refused = await park(this.#pipeline, account, error, this.#probing);
    } catch (unclear) {
      // What the refusal means is unknown while the probe has no answer: that is decided as the probe's own error.
      return this.#answerTo(unclear, event, account);
    }
    if (refused === 'replaced_token') return { again: 0, tries };
    if (refused === 'collection' && !tries.refusals) return { again: this.#delays.refused, tries: { ...tries, refusals: 1 } };
    return this.#noteParked(event, messageOf(error));
  }

  #later({ tries }: EventInWork, step: number): EventStep {
    return { again: this.#delays.failed[step] ?? 0, tries: { ...tries, failures: tries.failures + 1 } };
  }

  async #noteParked(event: EventInWork, reason: string): Promise<EventStep> {
    return { finished: await noteEvents(this.#pipeline.warehouse, [event], event.userId, parked(reason)) };
  }
}

const isOfService = (error: unknown): error is ServiceError => error instanceof ServiceError;
