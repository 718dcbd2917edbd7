import { test } from 'vitest';
import { type EraseMoment, type EraseSetting, killErasing, openEraseSetting } from '../support/erase-kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let setting: Promise<EraseSetting> | undefined;

// One before the new file, one after it; test/campaign has all of them.
test.each<EraseMoment>(['the events are in the inbox alone', 'the new file is in its place'])(
  'killed when %s, it is finished when the folder is opened next',
  async moment => {
    setting ??= openEraseSetting(folder);
    await killErasing(await setting, moment);
  },
);
