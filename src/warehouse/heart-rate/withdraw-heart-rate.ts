import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { createKeptRows, number, text } from '../rows.ts';
import type { Value } from '../sql.ts';
import { quoteText } from '../sql.ts';
import { readRows } from '../store/database.ts';

/** Heart rate that was read from a path that it should not have been read from. */
export interface HeartRateWithdrawal {
  route: string;
  /** What the ledger says of the windows from then on. */
  reason: string;
  /** No window outside of these is looked at. */
  spans: readonly HeartRateSpan[];
}

/** Microseconds; `to` is excluded. */
export interface HeartRateSpan {
  userId: string;
  from: number;
  to: number;
}

/** What the ledger says was read from a path. */
export const selectSpans = (route: string) =>
  `SELECT user_id, start_at, end_at FROM sync.windows
   WHERE collection = '${heartRate.name}' AND route = ${quoteText(route)} AND outcome = 'complete' ORDER BY user_id, start_at`;

/** The same by account, neighbours together. */
export function joinSpans(rows: readonly (readonly Value[])[]): HeartRateSpan[] {
  const spans: HeartRateSpan[] = [];
  for (const span of toSpans(rows)) {
    const last = spans.at(-1);
    if (last?.userId === span.userId && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else spans.push({ ...span });
  }
  return spans;
}

const toSpans = createKeptRows({ userId: text, from: number, to: number });

/**
 * Removes what the windows of a path have brought, inside the caller's transaction. A window's rows are all that lies in its range: each
 * complete window that has lost some by it counts as failed.
 * @returns how many rows left
 */
export async function withdrawHeartRate(connection: DuckDBConnection, { route, reason, spans }: HeartRateWithdrawal): Promise<number> {
  let removed = 0;
  for (const { userId, from, to } of joinSpans(await readRows(connection, selectSpans(route)))) {
    if (!spans.some(span => span.userId === userId && span.from <= from && span.to >= to)) continue;
    const [start, end] = [`make_timestamp(${from}::BIGINT)`, `make_timestamp(${to}::BIGINT)`];
    const user = `user_id = ${quoteText(userId)}`;
    const gone = await connection.run(`DELETE FROM heart_rate WHERE ${user} AND ts >= ${start} AND ts < ${end}`);
    removed += gone.rowsChanged;
    await connection.run(
      `DELETE FROM sync.rejected WHERE ${user} AND collection = '${heartRate.name}' AND start_at < ${end} AND end_at > ${start};
       UPDATE sync.windows SET outcome = 'failed', reason = ${quoteText(reason)}
       WHERE ${user} AND collection = '${heartRate.name}' AND outcome = 'complete' AND start_at < ${end} AND end_at > ${start}`,
    );
  }
  return removed;
}
