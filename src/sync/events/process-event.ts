import type { Resource } from '../../../schema/resource.ts';
import { dataTypeOf } from '../../../schema/webhook.ts';
import { messageOf } from '../../base/errors.ts';
import { printable } from '../../base/printable.ts';
import { isAskable } from '../../client/base-url.ts';
import { ServiceError } from '../../client/error.ts';
import { type Account, accountEntry, changeAccounts, createAccountFinder } from '../../ledger/accounts.ts';
import type { EventOutcome } from '../../ledger/events.ts';
import { KeyedSemaphore } from '../../queue/keyed-semaphore.ts';
import { storable } from '../../warehouse/sql.ts';
import type { Pipeline } from '../pipeline.ts';
import { TokenReplaced } from '../pipeline.ts';
import { decide } from '../verdicts/outcome.ts';
import { park, type Refused } from '../verdicts/park.ts';
import { type AbsentDelays, findRange, finishAbsent } from './absent-documents.ts';
import { createDocumentFetches, hasTrustedRoute, isNamed } from './document-fetches.ts';
import { wasErased } from './erased-ids.ts';
import {
  type AcceptedEvent,
  type EventInWork,
  type EventResult,
  FORGOTTEN,
  giveWay,
  noteEvents,
  parked,
  type Step,
  storeAnswer,
} from './event-outcome.ts';
import { mapCommand } from './map-command.ts';
import { createRangeReads } from './range-reads.ts';
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

