import { onTestFinished, test } from 'vitest';
import { intermediaryRound, openIntermediarySetting } from '../support/intermediary-rounds.ts';
import { randomFrom } from '../support/random-documents.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chosen, rounds, seed } from './choice.ts';

const folder = tempFolder();

test(`what answers in the service's place makes no day look done, and one repair brings everything, ${chosen}`, async () => {
  const setting = await openIntermediarySetting(folder);
  onTestFinished(() => setting.close());
  for (let round = 1; round <= rounds; round++) await intermediaryRound(setting, `round-${seed}-${round}`, randomFrom(seed * 1000 + round));
});
