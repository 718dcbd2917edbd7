import { expect, onTestFinished, test } from 'vitest';
import { openHostileHarness } from '../support/hostile-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('a hundred hostile statements end, write no file, read none but the warehouse, and reach no network', async () => {
  const harness = await openHostileHarness(folder);
  onTestFinished(() => harness.close());
  expect(harness.corpus.length).toBeGreaterThanOrEqual(100);
  await harness.withstand(harness.corpus);
});
