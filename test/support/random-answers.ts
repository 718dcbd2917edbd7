import { expect } from 'vitest';
import { below, pick, type Random, randomFrom } from './random-documents.ts';
import { openWarehouse, resourceNamed } from './warehouse.ts';
import { ACTIVITY } from './wire.ts';

/** Rounds, after which the file is closed and opened again. */
const REOPENED_AFTER = 8;
const AT_ONCE = 50;

/** What the warehouse must hold after operations, kept as plainly as can be. */
interface Model {
  documents: Map<string, { day: string; items: number; moment: number }>;
  gone: Map<string, number>;
}

async function operate(model: Model, random: Random, warehouse: Awaited<ReturnType<typeof openWarehouse>>): Promise<Promise<unknown>> {
  const resource = resourceNamed('daily_activity');
  const userId = pick(random, ['ann', 'ben', 'cat']);
  // Some answers are older than what came before.
  const requestedAt = warehouse.clock.lease();
  const ids = Array.from({ length: 1 + below(random, 4) }, () => `a-${below(random, 12)}`);
  const documents: unknown[] = [];
  const removed: string[] = [];
  for (const id of new Set(ids)) {
    const key = `${userId} ${id}`;
    if (random() < 0.2) {
      removed.push(id);
      model.documents.delete(key);
      model.gone.set(key, requestedAt);
      continue;
    }
    const day = `2025-01-${10 + below(random, 5)}`;
    const items = below(random, 5);
    documents.push({ ...ACTIVITY, id, day, steps: below(random, 3), met: { ...ACTIVITY.met, items: Array(items).fill(1) } });
    model.documents.set(key, { day, items, moment: requestedAt });
    model.gone.delete(key);
  }
  return warehouse
    .storeDocuments({ userId, resource, requestedAt, documents, removed }, { lane: random() < 0.3 ? 'live' : 'bulk' })
    .finally(() => warehouse.clock.release(requestedAt));
}

/** Stores so many rounds of fifty answers at once, some of them removals; then the file holds what a plain model of it does. */
export async function randomAnswers(path: string, { seed, rounds }: { seed: number; rounds: number }): Promise<void> {
  let warehouse = await openWarehouse(path);
  const random = randomFrom(seed);
  const model: Model = { documents: new Map(), gone: new Map() };
  for (let round = 0; round < rounds; round++) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => operate(model, random, warehouse)));
    if (round % REOPENED_AFTER !== REOPENED_AFTER - 1) continue;
    await warehouse.close();
    warehouse = await openWarehouse(path);
  }
  expect(
    await warehouse.read(
      'SELECT user_id, id FROM daily_activity GROUP BY ALL HAVING count(*) > 1 UNION ALL SELECT user_id, id FROM sync.tombstones GROUP BY ALL HAVING count(*) > 1',
    ),
  ).toEqual([]);
  const stored = await warehouse.read(
    `SELECT d.user_id || ' ' || d.id, d.day, met_count, (SELECT count(*) FROM daily_activity_met s WHERE s.sk = d.sk AND s.user_id = d.user_id AND s.day = d.day)
     FROM daily_activity d ORDER BY 1`,
  );
  const expected = [...model.documents].map(([key, { day, items }]) => [key, day, items, items]).sort(([a], [b]) => (a! < b! ? -1 : 1));
  expect(stored).toEqual(expected);
  expect(await warehouse.read('SELECT count(*) FROM daily_activity_met')).toEqual([
    [[...model.documents.values()].reduce((sum, { items }) => sum + items, 0)],
  ]);
  expect(await warehouse.read(`SELECT user_id || ' ' || id FROM sync.tombstones ORDER BY 1`)).toEqual(
    [...model.gone.keys()].sort().map(key => [key]),
  );
  await warehouse.close();
}
