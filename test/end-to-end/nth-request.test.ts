import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Answer } from '../support/fault-service.ts';
import { complete, openSmall, settleAfter } from '../support/small-backfill.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { isWhole, seed, stepsOf } from '../support/whole.ts';

const folder = tempFolder();

/** Not tried again in place, tried again, refused. */
const FAULTS: Answer[] = [
  { status: 400, json: { detail: 'simulated' } },
  { fault: 'reset' },
  { status: 422, json: { detail: [{ loc: ['query'], msg: 'simulated', type: 'x' }] } },
  { status: 403, json: { detail: 'simulated' } },
  { fault: 'truncate', json: { data: [], next_token: null } },
  { status: 200, text: '<html>simulated</html>' },
];

test('the n-th request of a backfill fails, for every n: what is missing is named, and the same command again completes', async () => {
  const small = await openSmall(join(folder, 'requests'));
  expect(small.requests).toBeGreaterThan(20);
  const ends = new Map<string, number>();
  for (const n of stepsOf(small.requests, 8)) {
    const userId = await small.next();
    const what = `request ${n} of ${small.requests}, seed ${seed}: ${JSON.stringify(FAULTS[n % FAULTS.length])}`;
    small.faults.failNth(n, FAULTS[n % FAULTS.length]!);
    const end = await settleAfter(small, userId, what);
    ends.set(end, (ends.get(end) ?? 0) + 1);
    await complete(small, userId, what);
  }
  expect(await findBroken(small.harness.read)).toEqual([]);
  const least = isWhole ? 5 : 1;
  expect(ends.get('complete')).toBeGreaterThan(least);
  expect(ends.get('failed')).toBeGreaterThan(least);
  expect(ends.get('refused')).toBeUndefined();
});