/** Makes what takes an event to its next step. Where not even the outcome can be noted it rejects, and the queue comes back to it. */
export function createEventProcessor(
  pipeline: Pipeline,
  options: { delays?: Partial<EventDelays> | undefined },
): (accepted: AcceptedEvent) => Promise<{ userId: string | null; step: Step }> {
  const { warehouse, client, tokens, serviceClock, log } = pipeline;
  const delays = { ...DELAYS, ...options.delays };
  const resources = new Map(warehouse.mappings.map(({ resource }) => [resource.dataType, resource]));
  const find = createAccountFinder(warehouse);
  const semaphore = new KeyedSemaphore(PLACES, () => performance.now(), delays.crowded);
  const fetchDocument = createDocumentFetches(pipeline);
  const readRange = createRangeReads(pipeline, (event, read) => finishAbsent(pipeline, event, read, delays));
  /** Routes that answered 404 and that the service may not have: where one of them is meant the range is read at once. */
  const unknownRoutes = new Set<string>();
  const triedRoutes = new Set<string>();
  /** Whose events the log was told of. */
  const warned = new Set<string>();
  const probing = new Map<string, Promise<Refused>>();

  async function process(accepted: AcceptedEvent): Promise<{ userId: string | null; step: Step }> {
    semaphore.returned(String(accepted.receivedAt));
    const { user_id: id } = accepted.event;
    const account = await find(id);
    const done = await processOf({ ...accepted, accountSince: account?.since }, account);
    if (!('finished' in done.step && WAITING.has(done.step.finished.outcome))) return done;
    // What waits for its account is taken up when that changes; what was noted only after it goes on by itself.
    const now = await find(id);
    const isLate = now?.state === 'active' && now.since !== account?.since;
    return isLate ? { userId: now.userId, step: { again: 0, tries: accepted.tries } } : done;
  }

  async function processOf(accepted: AcceptedEvent, account: Account | undefined): Promise<{ userId: string | null; step: Step }> {
    const { event } = accepted;
    const jobId = String(accepted.receivedAt);
    const userId = account?.userId ?? null;
    const note = async (finished: EventResult) => ({
      userId,
      step: { finished: await noteEvents(warehouse, [accepted], userId, finished) },
    });
    // Nothing of the event is kept: whoever it is about was erased, and the service goes on speaking of them.
    if (!account && (await wasErased(pipeline, event.user_id))) return { userId, step: { finished: FORGOTTEN } };
    const resource = resources.get(dataTypeOf(event.data_type));
    if (!resource) return note({ outcome: 'unknown_type', reason: 'this version holds no documents of this kind' });
    if (!account) return processUnknown(accepted, resource, jobId);
    if (account.state !== 'active') return note(parked(`the account is ${account.state}${account.reason ? `: ${account.reason}` : ''}`));
    if (!storable(event.object_id)) return note(parked('no document can have this identifier'));
    if (!isAskable(event.object_id)) return note(parked('no document can be asked for by this identifier: it would name another path'));
    const delayMs = await semaphore.acquire(account.userId, jobId);
    if (delayMs !== undefined) return { userId, step: { again: delayMs, tries: accepted.tries } };
    try {
      const token = tokens.find(account.userId);
      // What was done to the account while it waited for its place counts.
      const now = await find(event.user_id);
      if (now?.userId !== account.userId || now.since !== account.since || now.state !== 'active')
        return { userId, step: { again: 0, tries: accepted.tries } };
      if (!token) return await note(parked(tokens.whyMissing(account.userId) ?? 'no token'));
      const inWork = { ...accepted, userId: account.userId, resource, token };
      try {
        return { userId, step: await fetch(inWork) };
      } catch (error) {
        return { userId, step: await answerTo(error, inWork, account) };
      }
    } finally {
      semaphore.release(account.userId, jobId);
    }
  }

  /**
   * An event about somebody whom no account is known to be. Where there is one account alone its token may be theirs: a document that it
   * brings says so, and nothing else does.
   */
  async function processUnknown(
    accepted: AcceptedEvent,
    resource: Resource,
    jobId: string,
  ): Promise<{ userId: string | null; step: Step }> {
    const { event, tries } = accepted;
    const only = isAskable(event.object_id) && storable(event.object_id) ? await findOnlyAccount(warehouse) : undefined;
    const token = only && tokens.find(only.userId);
    if (!only || !token) return { userId: null, step: await noteUnknown(accepted) };
    const delayMs = await semaphore.acquire(only.userId, jobId);
    if (delayMs !== undefined) return { userId: null, step: { again: delayMs, tries } };
    try {
      const answer = await client.document(resource, event.object_id, { token, lane: 'live', releaseWhile: giveWay });
      try {
        const isOfOnly = isNamed(answer.document, event.object_id);
        const isAsAsked = await changeAccounts(warehouse, async () => {
          // What was done to the account meanwhile counts.
          const now = await findOnlyAccount(warehouse);
          if (now?.userId !== only.userId || tokens.find(only.userId) !== token) return false;
          if (isOfOnly) await warehouse.record([accountEntry({ ...now, serviceUserId: event.user_id })]);
          return true;
        });
        if (!isAsAsked) return { userId: null, step: { again: 0, tries } };
        if (!isOfOnly) return { userId: null, step: await noteUnknown(accepted) };
        const inWork: EventInWork = { ...accepted, userId: only.userId, resource, token };
        const finished = await storeAnswer(pipeline, answer, [inWork]);
        log.info(
          { account: only.userId, service_user_id: event.user_id },
          'the account has this id at the service: its token brought the document',
        );
        await takeUpEvents(pipeline);
        return { userId: only.userId, step: { finished } };
      } finally {
        answer.done();
      }
    } catch (error) {
      const decision = decide(error, 0);
      if (decision.do === 'wait') return { userId: null, step: { again: decision.ms, tries } };
      const next = decision.do === 'retry' ? delays.failed[tries.failures] : undefined;
      if (next !== undefined) return { userId: null, step: { again: next, tries: { ...tries, failures: tries.failures + 1 } } };
      if (decision.do === 'settle' && decision.outcome === 'stopped') throw error;
      return { userId: null, step: await noteUnknown(accepted) };
    } finally {
      semaphore.release(only.userId, jobId);
    }
  }

  async function noteUnknown(accepted: AcceptedEvent): Promise<Step> {
    const { user_id: id } = accepted.event;
    // Another event may have told meanwhile who it is.
    if (await find(id)) return { again: 0, tries: accepted.tries };
    const command = mapCommand(id);
    if (!warned.has(id)) {
      warned.add(id);
      log.warn({ service_user_id: printable(id) }, `events for a service user that no account is mapped to: ${command}`);
    }
    return {
      finished: await noteEvents(warehouse, [accepted], null, {
        outcome: 'unknown_user',
        reason: `no account is mapped to this service user: ${command}`,
      }),
    };
  }

  async function fetch(event: EventInWork): Promise<Step> {
    const { resource, tries } = event;
    let isGone = false;
    if (!unknownRoutes.has(resource.name) || hasTrustedRoute(client, resource)) {
      const fetched = await fetchDocument(event);
      if ('finished' in fetched) return fetched;
      isGone = fetched.missing.isGone;
      if (fetched.missing.isRouteUnknown) unknownRoutes.add(resource.name);
      const next = delays.unreadable[tries.misses];
      if (isGone && next !== undefined) return { again: next, tries: { ...tries, misses: tries.misses + 1 } };
    }
    const step = await readRange({ ...event, isGone }, await findRange(warehouse, event, serviceClock));
    if ('finished' in step && step.finished.outcome !== 'parked' && step.finished.outcome !== 'removed') await tryRoute(event);
    return step;
  }

  /** A document that is there tells whether its route is: one that answers is asked first from then on. */
  async function tryRoute({ resource, event, token }: EventInWork): Promise<void> {
    if (triedRoutes.has(resource.name) || hasTrustedRoute(client, resource)) return;
    triedRoutes.add(resource.name);
    try {
      (await client.document(resource, event.object_id, { token, lane: 'live', releaseWhile: giveWay })).done();
    } catch (error) {
      // Anything else, a 429 say, tells nothing of the route: the next document tries it again.
      if (!isOfService(error) || error.kind !== 'not_found') triedRoutes.delete(resource.name);
    }
  }

  /** The step that an error asks for. */
  async function answerTo(error: unknown, event: EventInWork, account: Account): Promise<Step> {
    const { tries, userId, token } = event;
    const note = async (reason: string): Promise<Step> => ({ finished: await noteEvents(warehouse, [event], userId, parked(reason)) });
    const later = (step: number): Step => ({ again: delays.failed[step]!, tries: { ...tries, failures: tries.failures + 1 } });
    const retry = async (): Promise<Step> => {
      if (tries.failures < delays.failed.length) return later(tries.failures);
      return note(isOfService(error) ? `the service did not answer: ${messageOf(error)}` : messageOf(error));
    };
    if (error instanceof TokenReplaced) return { again: 0, tries };
    const decision = decide(error, 0);
    switch (decision.do) {
      case 'wait':
        return { again: decision.ms, tries };
      case 'confirm':
        // The range of a type that the service may not have: said twice it is its word, and the next sweep asks all the same.
        return tries.failures ? note(messageOf(error)) : later(0);
      case 'retry':
        return retry();
      case 'park':
        // The refusal of a token that was replaced meanwhile says nothing of the new one.
        if (tokens.find(userId) !== token) return { again: 0, tries };
        try {
          const refused = await park(pipeline, account, error, probing);
          if (refused === 'replaced_token') return { again: 0, tries };
          const { refusals = 0 } = tries;
          if (refused === 'collection' && refusals === 0) return { again: delays.refused, tries: { ...tries, refusals: 1 } };
        } catch (unclear) {
          // What the refusal means is unknown while the probe has no answer: that is decided as the probe's own error.
          return answerTo(unclear, event, account);
        }
        return note(messageOf(error));
      case 'settle':
        if (decision.outcome === 'stopped') throw error;
        // A full disk, a key that is wrong: it ends, and what is to be stored waits for that.
        if (!isOfService(error)) return later(Math.min(tries.failures, delays.failed.length - 1));
        return note(decision.reason);
    }
  }

  return process;
}

const isOfService = (error: unknown): error is ServiceError => error instanceof ServiceError;
