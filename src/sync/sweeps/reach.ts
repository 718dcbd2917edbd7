import { MICROS_PER_DAY } from '../../../schema/instant.ts';
import { isOneTime } from '../../client/service-clock.ts';
import { type EarlierDays, findReach } from '../../ledger/reach.ts';
import type { RunRequest } from '../../ledger/runs.ts';
import { findUnread } from '../../ledger/unread.ts';
import type { Pipeline } from '../pipeline.ts';
import { bothNows } from '../runs/backfill.ts';

/** All days before those of a sweep or a night that it reads too. */
export async function findEarlierDays(
  pipeline: Pick<Pipeline, 'warehouse' | 'serviceClock' | 'now'>,
  request: Pick<RunRequest, 'users' | 'collections' | 'from'>,
): Promise<EarlierDays> {
  const { warehouse, serviceClock, now } = pipeline;
  const [earlier, later] = bothNows(serviceClock);
  const dayNumber = (ms: number) => Math.floor((ms * 1000) / MICROS_PER_DAY);
  const isFar = !isOneTime(serviceClock.aheadMs ?? 0);
  const clocks = { today: dayNumber(earlier), latest: dayNumber(later), isFar, nowMicros: now() * 1000 };
  const { reach, apart } = await findReach(warehouse, request, clocks);
  return { reach, apart: [...(await findUnread(pipeline, request)), ...apart] };
}
