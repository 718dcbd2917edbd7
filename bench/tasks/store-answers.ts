import { resources } from '../../schema/index.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { answersOf, type Recording, readRecorded, resourceNamed } from '../recording.ts';
import { performTask, withCost } from '../task.ts';

export interface StoreJob {
  recording: Recording;
  path: string;
  pageSize: number;
}

const COLLECTION = 'daily_activity';
/** Answers taken in before the first of them must be committed. */
const ANSWERS_AHEAD = 20;

/** The write path: JSON in memory to committed rows, accounts one after another. */
performTask(async ({ recording, path, pageSize }: StoreJob) => {
  const answers = recording.users.flatMap(userId =>
    answersOf(readRecorded(recording, userId, COLLECTION), pageSize).map(body => ({ userId, body })),
  );
  const resource = resourceNamed(COLLECTION);
  const warehouse = await Warehouse.open({ path, resources });
  const { cost } = await withCost(async () => {
    const storing: Promise<unknown>[] = [];
    for (const { userId, body } of answers) {
      const requestedAt = warehouse.moments.begin();
      const { data } = JSON.parse(body.toString()) as { data: unknown[] };
      const stored = warehouse.storeDocuments({ userId, resource, requestedAt, documents: data });
      storing.push(stored.finally(() => warehouse.moments.end(requestedAt)));
      if (storing.length >= ANSWERS_AHEAD) await storing.shift();
    }
    await Promise.all(storing);
  });
  await warehouse.close();
  return cost;
});
