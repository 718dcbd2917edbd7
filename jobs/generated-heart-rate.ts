import { heartRate } from '../schema/heart-rate.ts';
import { formatDay, MICROS_PER_DAY } from '../schema/instant.ts';
import { messageOf } from '../src/errors.ts';
import { listAccounts } from './accounts.ts';
import type { Pipeline } from './pipeline.ts';
import type { Run } from './run.ts';

const { sandboxPath, plainPath } = heartRate;

const REASON = `read from ${sandboxPath}, whose rows were removed when ${plainPath} answered: they were generated`;

export const UNREAD = 'the heart rate that was removed is to be read again: ringneck coverage --repair';

/**
 * Removes what the sandbox path has brought, of all accounts, because the plain path answers: its rows were nobody's. The days of those
 * who may be asked are read again by a run of their own.
 * @returns how many rows left, and the run where there is one; undefined where there was nothing
 */
export async function withdrawGenerated(
  pipeline: Pick<Pipeline, 'warehouse' | 'runs' | 'log'>,
): Promise<{ removed: number; reading?: Promise<Run> } | undefined> {
  const { warehouse, runs, log } = pipeline;
  const spans = await warehouse.readHeartRateSpans(sandboxPath);
  if (!spans.length) return undefined;
  const removed = await warehouse.withdrawHeartRate({ route: sandboxPath, reason: REASON, spans });
  log.warn({ rows: removed }, `${plainPath} answers: what ${sandboxPath} had brought is removed and read again`);
  const active = (await listAccounts(warehouse)).filter(({ state }) => state === 'active').map(({ userId }) => userId);
  const days = spans
    .filter(({ userId }) => active.includes(userId))
    .map(({ userId, from, to }) => ({
      userId,
      collection: heartRate.name,
      from: formatDay(Math.floor(from / MICROS_PER_DAY)),
      to: formatDay(Math.ceil(to / MICROS_PER_DAY) - 1),
    }));
  if (!days.length) return { removed };
  const [from, to] = [
    days.map(span => span.from).sort()[0]!,
    days
      .map(span => span.to)
      .sort()
      .at(-1)!,
  ];
  const users = [...new Set(days.map(({ userId }) => userId))];
  // Not waited for here: the window that found it out goes on.
  const reading = runs.start({ kind: 'backfill', from, to, users, collections: [heartRate.name], refresh: true, spans: days });
  reading.catch(error => log.warn({ reason: messageOf(error) }, UNREAD));
  return { removed, reading };
}
