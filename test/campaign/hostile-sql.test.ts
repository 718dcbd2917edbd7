import { expect, onTestFinished, test } from 'vitest';
import { openHostileHouse } from '../support/hostile-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('a hundred hostile statements end, write no file, read none but the warehouse, and reach no network', async () => {
  const house = await openHostileHouse(folder);
  onTestFinished(() => house.close());
  expect(house.corpus.length).toBeGreaterThanOrEqual(100);
  await house.withstand(house.corpus);
});
