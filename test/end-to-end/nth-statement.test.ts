import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { complete, openSmall, settleAfter } from '../support/small-backfill.ts';
import { failStatements, statementFaults } from '../support/statement-faults.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('the n-th statement of a backfill fails, for a seeded tenth of all n: what is missing is named, and the same command again completes', async () => {
  const ends = await statementFaults(join(folder, 'statements'), { seed: 7, share: 10 });
  // One fault of the warehouse passes: a window is tried again before it fails.
  expect(ends.get('failed')).toBeUndefined();
  expect(ends.get('complete')).toBeGreaterThan(5);
});

test.each([1, 60])(
  'every statement from number %i on fails: the command ends and says so, and the same one completes later',
  async from => {
    const small = await openSmall(join(folder, `from-${from}`), ['sleep', 'ring_configuration', 'heart_rate']);
    const userId = await small.next();
    failStatements(n => n >= from);
    expect(await settleAfter(small, userId, `all from ${from} on`, () => vi.restoreAllMocks())).toBe('refused');
    await complete(small, userId, `all from ${from} on`);
  },
);
