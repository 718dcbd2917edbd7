import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, resourceNamed } from '../support/warehouse.ts';

const folder = tempFolder();
const page = { userId: 'ada', resource: resourceNamed('session') };
const MARCH = { from: '2025-03-01', to: '2025-03-31' };
const MAY = { from: '2025-05-01', to: '2025-05-31' };

const stored = (day: string) => ({
  documents: [{ id: 's', day, start_datetime: `${day}T08:00:00+01:00`, end_datetime: `${day}T08:10:00+01:00`, type: 'rest' }],
});
const gone = { documents: [], removed: ['s'] };
const absentFrom = (days: typeof MARCH) => ({ ...gone, absentFrom: days });

type Answer = ReturnType<typeof stored> | typeof gone;

// Answers in the order of their requests; the order in which they arrive; the day under which the document is left.
const CASES: [name: string, answers: Answer[], arrival: number[], left: string | null][] = [
  ['gone, then absent from other days', [stored('2025-05-20'), gone, absentFrom(MARCH)], [1, 2, 0], null],
  ['absent from other days, then gone before that', [stored('2025-05-20'), gone, absentFrom(MARCH)], [2, 1, 0], null],
  ['gone before it was absent from other days', [stored('2025-05-20'), gone, absentFrom(MARCH)], [2, 0, 1], null],
  ['an older version of other days', [stored('2025-03-20'), stored('2025-05-20'), absentFrom(MAY)], [1, 2, 0], null],
  ['absent from two ranges', [stored('2025-03-20'), absentFrom(MARCH), absentFrom(MAY)], [1, 2, 0], null],
  ['absent from two ranges, the older last', [stored('2025-05-20'), absentFrom(MAY), absentFrom(MARCH)], [2, 0, 1], null],
  ['absent from days under which an older answer has it', [stored('2025-03-20'), absentFrom(MARCH)], [1, 0], null],
  ['absent from days that it has left', [stored('2025-05-20'), absentFrom(MARCH)], [1, 0], '2025-05-20'],
  ['removed and there again', [stored('2025-03-20'), absentFrom(MARCH), stored('2025-03-20')], [0, 1, 2], '2025-03-20'],
];

test.each(
  CASES.flatMap(([name, ...rest]) =>
    [false, true].map(isHeld => [`${name}${isHeld ? ', beside a slow answer' : ''}`, isHeld, ...rest] as const),
  ),
)('answers take effect in the order of their requests: %s', async (_, isHeld, answers, arrival, left) => {
  const warehouse = await openWarehouse(join(folder, `${Math.random()}.duckdb`));
  const { clock } = warehouse;
  // Of somebody else, sent before all.
  const slow = isHeld ? clock.lease() : undefined;
  const moments = answers.map(() => clock.lease());
  for (const i of arrival) {
    await warehouse.storeDocuments({ ...page, requestedAt: moments[i]!, ...answers[i]! });
    clock.release(moments[i]!);
  }
  if (slow !== undefined) clock.release(slow);
  expect(await warehouse.read('SELECT day::VARCHAR FROM session')).toEqual(left === null ? [] : [[left]]);
  await warehouse.close();
});

test('a first proof is not noted of a document that came after the answer that lacks it was asked for, or under other days', async () => {
  const warehouse = await openWarehouse(join(folder, `${Math.random()}.duckdb`));
  const { clock } = warehouse;
  const notes = () => warehouse.read('SELECT kind, object_id, first_seen_at FROM sync.suspicions');
  const lacks = (requestedAt: number) =>
    warehouse.storeDocuments({ ...page, requestedAt, documents: [], missing: { ids: ['s', 'unknown'], seenAt: 1_000_000 } });
  await warehouse.storeDocuments({ ...page, requestedAt: clock.next(), ...stored('2025-03-20') });
  const [beforeUnchanged, unchanged, beforeMoved, moved, after] = [1, 2, 3, 4, 5].map(() => clock.lease());
  await warehouse.storeDocuments({ ...page, requestedAt: unchanged!, ...stored('2025-03-20') });
  await lacks(beforeUnchanged!);
  await warehouse.storeDocuments({ ...page, requestedAt: moved!, ...stored('2025-03-10') });
  await lacks(beforeMoved!);
  expect(await notes()).toEqual([]);
  const { from, to } = MAY;
  const missing = { ids: ['s'], seenAt: 1_000_000 };
  await warehouse.storeDocuments({ ...page, requestedAt: after!, documents: [], missing, absentFrom: { from, to } });
  expect(await notes()).toEqual([]);
  await lacks(after!);
  expect(await notes()).toEqual([['missing', 's', 1_000_000]]);
  for (const moment of [beforeUnchanged, unchanged, beforeMoved, moved, after]) clock.release(moment!);
  await warehouse.storeDocuments({ ...page, requestedAt: clock.next(), ...stored('2025-03-10') });
  expect(await notes()).toEqual([]);
  await warehouse.close();
});
