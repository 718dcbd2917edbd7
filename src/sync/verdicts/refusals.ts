import { dayNumberOf, dayOfMicros, MICROS_PER_DAY } from '../../../schema/instant.ts';
import { messageOf, unlessRefused } from '../../base/errors.ts';
import { ServiceError } from '../../client/error.ts';
import { listParkedCollections } from '../../ledger/accounts.ts';
import { findSuspicion, noSuspicionEntry, noteSuspicion, type Suspicion } from '../../ledger/suspicions.ts';
import { type Window, windowEntry } from '../../ledger/windows.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import { ask, firstPages } from '../first-pages.ts';
import type { Pipeline } from '../pipeline.ts';
import { findUngranted } from './ungranted.ts';

/** One refusal of one collection may be a mistake; so far apart two of them are its word. */
const APART_MICROS = 60_000_000;

type Place = Pick<Window, 'userId' | 'collection'>;

const suspicionOf = ({ userId, collection }: Place): Suspicion => ({ userId, collection, kind: 'refused' });

/** Whether a refusal of one collection confirms an earlier one; the first is noted. */
export async function confirmsRefusal({ warehouse, now }: Pick<Pipeline, 'warehouse' | 'now'>, place: Place): Promise<boolean> {
  const nowMicros = now() * 1000;
  return nowMicros - (await noteSuspicion(warehouse, suspicionOf(place), nowMicros)) >= APART_MICROS;
}

/** The collection has answered: what was refused before was a mistake, or is over. */
export async function refuteRefusal({ warehouse }: Pick<Pipeline, 'warehouse'>, place: Place): Promise<void> {
  const suspicion = suspicionOf(place);
  if ((await findSuspicion(warehouse, suspicion)) !== undefined) await warehouse.record([noSuspicionEntry(suspicion)]);
}

/** Asks each collection that is refused with one request: one that answers is read again. */
export async function askRefused(pipeline: Pipeline, signal?: AbortSignal): Promise<void> {
  const { warehouse, tokens, log } = pipeline;
  for (const { userId, collection } of await listParkedCollections(warehouse)) {
    const token = unlessRefused(() => tokens.find(userId));
    if (token === undefined) continue;
    const resource = pipeline.collections.find(({ name }) => name === collection);
    if (resource && findUngranted(tokens, userId, resource) !== undefined) continue;
    const read = firstPages(pipeline, token, signal).get(collection);
    if (!read) continue;
    try {
      await ask(read);
      await warehouse.record([answersAgain(pipeline, { userId, collection }), noSuspicionEntry(suspicionOf({ userId, collection }))]);
      log.info({ account: userId, collection }, 'the service answers for the collection again: it is read again');
    } catch (error) {
      signal?.throwIfAborted();
      const kind = error instanceof ServiceError ? error.kind : messageOf(error);
      log.info({ account: userId, collection, kind }, 'the collection stays refused');
    }
  }
}

/** A window in which nothing was asked for: it says that the last word on the collection is no refusal, and nothing of any day. */
function answersAgain({ warehouse, now }: Pick<Pipeline, 'warehouse' | 'now'>, place: Place): LedgerEntry {
  const startAt = dayNumberOf(dayOfMicros(now() * 1000)) * MICROS_PER_DAY;
  const window = { ...place, runId: 'answers-again', startAt, endAt: startAt + MICROS_PER_DAY };
  return windowEntry(window, { outcome: 'complete', committedAt: warehouse.clock.next() });
}
