import { join } from 'node:path';
import { test } from 'vitest';
import { statementFaults } from '../support/statement-faults.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('the n-th statement of a backfill fails, for every n, no rate limits', async () => {
  await statementFaults(join(folder, 'statements'), { seed: 1, share: 1 });
});
