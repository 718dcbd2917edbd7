import { onTestFinished, test } from 'vitest';
import { intermediaryRound, openIntermediarySetting } from '../support/intermediary-rounds.ts';
import { randomFrom } from '../support/random-documents.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test("what answers in the service's place makes no day look done, and one repair brings everything", async () => {
  const setting = await openIntermediarySetting(folder);
  onTestFinished(() => setting.close());
  // test/campaign has many.
  await intermediaryRound(setting, 'round', randomFrom(1));
});
