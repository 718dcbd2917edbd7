import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { readRows } from '../store/database.ts';
import type { Store } from '../store/store.ts';

const NAMED = 'routes_named_at';

/** Windows of heart rate that were read without a note of the path. */
const UNNAMED = `collection = '${heartRate.name}' AND outcome = 'complete' AND requested_at IS NOT NULL AND route IS NULL`;

/**
 * Once for each file: heart rate that an earlier version read, which did not note from where, counts as that of the sandbox path where
 * nothing but this path had answered by then.
 * @param nowMicros the time of day
 * @returns whether there is some of which nobody knows, because both paths had answered
 */
export async function nameRoutes(store: Pick<Store, 'transaction'>, connection: DuckDBConnection, nowMicros: number): Promise<boolean> {
  const [named] = await readRows(connection, `SELECT 1 FROM sync.meta WHERE key = '${NAMED}'`);
  if (named) return false;
  const hasAnswered = async (path: string) =>
    (await readRows(connection, `SELECT 1 FROM sync.routes WHERE route = 'GET ${path}' AND last_200_at IS NOT NULL LIMIT 1`)).length > 0;
  const isGenerated = await hasAnswered(heartRate.sandboxPath);
  const isUnclear = isGenerated && (await hasAnswered(heartRate.plainPath));
  const unnamed = await readRows(connection, `SELECT 1 FROM sync.windows WHERE ${UNNAMED} LIMIT 1`);
  await store.transaction(connection, async () => {
    if (isGenerated && !isUnclear) await connection.run(`UPDATE sync.windows SET route = '${heartRate.sandboxPath}' WHERE ${UNNAMED}`);
    await connection.run(`INSERT INTO sync.meta (key, value) VALUES ('${NAMED}', '${nowMicros}')`);
  });
  return isUnclear && unnamed.length > 0;
}
