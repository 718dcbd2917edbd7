import { test } from 'vitest';
import { eraseMoments, killErasing, openEraseSetting } from '../support/erase-kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('kill -9 in the middle of an erasing, at every moment', async () => {
  const setting = await openEraseSetting(tempFolder());
  for (const moment of eraseMoments) await killErasing(setting, moment);
});
